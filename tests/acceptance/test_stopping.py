"""gunicorn stops at once when no request is under way. Its graceful timeout is an hour here; no test waits for it."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.processes import PATIENCE, free_port, until

_PATIENT = """
from analytics_service.run.gunicorn_conf import *
graceful_timeout = keepalive = 3600
"""
# gunicorn is told to stop when it forks a worker, and tells the worker at once: mostly before it has its own handlers.
_STOPPED_AT_FORK = """
import os, random, signal
random.random = float
def pre_fork(server, worker):
    os.kill(os.getpid(), signal.SIGTERM)
"""
# A thread of the worker gives up on a silent connection after 0.1 s; the file then holds how many there are.
_COUNTS_SILENT_CONNECTIONS = """
from pathlib import Path
from gunicorn.workers import gthread
gthread.DEFAULT_WORKER_DATA_TIMEOUT = 0.1
finish_request = gthread.ThreadWorker.finish_request
def finish_and_count(worker, connection, future):
    finish_request(worker, connection, future)
    Path({file!r}).write_text(str(len(worker.pending_conns)))
gthread.ThreadWorker.finish_request = finish_and_count
"""


@contextmanager
def gunicorn(tmp_path: Path, port: int, *configuration: str) -> Iterator["subprocess.Popen[bytes]"]:
    """gunicorn with the service's configuration and additions to it, without a ClickHouse."""
    conf = tmp_path / "conf.py"
    conf.write_text("".join([_PATIENT, *configuration]), "utf-8")
    environ = {
        **os.environ,
        "ANALYTICS_BIND": f"127.0.0.1:{port}",
        "ANALYTICS_CLICKHOUSE_URL": "http://127.0.0.1:1",
        "ANALYTICS_WORKERS": "1",
    }
    arguments = [sys.executable, "-m", "gunicorn", "-c", str(conf), "analytics_service.wsgi:app"]
    with subprocess.Popen(arguments, env=environ, start_new_session=True) as process:
        try:
            yield process
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)


def answers(port: int) -> bool:
    """Whether the service answers there."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=5) as client:
            client.sendall(b"GET /healthz HTTP/1.0\r\n\r\n")
            return client.recv(12).endswith(b" 200")
    except OSError:
        return False


def test_a_worker_can_be_stopped_from_its_first_moment_on(tmp_path: Path) -> None:
    for _ in range(3):
        with gunicorn(tmp_path, free_port(), _STOPPED_AT_FORK) as process:
            assert process.wait(PATIENCE) == 0


def test_silent_connections_do_not_delay_a_stop(tmp_path: Path) -> None:
    port, silent = free_port(), tmp_path / "silent"
    with gunicorn(tmp_path, port, _COUNTS_SILENT_CONNECTIONS.format(file=str(silent))) as process:
        until(lambda: answers(port))
        with socket.create_connection(("127.0.0.1", port)):
            until(lambda: silent.exists() and silent.read_text("utf-8") == "1")
            process.terminate()
            assert process.wait(PATIENCE) == 0
