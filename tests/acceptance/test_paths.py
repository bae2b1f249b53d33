"""Paths as gunicorn passes them on (rule 7.2)."""

import socket
from pathlib import Path

from tests.acceptance.bare import answers, gunicorn
from tests.processes import PATIENCE, free_port, until

# /docs, which needs no store, in several spellings.
TARGETS = {
    b"/docs": b"200",
    b"/%64ocs": b"200",
    b"/docs?": b"200",
    b"http://here/docs": b"200",
    b"//docs": b"404",
    b"/%2Fdocs": b"404",
    b"/%2fdocs": b"404",
    b"http://here//docs": b"404",
    b"http://here/%2Fdocs": b"404",
    b"/docs%2F": b"404",
    b"/docs/": b"404",
}


def status(port: int, target: bytes) -> bytes:
    with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE) as client:
        client.sendall(b"GET " + target + b" HTTP/1.1\r\nHost: here\r\n\r\n")
        return client.recv(12)[9:]


def test_double_and_percent_encoded_slashes_name_no_path(tmp_path: Path) -> None:
    port = free_port()
    with gunicorn(tmp_path, port) as process:
        until(lambda: answers(port))
        assert {target: status(port, target) for target in TARGETS} == TARGETS
        process.terminate()
        process.wait(PATIENCE)
