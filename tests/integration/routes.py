"""Every route with a valid query, the kinds of routes, and what tests of HTTP ask and expect."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from http import HTTPStatus
from typing import NamedTuple

import falcon.testing

from analytics_service.app import create_app
from analytics_service.clickhouse.connection import Store
from analytics_service.config.settings import Settings
from analytics_service.sources.simulated import RICH_ADDRESS, SWAP_CONTRACT
from analytics_service.sources.simulated.universe import ID_OF
from analytics_service.state.watcher import HeadWatcher
from analytics_service.web.files import files
from tests.doubles import FirstHeads

Client = falcon.testing.TestClient
# 2025-03-01 12:00:00 UTC.
NOON = 1740830400
HISTORY = f"start={NOON - 86_400}&end={NOON}&period=h"
ASSET = "asset_id=native;uorb"
CONTRACT = f"contract_address={SWAP_CONTRACT}"
USER = f"/api/v1/users/{RICH_ADDRESS}"
USER_ASSET = f"asset_id={ID_OF['ETH']}"
PRICES = "/api/v1/assets/price-history"
LOANS = "/api/v1/analytics/market/history/loans-originated"
LIQUIDATIONS = "/api/v1/analytics/market/history/liquidations"
FILE = f"/static/{files()['main.js'].version}/main.js"


class Route(NamedTuple):
    """A valid query, and the datasets that the answer to it is made from, in alphabetical order."""

    query: str = ""
    datasets: str = ""


HEALTH = "markets positions prices ptoken"
ROUTES: Mapping[str, Route] = {
    "/": Route(),
    FILE: Route(),
    "/healthz": Route(),
    "/readyz": Route(),
    "/docs": Route(),
    "/api/v1/openapi.json": Route(),
    "/api/v1/status/health": Route(),
    "/api/v1/analytics/market/state": Route("", "loans markets positions"),
    "/api/v1/analytics/market/risk": Route("prices=ETH:-20%", HEALTH),
    "/api/v1/analytics/market/risk/ladder": Route(f"{ASSET}&step=50", HEALTH),
    "/api/v1/analytics/market/borrowers": Route("limit=1000", HEALTH),
    "/api/v1/analytics/market/events": Route(f"limit=1000&address={RICH_ADDRESS}", "loans"),
    LOANS: Route(HISTORY, "loans"),
    f"{LOANS}/by-asset": Route(HISTORY, "loans"),
    LIQUIDATIONS: Route(HISTORY, "loans"),
    f"{LIQUIDATIONS}/by-asset": Route(HISTORY, "loans"),
    "/api/v1/analytics/market/history/debt-at-risk": Route(HISTORY, "positions"),
    "/api/v1/analytics/market/history/accounts-at-risk": Route(HISTORY, "positions"),
    "/api/v1/analytics/market/history/liquidatable-debt": Route(HISTORY, "positions"),
    "/api/v1/analytics/market/history/bad-debt": Route(HISTORY, "positions"),
    "/api/v1/analytics/ptoken/unlocks-distribution": Route("with_percent=true", "ptoken"),
    "/api/v1/assets": Route("", "prices"),
    "/api/v1/assets/prices": Route("with_text=true", "prices"),
    PRICES: Route(HISTORY, "prices"),
    "/api/v1/ptoken/params": Route("", "ptoken"),
    "/api/v1/ptoken/state": Route("", "ptoken"),
    "/api/v1/ptoken/staking": Route("", "ptoken"),
    "/api/v1/markets": Route("", "markets prices"),
    "/api/v1/markets/config": Route("", "markets"),
    "/api/v1/markets/supply": Route("", "markets prices"),
    "/api/v1/markets/tvl": Route("", "markets prices"),
    "/api/v1/markets/lend": Route("", "markets"),
    "/api/v1/markets/lend/lookup": Route(ASSET, "markets"),
    "/api/v1/markets/lend/rate-history": Route(HISTORY, "rates"),
    "/api/v1/markets/borrow": Route("", "markets"),
    "/api/v1/markets/borrow/collaterals": Route("", "markets"),
    "/api/v1/markets/borrow/collaterals/lookup": Route(ASSET, "markets"),
    "/api/v1/markets/borrow/debts": Route("", "markets"),
    "/api/v1/markets/borrow/debts/lookup": Route(ASSET, "markets"),
    "/api/v1/markets/borrow/rate-history": Route(HISTORY, "rates"),
    "/api/v1/markets/history/tvl": Route(HISTORY, "markets"),
    "/api/v1/markets/history/net-tvl": Route(HISTORY, "markets"),
    "/api/v1/markets/history/deposits": Route(HISTORY, "markets"),
    "/api/v1/markets/history/collateral": Route(HISTORY, "markets"),
    "/api/v1/markets/history/debt": Route(HISTORY, "markets"),
    "/api/v1/markets/history/utilization": Route(HISTORY, "markets"),
    "/api/v1/markets/merged": Route("", "markets"),
    "/api/v1/markets/merged/lookup": Route(ASSET, "markets"),
    f"{USER}/user": Route("", HEALTH),
    f"{USER}/markets": Route("", HEALTH),
    f"{USER}/markets/merged": Route("", "markets positions"),
    f"{USER}/markets/merged/lookup": Route(USER_ASSET, "markets positions"),
    # The mean rate is weighted by USD values.
    f"{USER}/markets/lend": Route("", "markets positions prices"),
    f"{USER}/markets/lend/lookup": Route(USER_ASSET, "markets positions"),
    f"{USER}/markets/borrow": Route("", HEALTH),
    f"{USER}/markets/borrow/lookup/collateral": Route(USER_ASSET, "markets positions"),
    f"{USER}/markets/borrow/lookup/debt": Route(USER_ASSET, "markets positions"),
    f"{USER}/markets/borrow/sum/collaterals": Route("", "markets positions"),
    f"{USER}/markets/borrow/sum/debts": Route("", "markets positions"),
    f"{USER}/markets/borrow/accounts/0": Route("", HEALTH),
    f"{USER}/markets/borrow/accounts/0/collaterals": Route("", "markets positions"),
    f"{USER}/markets/borrow/accounts/0/debts": Route("", "markets positions"),
    f"{USER}/markets/borrow/accounts/0/health": Route("", HEALTH),
    f"{USER}/ptoken/unlocks": Route("with_percent=true", "ptoken"),
    f"{USER}/ptoken/staking": Route("", "positions ptoken"),
    f"{USER}/ptoken/staking/pools": Route("", "positions ptoken"),
    f"{USER}/ptoken/staking/pools/lookup": Route("index=0", "positions ptoken"),
    f"{USER}/ptoken/staking/unstaking": Route("", "positions ptoken"),
    f"{USER}/wallet/balances": Route("", "positions"),
    f"{USER}/wallet/balance": Route(USER_ASSET, "positions"),
    f"{USER}/history": Route(f"metric=net-value&{HISTORY}", HEALTH),
    f"{USER}/tx-history": Route("limit=1000", "loans"),
    "/api/v1/swap/routes": Route(f"{CONTRACT}&source_denom=uusdc", "routes"),
    "/api/v1/swap/routes/all": Route(CONTRACT, "routes"),
}
SNAPSHOT_ROUTES = [path for path, route in ROUTES.items() if route.datasets]
HISTORIES = [path for path, route in ROUTES.items() if route.query == HISTORY]
# The history of an address, and the paths of current state, which take `at`.
COURSE = f"{USER}/history"
STATES = [path for path in SNAPSHOT_ROUTES if path not in (*HISTORIES, COURSE)]
# One path of each kind of route: those of a kind are answered by the same code.
KINDS = {
    "probe": "/healthz",
    "status": "/api/v1/status/health",
    "document": "/api/v1/openapi.json",
    "documentation": "/docs",
    "list": "/api/v1/assets/prices",
    "object": "/api/v1/markets",
    "lookup": "/api/v1/markets/lend/lookup",
    "user": f"{USER}/user",
    "events": f"{USER}/tx-history",
    "many series": PRICES,
    "one series": LOANS,
}
# The same with what browsers load.
ALL_KINDS = {**KINDS, "web page": "/", "file": FILE}


def at(second: int) -> datetime:
    return datetime.fromtimestamp(second, UTC)


def client_of(
    settings: Settings,
    store: Store | None = None,
    now: int = NOON + 30,
    heads: Callable[[Store], HeadWatcher] = FirstHeads,
) -> Client:
    """The service at a unix second; without `FreshHeads` it shows what there is at its first request."""
    store = store or Store(settings)
    app = create_app(settings, store, lambda: at(now), heads(store))
    # Otherwise each response has another id.
    return Client(app, headers={"X-Request-ID": "test"})


def get(client: Client, path: str, query: str | None = None, **headers: str) -> falcon.testing.Result:
    """The answer to a route's own query, or to another one; `If_None_Match` stands for that header."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return client.simulate_get(path, query_string=ROUTES[path].query if query is None else query, headers=named)


def expect_error(answer: falcon.testing.Result, status: int, kind: str, scope: str) -> str:
    """Check the error body and return its message."""
    body = answer.json
    message = body["error"]["message"]
    assert body == {
        "data": None,
        "error": {"kind": kind, "scope": scope, "message": message},
        "status": status,
        "status_text": HTTPStatus(status).phrase,
    }
    assert (answer.status_code, answer.headers["content-type"]) == (status, "application/json")
    assert answer.headers["cache-control"] == "no-store"
    assert "etag" not in answer.headers
    assert isinstance(message, str)
    assert message
    return message
