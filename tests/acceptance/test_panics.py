"""A failure of Polars itself, which is no Exception, costs one answer and no thread."""

import socket
from collections.abc import Iterable
from pathlib import Path
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

from polars.exceptions import PanicException

from tests.acceptance.bare import answers, around, gunicorn
from tests.processes import PATIENCE, free_port, until

_THREADS = 2


def panicking(service: WSGIApplication, environ: WSGIEnvironment, start: StartResponse) -> Iterable[bytes]:
    """Fails in Polars outside of the service's application, which would answer such a failure itself."""
    if environ["PATH_INFO"] == "/panic":
        raise PanicException("a fault of Polars")
    return service(environ, start)


def test_requests_that_fail_in_polars_get_an_answer_and_leave_all_threads(tmp_path: Path) -> None:
    port = free_port()
    with gunicorn(tmp_path, port, around(panicking), ANALYTICS_THREADS=str(_THREADS)):
        until(lambda: answers(port))
        for _ in range(2 * _THREADS):
            with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE) as client:
                client.sendall(b"GET /panic HTTP/1.0\r\n\r\n")
                answer = client.makefile("rb").read()
            assert answer.startswith(b"HTTP/1.1 500 ")
            assert b'"kind":"internal"' in answer
            assert b"Polars" not in answer
        assert answers(port)
