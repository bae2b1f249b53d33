"""gunicorn stops at once when no request is under way. Its graceful timeout is an hour here; no test waits for it."""

import socket
from pathlib import Path

from tests.acceptance.bare import answers, gunicorn
from tests.processes import PATIENCE, connects, free_port, until

# The worker is told to stop while a thread accepts a connection.
_STOPPED_AT_ACCEPT = """
import socket, time
from pathlib import Path
accept = socket.socket.accept
def accept_late(listener):
    Path("{woken}").touch()
    time.sleep(1)
    return accept(listener)
socket.socket.accept = accept_late
"""


def test_a_worker_that_is_stopped_while_someone_connects_logs_no_error(tmp_path: Path) -> None:
    port, woken, log = free_port(), tmp_path / "woken", tmp_path / "log"
    late = _STOPPED_AT_ACCEPT.format(woken=woken)
    with log.open("wb") as file, gunicorn(tmp_path, port, late, log=file.fileno()) as process:
        until(lambda: connects(port) and woken.exists())
        process.terminate()
        assert process.wait(PATIENCE) == 0
    assert "Traceback" not in log.read_text()


def test_a_stop_waits_for_those_who_have_just_connected_and_not_for_silent_connections(tmp_path: Path) -> None:
    port = free_port()
    with gunicorn(tmp_path, port, "keepalive = 3600\n") as process:
        until(lambda: answers(port))
        with socket.create_connection(("127.0.0.1", port)), socket.create_connection(("127.0.0.1", port)) as new:
            # Connections are accepted in their order.
            assert answers(port)
            process.terminate()
            until(lambda: not answers(port))
            new.sendall(b"GET /healthz HTTP/1.1\r\nHost: here\r\n\r\n")
            head = new.recv(4096).lower()
            assert head.startswith(b"http/1.1 200 ")
            assert b"\r\nconnection: close\r\n" in head
            assert process.wait(PATIENCE) == 0
