"""A worker's first questions, asked by itself: so that no caller waits for connections, libraries and caches."""

import logging
import time
from collections.abc import Callable, Iterable
from typing import Any
from urllib.parse import urlencode
from wsgiref.util import setup_testing_defaults

log = logging.getLogger(__name__)

_DAY = 86_400
_HISTORIES = (
    "/api/v1/assets/price-history",
    "/api/v1/markets/lend/rate-history",
    "/api/v1/markets/borrow/rate-history",
    "/api/v1/analytics/market/history/loans-originated",
)
_STATES = ("/api/v1/assets/prices", "/api/v1/markets", "/api/v1/ptoken/state")


def warm(app: Callable[..., Iterable[bytes]], now: int, settle: Callable[[], None]) -> None:
    """Ask a WSGI application for its newest state and history, as of a unix second.

    That makes histories fill their memory in the background. `settle` waits until they have; then they are asked once
    more, so that the first page that comes from memory is not a caller's. A store that is away is waited for: see
    App.warm.
    """
    begun = time.monotonic()
    statuses = [_ask(app, path, query) for path, query in [*_pages(now), *((path, "") for path in _STATES)]]
    settle()
    statuses += [_ask(app, path, query) for path, query in _pages(now - _DAY)]
    took = (time.monotonic() - begun) * 1000
    log.info("Warmed up in %.0f ms: %d of %d answers", took, sum(map("200 OK".__eq__, statuses)), len(statuses))


def _pages(end: int) -> list[tuple[str, str]]:
    """A day of each history. Names of zones are looked up with the first one that is given."""
    query = urlencode({"start": end - _DAY, "end": end, "period": "h", "tz": "UTC"})
    return [(path, query) for path in _HISTORIES]


def _ask(app: Callable[..., Iterable[bytes]], path: str, query: str) -> str:
    environ: dict[str, Any] = {"PATH_INFO": path, "QUERY_STRING": query}
    setup_testing_defaults(environ)
    answers: list[str] = []
    for _part in app(environ, lambda status, headers, exc_info=None: answers.append(status)):
        pass
    return answers[0]
