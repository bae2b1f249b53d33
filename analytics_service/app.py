"""The WSGI application: every route, in one list."""

from collections.abc import Callable
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import falcon

from analytics_service.config import Settings
from analytics_service.http import errors
from analytics_service.http.middleware import CrossOrigin, Negotiation
from analytics_service.http.openapi import document
from analytics_service.http.resource import Resource
from analytics_service.present.markets import COLLATERAL_MARKET, DEBT_MARKET, LEND_MARKET
from analytics_service.resources import analytics, assets, docs, health, markets, metrics, ptoken, swaps, users
from analytics_service.resources.history import MultiSeries, SingleSeries
from analytics_service.resources.view import Views
from analytics_service.series.rows import BORROW_RATES, LEND_RATES, LOANS, PRICES
from analytics_service.store.connection import Store
from analytics_service.store.ledger import Heads
from jobs.registry import JOBS

App = falcon.App[falcon.Request, falcon.Response]


def _now() -> datetime:
    return datetime.now(UTC)


def create_app(settings: Settings, store: Store | None = None, clock: Callable[[], datetime] = _now) -> App:
    """The service over a store. Makes no connection; that happens with the first request, after any fork."""
    routes = _routes(settings, store or Store(settings), clock)
    described = document(routes)
    routes += [("/api/v1/openapi.json", docs.OpenApi(described)), ("/docs", docs.Docs(described))]

    app: App = falcon.App(middleware=[CrossOrigin(settings.cors_origins), Negotiation()])
    errors.install(app)
    for path, resource in routes:
        app.add_route(path, resource)
    return app


def _routes(settings: Settings, store: Store, clock: Callable[[], datetime]) -> list[tuple[str, Resource]]:
    heads = Heads(store)
    views = Views(store, heads)
    zone = ZoneInfo(settings.tz)
    # Without a source nothing is scheduled, so nothing can be late.
    every = {} if settings.source == "none" else {job.family: job.every(settings) for job in JOBS.values()}
    monitor = health.Monitor(store, every, clock)
    return [
        ("/healthz", health.Alive()),
        ("/readyz", health.Ready(monitor)),
        ("/metrics", metrics.Metrics(monitor)),
        ("/api/v1/status/health", health.Status(monitor)),
        ("/api/v1/analytics/market/state", analytics.AnalyticsState(views)),
        (
            "/api/v1/analytics/market/history/loans-originated",
            SingleSeries(store, heads, LOANS, zone, "Value of all loans since the first, in USD of their time."),
        ),
        (
            "/api/v1/analytics/market/history/loans-originated/by-asset",
            MultiSeries(store, heads, LOANS, zone, "Value of all loans of each asset since its first."),
        ),
        ("/api/v1/analytics/ptoken/unlocks-distribution", ptoken.UnlockGroups(views)),
        ("/api/v1/assets", assets.Assets(views)),
        ("/api/v1/assets/prices", assets.Prices(views)),
        ("/api/v1/assets/price-history", MultiSeries(store, heads, PRICES, zone, "History of prices.")),
        ("/api/v1/ptoken/params", ptoken.params_of(views)),
        ("/api/v1/ptoken/state", ptoken.state_of(views)),
        ("/api/v1/ptoken/staking", ptoken.staking_of(views)),
        ("/api/v1/markets", markets.Markets(views)),
        ("/api/v1/markets/config", markets.Config(views)),
        ("/api/v1/markets/supply", markets.MarketSupply(views)),
        ("/api/v1/markets/lend", markets.MarketList(views, "lend", LEND_MARKET, "Every lend market.")),
        ("/api/v1/markets/lend/lookup", markets.MarketLookup(views, "lend", LEND_MARKET, "An asset's lend market.")),
        ("/api/v1/markets/lend/rate-history", MultiSeries(store, heads, LEND_RATES, zone, "History of lend APRs.")),
        ("/api/v1/markets/borrow", markets.Borrow(views)),
        (
            "/api/v1/markets/borrow/collaterals",
            markets.MarketList(views, "collateral", COLLATERAL_MARKET, "Every collateral market."),
        ),
        (
            "/api/v1/markets/borrow/collaterals/lookup",
            markets.MarketLookup(views, "collateral", COLLATERAL_MARKET, "An asset's collateral market."),
        ),
        ("/api/v1/markets/borrow/debts", markets.MarketList(views, "debt", DEBT_MARKET, "Every debt market.")),
        (
            "/api/v1/markets/borrow/debts/lookup",
            markets.MarketLookup(views, "debt", DEBT_MARKET, "An asset's debt market."),
        ),
        (
            "/api/v1/markets/borrow/rate-history",
            MultiSeries(store, heads, BORROW_RATES, zone, "History of borrow APRs."),
        ),
        ("/api/v1/markets/merged", markets.MergedList(views)),
        ("/api/v1/markets/merged/lookup", markets.MergedLookup(views)),
        ("/api/v1/users/{address}/user", users.User(views)),
        ("/api/v1/swap/routes", swaps.Routes(views)),
        ("/api/v1/swap/routes/all", swaps.AllRoutes(views)),
    ]
