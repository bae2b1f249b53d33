"""Clients that are silent, slow, or do not read, and requests that fail in gunicorn: others are answered meanwhile.

A stop does not wait for any of them.
"""

import json
import os
import resource
import signal
import socket
import struct
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

import pytest
from polars.exceptions import PanicException

from tests.acceptance.bare import answers, around, gunicorn, rest, sent
from tests.processes import PATIENCE, children, free_port, until

HEAD = b"GET /docs HTTP/1.1\r\nHost: here\r\n"
# What a client of each kind sends, and how many there are.
HOSTILE = {
    "silent": (b"", 300),
    "half a head": (HEAD, 150),
    "a body that does not come": (b"POST /docs HTTP/1.1\r\nHost: here\r\nContent-Length: 1000000\r\n\r\n", 100),
    # 60 pages of 128 kB are more than the system's buffers hold.
    "an answer that is not read": ((HEAD + b"\r\n") * 60, 50),
}


@contextmanager
def hostile_clients(port: int) -> Iterator[list[socket.socket]]:
    """Connections of all kinds, open for the duration of the block."""
    with ExitStack() as stack:
        clients = []
        for first, count in HOSTILE.values():
            for _ in range(count):
                client = stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=PATIENCE))
                client.sendall(first)
                clients.append(client)
        yield clients


@pytest.fixture(autouse=True, scope="module")
def many_files() -> None:
    """Let this process open as many files as it may."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def is_open(client: socket.socket) -> bool:
    """Whether the service has not cut off a client that has read nothing so far."""
    client.setblocking(False)
    try:
        return client.recv(1, socket.MSG_PEEK) != b""
    except BlockingIOError:
        return True
    except ConnectionResetError:
        return False


def unsent(port: int) -> list[int]:
    """Bytes that the kernel holds of each connection to a port, and of those that are closed there already."""
    rows = [line.split() for line in Path("/proc/net/tcp").read_text("ascii").splitlines()[1:]]
    return [int(row[4].partition(":")[0], 16) for row in rows if row[1].endswith(f":{port:04X}")]


def test_others_are_answered_while_600_clients_hold_connections_open(tmp_path: Path) -> None:
    """Answers that are not read take little of the kernel, and nothing once their clients are cut off. A stop waits for
    who has just connected; if it waited for silent connections, it would take an hour."""
    port = free_port()
    with gunicorn(tmp_path, port, "keepalive = 3600\n") as process:
        until(lambda: answers(port))
        # On a busy machine the first of them may be cut off too soon. Then there is another attack.
        for attacks_left in range(4, -1, -1):
            with hostile_clients(port) as clients:
                until(lambda: max(unsent(port), default=0) > 0)
                # There are more clients of each kind than threads.
                for _ in range(3):
                    assert sent(port, b"GET /healthz HTTP/1.0\r\n\r\n")[9:12] == b"200"
                if all(map(is_open, clients)) or not attacks_left:
                    assert all(map(is_open, clients))
                    # Without a bound it is megabytes within half a second.
                    time.sleep(0.5)
                    assert max(unsent(port), default=0) <= 2**19
                    with socket.create_connection(("127.0.0.1", port)) as new:
                        # Connections are accepted in their order.
                        assert answers(port)
                        process.terminate()
                        until(lambda: not answers(port))
                        new.sendall(b"GET /healthz HTTP/1.1\r\nHost: here\r\n\r\n")
                        head = new.recv(4096).lower()
                    assert head.startswith(b"http/1.1 200 ")
                    assert b"\r\nconnection: close\r\n" in head
                    assert process.wait(PATIENCE) == 0
                    assert sum(unsent(port)) == 0
                    break


@pytest.fixture(scope="module")
def bare_port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """The port of a running service that keeps a silent connection for a second."""
    port = free_port()
    with gunicorn(tmp_path_factory.mktemp("bare"), port, "keepalive = 1\n"):
        until(lambda: answers(port))
        yield port


def test_a_client_that_reads_late_gets_everything_and_one_that_is_silent_is_cut_off(bare_port: int) -> None:
    with socket.create_connection(("127.0.0.1", bare_port), timeout=PATIENCE) as late:
        late.sendall((HEAD + b"\r\n") * 60 + HEAD + b"Connection: close\r\n\r\n")
        with socket.create_connection(("127.0.0.1", bare_port), timeout=PATIENCE) as silent:
            assert rest(silent) == b""
        received = rest(late)
    pages = received.split(b"HTTP/1.1 200 OK\r\n")[1:]
    lengths = {len(page.partition(b"\r\n\r\n")[2]) for page in pages}
    assert (len(pages), len(lengths)) == (61, 1)


@pytest.mark.parametrize(
    ("target", "status"),
    [
        *((target, b"200") for target in (b"/docs", b"/%64ocs", b"/docs?", b"http://here/docs")),
        *((target, b"404") for target in (b"//docs", b"/%2Fdocs", b"http://here/%2fdocs", b"/docs%2F", b"/docs/")),
    ],
)
def test_double_and_percent_encoded_slashes_name_no_path(bare_port: int, target: bytes, status: bytes) -> None:
    """Rule 7.2. /docs needs no store."""
    answer = sent(bare_port, b"GET " + target + b" HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n")
    assert answer[9:12] == status


@pytest.mark.parametrize(
    ("request_bytes", "status", "kind"),
    [
        (b"GET /" + b"a" * 9000 + b" HTTP/1.1\r\nHost: here\r\n\r\n", 414, "uri_too_long"),
        (b"GET /docs HTTP/1.1\r\nHost: here\r\nX: " + b"a" * 70_000, 431, "headers_too_large"),
        (b"GET /docs HTTP/1.1\r\nHost: here\r\nX: " + b"a" * 9000 + b"\r\n\r\n", 431, "headers_too_large"),
        (b"nonsense\r\n\r\n", 400, "request_malformed"),
        (b"GET /docs HTTP/1.1\r\nConnection: close\r\n\r\n", 400, "request_malformed"),
        (b"POST /docs HTTP/1.1\r\nHost: here\r\nTransfer-Encoding: chunked\r\n\r\n", 405, "method_not_allowed"),
        # No body is invited.
        (
            b"POST /docs HTTP/1.1\r\nHost: here\r\nContent-Length: 9\r\nExpect: 100-continue\r\n\r\n",
            405,
            "method_not_allowed",
        ),
    ],
)
def test_a_request_that_cannot_be_read_gets_an_envelope_and_the_end(
    bare_port: int, request_bytes: bytes, status: int, kind: str
) -> None:
    head, _, body = sent(bare_port, request_bytes).partition(b"\r\n\r\n")
    lines = head.lower().split(b"\r\n")
    assert lines[0].startswith(f"http/1.1 {status} ".encode())
    assert {b"x-content-type-options: nosniff", b"referrer-policy: no-referrer"} <= {*lines}
    assert {b"connection: close", b"access-control-allow-origin: *", b"content-type: application/json"} <= {*lines}
    answer = json.loads(body)
    assert (answer["data"], answer["status"]) == (None, status)
    assert {**answer["error"], "message": ""} == {"kind": kind, "scope": "client", "message": ""}
    assert answer["error"]["message"]


@pytest.mark.parametrize("header", [b"SCRIPT_NAME: /docs", b"PATH_INFO: /healthz", b"X-Forwarded-Ssl: off"])
def test_no_header_changes_what_is_asked_for(bare_port: int, header: bytes) -> None:
    """The header comes from this machine, as those of a proxy do, and contradicts what that says of the scheme."""
    asked = b"GET /docs HTTP/1.1\r\nHost: here\r\nX-Forwarded-Proto: https\r\nConnection: close\r\n"
    head, _, body = sent(bare_port, asked + header + b"\r\n\r\n").partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200 ")
    assert body.startswith(b"<!doctype html>")


def faulty(service: WSGIApplication, environ: WSGIEnvironment, start: StartResponse) -> Iterable[bytes]:
    """Takes its time, breaks an answer off after its first part, or fails in Polars, as the query says."""
    query = environ["QUERY_STRING"]
    time.sleep({"brief": 0.02, "slow": 1.5}.get(query, 0.0))
    if query == "panics":
        # The service's application would answer such a failure itself.
        raise PanicException("a fault of Polars")
    if query != "breaks":
        return service({**environ, "QUERY_STRING": ""}, start)
    start("200 OK", [("Content-Type", "text/plain")])
    return parts()


def parts() -> Iterator[bytes]:
    yield b"first"
    raise ValueError("the second part fails")


class Faulty(NamedTuple):
    """A service with one worker of one thread, which has such an application."""

    port: int
    worker: int
    log: Path

    def send(self, query: str, more: bytes = b"", count: int = 1) -> socket.socket:
        """A connection on which requests with a query were sent."""
        client = socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE)
        client.sendall(f"GET /healthz?{query} HTTP/1.1\r\nHost: here\r\n\r\n".encode() * count + more)
        return client


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Faulty]:
    """None of its connections seems busy when all tests are over: its stop would wait for that."""
    folder, port = tmp_path_factory.mktemp("faulty"), free_port()
    log = folder / "gunicorn.log"
    with (
        log.open("wb") as file,
        gunicorn(folder, port, around(faulty), log=file.fileno(), GUNICORN_CMD_ARGS="--threads 1") as process,
    ):
        until(lambda: answers(port))
        (worker,) = children(process.pid)
        yield Faulty(port, worker, log)
        process.terminate()
        assert process.wait(PATIENCE) == 0


def test_a_client_that_sends_many_requests_at_once_has_them_answered_in_turn_with_others(service: Faulty) -> None:
    count = 100
    with service.send("brief", count=count) as greedy:
        # It gets all of its answers, although it has nothing more to say.
        greedy.shutdown(socket.SHUT_WR)
        received = greedy.recv(65536)
        assert answers(service.port)
        # All of its answers would fit in.
        received += greedy.recv(65536)
        assert received.count(b"HTTP/1.1 200 ") < count // 2
        assert (received + rest(greedy)).count(b"HTTP/1.1 200 ") == count


def processor_seconds(pid: int) -> float:
    """What a process has used so far."""
    fields = Path(f"/proc/{pid}/stat").read_text("ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def test_a_connection_that_breaks_off_while_it_is_answered_keeps_nobody_busy(service: Faulty) -> None:
    """The request is there when the connection is accepted, so that it is answered before anything is waited for."""
    os.kill(service.worker, signal.SIGSTOP)
    client = service.send("slow")
    os.kill(service.worker, signal.SIGCONT)
    time.sleep(0.3)
    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    client.close()
    before = processor_seconds(service.worker)
    time.sleep(0.9)
    assert processor_seconds(service.worker) - before < 0.3
    until(lambda: answers(service.port))


def test_an_answer_that_fails_after_its_first_part_ends_its_connection_and_nothing_else(service: Faulty) -> None:
    before = service.log.stat().st_size
    # The second request comes before the first one fails, and is not answered.
    with service.send("breaks", HEAD + b"\r\n") as client:
        received = rest(client)
    assert received.startswith(b"HTTP/1.1 200 ")
    # The client can tell that the answer broke off, because the last chunk is missing.
    assert received.endswith(b"\r\n\r\n5\r\nfirst\r\n")
    assert answers(service.port)
    told = service.log.read_bytes()[before:]
    assert told.count(b"ValueError: the second part fails") == 1
    assert told.count(b"Traceback") == 1


def test_requests_that_fail_in_polars_get_an_answer_and_leave_the_thread(service: Faulty) -> None:
    """Such a failure is no Exception."""
    for _ in range(2):
        with service.send("panics") as client:
            answer = rest(client)
        assert answer.startswith(b"HTTP/1.1 500 ")
        assert b'"kind":"internal"' in answer
        assert b"Polars" not in answer
    assert answers(service.port)
