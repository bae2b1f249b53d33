"""A new worker's first requests, which it sends itself: no caller waits for connections, libraries and caches."""

import logging
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode
from wsgiref.util import setup_testing_defaults

from analytics_service.errors import AnalyticsError
from analytics_service.http.errors import OWN_REQUEST
from analytics_service.market.instants import DAY
from analytics_service.store.datasets.histories import HISTORIES

if TYPE_CHECKING:
    from analytics_service.app import App

log = logging.getLogger(__name__)

_Application = Callable[..., Iterable[bytes]]

# New connections wait as long when gunicorn is replaced.
_READY_SECONDS = 1.0
# Bounded, because requests may keep loading months of history.
_LOAD_SECONDS = 60.0
_STATES = ("/api/v1/assets/prices", "/api/v1/markets", "/api/v1/ptoken/state", "/api/v1/analytics/market/state")


def warm_for_a_while(app: "App", now: int) -> None:
    """Warm in a thread, and wait for it at most a second. It then continues beside requests."""
    warming = threading.Thread(target=_warm_when_able, args=(app, now), name="warm", daemon=True)
    warming.start()
    warming.join(_READY_SECONDS)


def _warm_when_able(app: "App", now: int) -> None:
    """Warm if the heads can be read. Without the store, each request would be refused."""
    with suppress(AnalyticsError):
        app.heads.shown()
        warm_up(app, now, app.memory.wait)


def warm_up(app: _Application, now: int, wait_for_loads: Callable[[float], None]) -> None:
    """Request the newest state and history from a WSGI application, as of a unix second.

    The application then loads history into memory in the background. `wait_for_loads` waits for that, at most for its
    argument in seconds. History is then requested again, so that no caller waits for the first page from memory.
    """
    begun = time.monotonic()
    statuses = [_request(app, path, query) for path, query in [*_pages(now), *((path, "") for path in _STATES)]]
    wait_for_loads(_LOAD_SECONDS)
    statuses += [_request(app, path, query) for path, query in _pages(now - DAY)]
    took = (time.monotonic() - begun) * 1000
    log.info("Warmed up in %.0f ms: %d of %d answers", took, sum(map("200 OK".__eq__, statuses)), len(statuses))


def _pages(end: int) -> list[tuple[str, str]]:
    """Paths and queries of a day of each history. They name a zone to load the names of zones, too."""
    query = urlencode({"start": end - DAY, "end": end, "period": "h", "tz": "UTC"})
    return [(f"/api/v1{path.path}", query) for history in HISTORIES for path in history.paths[:1]]


def _request(app: _Application, path: str, query: str) -> str:
    environ: dict[str, Any] = {"PATH_INFO": path, "QUERY_STRING": query, OWN_REQUEST: True}
    setup_testing_defaults(environ)
    statuses: list[str] = []
    for _chunk in app(environ, lambda status, headers, exc_info=None: statuses.append(status)):
        pass
    return statuses[0]
