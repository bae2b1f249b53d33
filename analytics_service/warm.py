"""A worker's first questions, asked by itself: so that no caller waits for connections, libraries and caches."""

import logging
import time
from collections.abc import Callable, Iterable
from typing import Any
from urllib.parse import urlencode
from wsgiref.util import setup_testing_defaults

log = logging.getLogger(__name__)

_HISTORIES = (
    "/api/v1/assets/price-history",
    "/api/v1/markets/lend/rate-history",
    "/api/v1/markets/borrow/rate-history",
    "/api/v1/analytics/market/history/loans-originated",
)
_STATES = ("/api/v1/assets/prices", "/api/v1/markets", "/api/v1/ptoken/state")


def warm(app: Callable[..., Iterable[bytes]], now: int) -> None:
    """Ask a WSGI application for its newest state and history, as of a unix second.

    From then on histories fill their memory in the background. A store that is away is waited for: see App.warm.
    """
    begun = time.monotonic()
    page = urlencode({"start": now - 86_400, "end": now, "period": "h"})
    asked = [*((path, page) for path in _HISTORIES), *((path, "") for path in _STATES)]
    statuses = [_ask(app, path, query) for path, query in asked]
    took = (time.monotonic() - begun) * 1000
    log.info("Warmed up in %.0f ms: %d of %d answers", took, sum(map("200 OK".__eq__, statuses)), len(statuses))


def _ask(app: Callable[..., Iterable[bytes]], path: str, query: str) -> str:
    environ: dict[str, Any] = {"PATH_INFO": path, "QUERY_STRING": query}
    setup_testing_defaults(environ)
    answers: list[str] = []
    for _part in app(environ, lambda status, headers, exc_info=None: answers.append(status)):
        pass
    return answers[0]
