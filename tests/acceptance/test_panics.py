"""A failure of Polars itself, which is no Exception, costs one answer and no thread."""

import socket
from pathlib import Path

from tests.acceptance.bare import answers, gunicorn
from tests.processes import PATIENCE, free_port, until

_THREADS = 2
_PANICS = """
from polars.exceptions import PanicException
begin = post_worker_init
def post_worker_init(worker):
    begin(worker)
    app = worker.wsgi
    def panics(environ, start_response):
        if environ["PATH_INFO"] == "/panic":
            raise PanicException("a fault of Polars")
        return app(environ, start_response)
    worker.wsgi = panics
"""


def test_requests_that_fail_in_polars_get_an_answer_and_leave_all_threads(tmp_path: Path) -> None:
    port = free_port()
    with gunicorn(tmp_path, port, _PANICS, ANALYTICS_THREADS=str(_THREADS)):
        until(lambda: answers(port))
        for _ in range(2 * _THREADS):
            with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE) as client:
                client.sendall(b"GET /panic HTTP/1.0\r\n\r\n")
                answer = client.makefile("rb").read()
            assert answer.startswith(b"HTTP/1.1 500 ")
            assert b'"kind":"internal"' in answer
            assert b"Polars" not in answer
        assert answers(port)
