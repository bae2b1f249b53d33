"""The WSGI application: every route, in one list for each bind."""

import os
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from functools import cache, partial
from typing import Any
from zoneinfo import ZoneInfo

import falcon

from analytics_service.clickhouse.connection import Store
from analytics_service.concurrency import QuerySlots, deadline
from analytics_service.config.settings import Settings
from analytics_service.history.memory import Memory
from analytics_service.history.reader import HistoryReader
from analytics_service.http import errors
from analytics_service.http.answer_cache import AnswerCache
from analytics_service.http.api_keys import keys_at_start
from analytics_service.http.errors import own_host
from analytics_service.http.instruments import Instruments
from analytics_service.http.middleware import Middleware
from analytics_service.http.openapi import openapi_document
from analytics_service.http.resource import Resource
from analytics_service.present.status import OPERATIONS, STATUS
from analytics_service.resources import (
    analytics,
    assets,
    docs,
    events,
    markets,
    metrics,
    users,
    web_page,
)
from analytics_service.resources.current import Current
from analytics_service.resources.history import HistoryPath
from analytics_service.resources.portfolio_history import PortfolioHistory
from analytics_service.resources.snapshots import Schedule, SharedState
from analytics_service.state.health import FILLING, Monitor
from analytics_service.state.view import Views
from analytics_service.state.watcher import HeadWatcher
from analytics_service.store.datasets.histories import HISTORIES, PRICES
from analytics_service.web import files
from jobs.registry import intervals

_MIB = 2**20
# Deadline of a request, in seconds from when a thread takes it (rule 8.9, query slots).
_REQUEST_SECONDS = 5.0
Routes = list[tuple[str, Resource]]


class App(falcon.App[falcon.Request, falcon.Response]):
    """The application, and the objects that its answers come from.

    `operators` answers requests that arrive at `metrics_endpoint` (rule 1.4, operators). Only gunicorn reports
    where a request arrived; under another server `operators` answers nothing.
    """

    operators: falcon.App[falcon.Request, falcon.Response]
    metrics_endpoint: int | str | None
    slots: QuerySlots
    heads: HeadWatcher
    memory: Memory
    instruments: Instruments
    any_origin: bool
    """Whether web pages of any origin may read the answers."""

    def __call__(self, env: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        # Falcon reserves this method name, and refuses it before it calls any middleware.
        if env["REQUEST_METHOD"] == "WEBSOCKET":
            env["REQUEST_METHOD"] = "websocket"
        with deadline(_REQUEST_SECONDS, self.slots):
            if self.metrics_endpoint is not None and _endpoint(env) == self.metrics_endpoint:
                return self.operators(env, start_response)
            return super().__call__(env, start_response)


def _endpoint(env: dict[str, Any]) -> int | str | None:
    """The port or Unix socket that accepted the connection. On a Unix socket, SERVER_PORT comes from a header."""
    connection = env.get("gunicorn.socket")
    address = None if connection is None else connection.getsockname()
    return address[1] if isinstance(address, tuple) else address


def _now() -> datetime:
    return datetime.now(UTC)


def create_app(
    settings: Settings,
    store: Store | None = None,
    clock: Callable[[], datetime] = _now,
    heads: HeadWatcher | None = None,
) -> App:
    """The service over a store. It connects at the first request, which is after any fork."""
    instruments = Instruments()
    store = store or Store(settings, instruments.query)
    heads = heads or HeadWatcher(store)
    memory = Memory(settings.history_memory * _MIB, instruments.memory("history"))
    current_intervals = partial(heads.intervals, intervals(settings))
    is_filling = partial(os.path.exists, os.environ.get(FILLING, ""))
    answers = AnswerCache(settings.answer_memory * _MIB, instruments.memory("answers"))
    # A large page takes seconds, and memory.
    large_pages = QuerySlots(4, most_waiting=4)
    # A state of the past takes half a second of processor time, and a dozen queries.
    moments = QuerySlots(2, most_waiting=64)
    shared = SharedState(
        Views(store, heads),
        answers,
        Schedule(current_intervals, clock, is_filling),
        large_pages,
        moments,
        ZoneInfo(settings.tz),
        settings.events_lateness,
    )
    monitor = Monitor(
        heads,
        current_intervals,
        clock,
        is_configured=settings.source is not None,
        ready_max_age=settings.ready_max_age,
        is_filling=is_filling,
    )
    health_path = metrics.Operational("Health of the service, part by part.", STATUS, monitor.check)
    routes: Routes = [*metrics.probes(monitor), ("/api/v1/status/health", health_path), *_current(shared)]
    readers = {history: HistoryReader(store, history, memory) for history in HISTORIES}
    for reader in readers.values():
        routes += _history(shared, reader)
    routes.append(("/api/v1/users/{address}/history", PortfolioHistory(shared, readers[PRICES])))
    asks_for_keys = settings.api_keys_file is not None
    # The first request makes it, because it takes longer than the rest of this function.
    described = tuple(routes)
    api_document = cache(partial(openapi_document, described, asks_for_keys=asks_for_keys))
    routes += [
        ("/api/v1/openapi.json", docs.OpenApi(api_document)),
        ("/docs", docs.Docs(api_document, described)),
        ("/", web_page.WebPage(keys=str(asks_for_keys).lower())),
        (f"/{files.ROOT}/{{version}}/{{name}}", web_page.Files()),
    ]

    keys = keys_at_start(settings.api_keys_file) if settings.api_keys_file else None
    app = App(middleware=Middleware(instruments, keys, settings.cors_origins, logs=settings.access_log))
    app.slots, app.heads, app.memory, app.any_origin = store.slots, heads, memory, settings.cors_origins == "*"
    app.metrics_endpoint, app.instruments = settings.metrics_endpoint, instruments
    errors.add_error_handlers(app)
    _add(app, routes)
    scrape = metrics.Metrics(instruments, metrics.Gauges(monitor, settings.source))
    report_path = metrics.Operational("The state of every part of the service.", OPERATIONS, monitor.check)
    app.operators = _operators(
        settings.metrics_bind, [*metrics.probes(monitor), ("/metrics", scrape), ("/operations", report_path)]
    )
    return app


def _operators(bind: str, routes: Routes) -> "falcon.App[falcon.Request, falcon.Response]":
    """The application on the operators' bind. Web pages of other origins cannot read its answers."""
    app: falcon.App[falcon.Request, falcon.Response] = falcon.App(middleware=Middleware(is_own_host=own_host(bind)))
    errors.add_error_handlers(app, f"the paths here are {', '.join(sorted(path for path, _ in routes))}")
    _add(app, routes)
    return app


def _add(app: falcon.App[falcon.Request, falcon.Response], routes: Routes) -> None:
    for path, resource in routes:
        app.add_route(path, resource)


def _history(shared: SharedState, reader: HistoryReader) -> Routes:
    return [(f"/api/v1{path.path}", HistoryPath(shared, reader, path)) for path in reader.history.paths]


def _current(shared: SharedState) -> Routes:
    paths = (*analytics.PATHS, *assets.PATHS, *markets.PATHS, *users.PATHS, *events.PATHS, *assets.SWAP_PATHS)
    return [(f"/api/v1/{path.path}", Current(shared, path)) for path in paths]
