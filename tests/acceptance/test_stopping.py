"""gunicorn stops at once where nothing is under way. Its graceful timeout is an hour here, so no test waits it out."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.acceptance.conftest import free_port, until

_PATIENT = """
from analytics_service.run.gunicorn_conf import *
graceful_timeout = keepalive = 3600
"""
# Told to stop as a worker is forked, gunicorn passes that on at once: mostly before the worker has its own handlers.
_STOPPED_AT_FORK = """
import os, random, signal
random.random = float
def pre_fork(server, worker):
    os.kill(os.getpid(), signal.SIGTERM)
"""
_IMPATIENT_FOR_THE_FIRST_BYTE = """
from gunicorn.workers import gthread
gthread.DEFAULT_WORKER_DATA_TIMEOUT = 0.1
"""


@contextmanager
def gunicorn(tmp_path: Path, port: int, *configuration: str) -> Iterator["subprocess.Popen[bytes]"]:
    """gunicorn on the service's configuration and what is added to it, without a ClickHouse."""
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


def test_a_worker_hears_that_it_shall_stop_from_its_first_moment_on(tmp_path: Path) -> None:
    for _ in range(3):
        with gunicorn(tmp_path, free_port(), _STOPPED_AT_FORK) as process:
            assert process.wait(60) == 0


def test_connections_that_never_asked_for_anything_hold_nobody_up(tmp_path: Path) -> None:
    port = free_port()
    with gunicorn(tmp_path, port, _IMPATIENT_FOR_THE_FIRST_BYTE) as process:
        until(lambda: answers(port))
        with socket.create_connection(("127.0.0.1", port)):
            # Long enough for a thread of the worker to have given up on it.
            time.sleep(1)
            process.terminate()
            assert process.wait(60) == 0
