"""`example nginx` in front of the service: what it refuses, and how."""

import http.client
import json
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from pathlib import Path

import pytest

from analytics_service.http.answer import reason_phrase
from analytics_service.http.errors import CASES, NGINX_KINDS
from tests.acceptance.bare import answers, gunicorn, sent
from tests.processes import PATIENCE, connects, free_port, until
from tests.unit.test_examples import printed

pytestmark = pytest.mark.skipif(shutil.which("nginx") is None, reason="apt's nginx")

_NGINX = """
pid {folder}/nginx.pid;
worker_rlimit_nofile 16384;
events {{ worker_connections 8192; }}
http {{
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    include {folder}/example.conf;
}}
"""
HEAD = b"GET /docs HTTP/1.1\r\nHost: here\r\n"
# Of RFC 9110; Python 3.11 has an older one.
REASONS = {413: "Content Too Large"}


@contextmanager
def nginx(folder: Path, behind: int, changes: dict[str, str] | None = None) -> Iterator[int]:
    """The port of an nginx in front of another port, with the example and changes of its directives."""
    port = free_port()
    example = printed("nginx")
    replaced = {"listen 80": f"listen 127.0.0.1:{port}", "server 127.0.0.1:8000": f"server 127.0.0.1:{behind}"}
    replaced["/var/log/nginx"] = str(folder)
    for old, new in (replaced | (changes or {})).items():
        assert old in example
        example = example.replace(old, new)
    (folder / "example.conf").write_text(example)
    (folder / "nginx.conf").write_text(_NGINX.format(folder=folder))
    arguments = ("-p", str(folder), "-c", str(folder / "nginx.conf"), "-e", str(folder / "error.log"))
    with subprocess.Popen(["nginx", "-g", "daemon off;", *arguments]) as process:
        try:
            until(lambda: connects(port) or process.poll() is not None)
            yield port
        finally:
            process.terminate()


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """The port of a gunicorn without a store."""
    port = free_port()
    with gunicorn(tmp_path_factory.mktemp("service"), port):
        until(lambda: answers(port))
        yield port


@pytest.fixture(scope="module")
def front(tmp_path_factory: pytest.TempPathFactory, service: int) -> Iterator[int]:
    """The port of an nginx in front of it."""
    with nginx(tmp_path_factory.mktemp("nginx"), service) as port:
        yield port


def require_refusal(answer: bytes, status: int, kind: str) -> None:
    """The answer is the service's envelope."""
    head, _, body = answer.partition(b"\r\n\r\n")
    lines = head.lower().split(b"\r\n")
    assert lines[0].startswith(f"http/1.1 {status} ".encode())
    assert {b"content-type: application/json", b"cache-control: no-store", b"access-control-allow-origin: *"} <= {
        *lines
    }
    assert any(line.startswith(b"x-request-id: ") for line in lines)
    assert any(line.startswith(b"retry-after: ") for line in lines) == (status in (429, 503))
    refused = json.loads(body)
    assert refused["error"].pop("message")
    scope = CASES[kind].scope if kind in CASES else "client"
    assert kind in {*CASES, *NGINX_KINDS}
    error = {"kind": kind, "scope": scope}
    assert refused == {
        "data": None,
        "error": error,
        "status": status,
        "status_text": REASONS.get(status) or reason_phrase(HTTPStatus(status)),
    }


@pytest.mark.parametrize(
    ("request_bytes", "status", "kind"),
    [
        (b"nonsense\r\n\r\n", 400, "request_malformed"),
        (b"TRACE /docs HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n", 405, "method_not_allowed"),
        (b"POST /docs HTTP/1.1\r\nHost: here\r\nContent-Length: 2000\r\n\r\n" + b"a" * 2000, 413, "content_too_large"),
        (b"GET /" + b"a" * 20_000 + b" HTTP/1.1\r\nHost: here\r\n\r\n", 414, "uri_too_long"),
        # The service's own.
        (b"GET /" + b"a" * 9000 + b" HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n", 414, "uri_too_long"),
        (HEAD + b"X: " + b"a" * 20_000 + b"\r\n\r\n", 431, "headers_too_large"),
    ],
)
def test_what_nginx_refuses_has_the_form_of_errors(front: int, request_bytes: bytes, status: int, kind: str) -> None:
    require_refusal(sent(front, request_bytes), status, kind)


@pytest.mark.parametrize("is_silent", [False, True], ids=["none", "silent"])
def test_a_service_that_does_not_answer_is_unavailable(tmp_path: Path, is_silent: bool) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        behind = listener.getsockname()[1]
        if not is_silent:
            listener.close()
        with nginx(tmp_path, behind, {"proxy_read_timeout 10s": "proxy_read_timeout 1s"}) as port:
            require_refusal(sent(port, HEAD + b"Connection: close\r\n\r\n"), 503, "unavailable")


def test_ids_and_ranges_of_bytes(front: int) -> None:
    """A plain id is kept. Ranges are nginx's."""
    client = http.client.HTTPConnection("127.0.0.1", front, timeout=PATIENCE)
    for sent_id, is_kept in (("mine.1", True), ("no id", False)):
        client.request("GET", "/docs", headers={"X-Request-ID": sent_id, "Range": "bytes=0-14"})
        answer = client.getresponse()
        assert (answer.status, answer.read()) == (206, b"<!doctype html>")
        assert (answer.headers["X-Request-ID"] == sent_id) == is_kept
    client.close()


def test_requests_beyond_the_limit_are_429s_and_warnings(service: int, tmp_path: Path) -> None:
    changes = {"rate=50r/s": "rate=1r/m", "burst=100": "burst=1"}
    with nginx(tmp_path, service, changes) as port:
        got = [sent(port, HEAD + b"Connection: close\r\n\r\n") for _ in range(3)]
        assert [answer[9:12] for answer in got] == [b"200", b"200", b"429"]
        require_refusal(got[2], 429, "rate_limited")
        log = (tmp_path / "analytics-service.error.log").read_text()
    assert "[warn]" in log
    assert "limiting requests" in log
    assert "[error]" not in log
