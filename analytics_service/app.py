"""The WSGI application: every route, in one list."""

from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from zoneinfo import ZoneInfo

import falcon

from analytics_service.config import Settings
from analytics_service.http import errors
from analytics_service.http.answers import Answers
from analytics_service.http.middleware import CrossOrigin, Negotiation
from analytics_service.http.openapi import document
from analytics_service.http.resource import Resource
from analytics_service.present.markets import COLLATERAL_MARKET, DEBT_MARKET, LEND_MARKET
from analytics_service.resources import analytics, assets, docs, health, markets, metrics, ptoken, swaps, users
from analytics_service.resources.history import MultiSeries, SingleSeries
from analytics_service.resources.snapshots import Schedule, Shared
from analytics_service.resources.view import Views
from analytics_service.series.archive import Archive
from analytics_service.series.memory import Memory
from analytics_service.series.page import Pages
from analytics_service.series.rows import BORROW_RATES, LEND_RATES, LOANS, PRICES
from analytics_service.store.connection import Store
from analytics_service.store.heads import Heads
from jobs.registry import JOBS

_MIB = 2**20


class App(falcon.App[falcon.Request, falcon.Response]):
    """The application, and the memory that its pages come from."""

    memory: Memory


def _now() -> datetime:
    return datetime.now(UTC)


def create_app(
    settings: Settings,
    store: Store | None = None,
    clock: Callable[[], datetime] = _now,
    heads: Heads | None = None,
) -> App:
    """The service over a store. Makes no connection; that happens with the first request, after any fork."""
    memory = Memory(settings.history_memory * _MIB)
    store = store or Store(settings)
    routes = _routes(settings, store, heads or Heads(store), memory, clock)
    described = document(routes)
    routes += [("/api/v1/openapi.json", docs.OpenApi(described)), ("/docs", docs.Docs(described))]

    app = App(middleware=[CrossOrigin(settings.cors_origins), Negotiation()])
    app.memory = memory
    errors.install(app)
    for path, resource in routes:
        app.add_route(path, resource)
    return app


def _routes(
    settings: Settings, store: Store, heads: Heads, memory: Memory, clock: Callable[[], datetime]
) -> list[tuple[str, Resource]]:
    zone = ZoneInfo(settings.tz)
    archive = partial(Archive, store, heads, memory=memory)
    loans = Pages(archive(LOANS))
    # Without a source nothing is scheduled, so nothing can be late.
    every = {} if settings.source == "none" else {job.family: job.every(settings) for job in JOBS.values()}
    shared = Shared(Views(store, heads), Answers(settings.answer_memory * _MIB), Schedule(every, clock))
    monitor = health.Monitor(store, every, clock)
    return [
        ("/healthz", health.Alive()),
        ("/readyz", health.Ready(monitor)),
        ("/metrics", metrics.Metrics(monitor)),
        ("/api/v1/status/health", health.Health(monitor)),
        ("/api/v1/analytics/market/state", analytics.AnalyticsState(shared)),
        (
            "/api/v1/analytics/market/history/loans-originated",
            SingleSeries(shared, loans, zone, "Value of all loans since the first, in USD of their time."),
        ),
        (
            "/api/v1/analytics/market/history/loans-originated/by-asset",
            MultiSeries(shared, loans, zone, "Value of all loans of each asset since its first."),
        ),
        ("/api/v1/analytics/ptoken/unlocks-distribution", ptoken.UnlockGroups(shared)),
        ("/api/v1/assets", assets.Assets(shared)),
        ("/api/v1/assets/prices", assets.Prices(shared)),
        ("/api/v1/assets/price-history", MultiSeries(shared, Pages(archive(PRICES)), zone, "History of prices.")),
        ("/api/v1/ptoken/params", ptoken.params_of(shared)),
        ("/api/v1/ptoken/state", ptoken.state_of(shared)),
        ("/api/v1/ptoken/staking", ptoken.staking_of(shared)),
        ("/api/v1/markets", markets.Markets(shared)),
        ("/api/v1/markets/config", markets.Config(shared)),
        ("/api/v1/markets/supply", markets.MarketSupply(shared)),
        ("/api/v1/markets/lend", markets.MarketList(shared, "lend", LEND_MARKET, "Every lend market.")),
        ("/api/v1/markets/lend/lookup", markets.MarketLookup(shared, "lend", LEND_MARKET, "An asset's lend market.")),
        (
            "/api/v1/markets/lend/rate-history",
            MultiSeries(shared, Pages(archive(LEND_RATES)), zone, "History of lend APRs."),
        ),
        ("/api/v1/markets/borrow", markets.Borrow(shared)),
        (
            "/api/v1/markets/borrow/collaterals",
            markets.MarketList(shared, "collateral", COLLATERAL_MARKET, "Every collateral market."),
        ),
        (
            "/api/v1/markets/borrow/collaterals/lookup",
            markets.MarketLookup(shared, "collateral", COLLATERAL_MARKET, "An asset's collateral market."),
        ),
        ("/api/v1/markets/borrow/debts", markets.MarketList(shared, "debt", DEBT_MARKET, "Every debt market.")),
        (
            "/api/v1/markets/borrow/debts/lookup",
            markets.MarketLookup(shared, "debt", DEBT_MARKET, "An asset's debt market."),
        ),
        (
            "/api/v1/markets/borrow/rate-history",
            MultiSeries(shared, Pages(archive(BORROW_RATES)), zone, "History of borrow APRs."),
        ),
        ("/api/v1/markets/merged", markets.MergedList(shared)),
        ("/api/v1/markets/merged/lookup", markets.MergedLookup(shared)),
        ("/api/v1/users/{address}/user", users.User(shared)),
        ("/api/v1/swap/routes", swaps.Routes(shared)),
        ("/api/v1/swap/routes/all", swaps.AllRoutes(shared)),
    ]
