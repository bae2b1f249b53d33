"""The WSGI application: every route, in one list."""

from collections.abc import Callable
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import falcon

from analytics_service.config import Settings
from analytics_service.http import errors
from analytics_service.http.middleware import CrossOrigin, Negotiation
from analytics_service.resources import assets, health
from analytics_service.resources.history import MultiSeriesHistory
from analytics_service.series.rows import PRICES
from analytics_service.store.connection import Store
from analytics_service.store.ledger import Heads

App = falcon.App[falcon.Request, falcon.Response]


def _now() -> datetime:
    return datetime.now(UTC)


def create_app(settings: Settings, store: Store | None = None, clock: Callable[[], datetime] = _now) -> App:
    """The service over a store. Makes no connection; that happens with the first request, after any fork."""
    store = store or Store(settings)
    heads = Heads(store)
    zone = ZoneInfo(settings.tz)
    every = {} if settings.source == "none" else {PRICES.family: settings.prices_every}
    monitor = health.Monitor(store, every, clock)

    app: App = falcon.App(middleware=[CrossOrigin(settings.cors_origins), Negotiation()])
    errors.install(app)
    for path, resource in (
        ("/healthz", health.Alive()),
        ("/readyz", health.Ready(monitor)),
        ("/api/v1/status/health", health.Status(monitor)),
        ("/api/v1/assets", assets.Assets(store, heads)),
        ("/api/v1/assets/prices", assets.Prices(store, heads)),
        ("/api/v1/assets/price-history", MultiSeriesHistory(store, heads, PRICES, zone)),
    ):
        app.add_route(path, resource)
    return app
