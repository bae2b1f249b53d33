"""gunicorn as the service configures it, without a ClickHouse: it answers /healthz and /docs."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

from tests.processes import PATIENCE

# Its graceful timeout is an hour; no test waits for it.
_PATIENT = """
from analytics_service.server.gunicorn_conf import *
graceful_timeout = 3600
"""
_AROUND = """
from functools import partial
from {module} import {name}
begin = post_worker_init
def post_worker_init(worker):
    begin(worker)
    worker.wsgi = partial({name}, worker.wsgi)
"""

Answer = Callable[[WSGIApplication, WSGIEnvironment, StartResponse], Iterable[bytes]]


def around(answer: Answer) -> str:
    """Configuration that has a function answer all requests, which is given the service's application to call."""
    return _AROUND.format(module=answer.__module__, name=answer.__name__)


@contextmanager
def gunicorn(
    tmp_path: Path, port: int, *configuration: str, log: int | None = None, **settings: str
) -> Iterator["subprocess.Popen[bytes]"]:
    """gunicorn with the service's configuration and additions to it, without a ClickHouse, and without metrics.

    It logs to the file descriptor `log`, if there is one. `settings` are further variables of its environment.
    """
    conf = tmp_path / "conf.py"
    conf.write_text("".join([_PATIENT, *configuration]), "utf-8")
    environ = {
        **os.environ,
        "ANALYTICS_BIND": f"127.0.0.1:{port}",
        "ANALYTICS_CLICKHOUSE_URL": "http://127.0.0.1:1",
        "ANALYTICS_WORKERS": "1",
        "ANALYTICS_METRICS_BIND": "none",
        "PYTHONPATH": os.pathsep.join(sys.path),
        **settings,
    }
    arguments = [sys.executable, "-m", "gunicorn", "-c", str(conf), "analytics_service.wsgi:app"]
    with subprocess.Popen(arguments, env=environ, stderr=log, start_new_session=True) as process:
        try:
            yield process
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)


def sent(port: int, request: bytes) -> bytes:
    """What the service answers to a request, until it closes the connection."""
    with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE) as client:
        client.sendall(request)
        return rest(client)


def rest(client: socket.socket) -> bytes:
    """What the service sends until it closes the connection."""
    return b"".join(iter(lambda: client.recv(65536), b""))


def answers(port: int) -> bool:
    """Whether the service answers there."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=5) as client:
            client.sendall(b"GET /healthz HTTP/1.0\r\n\r\n")
            return client.recv(12).endswith(b" 200")
    except OSError:
        return False
