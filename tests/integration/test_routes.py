"""What holds for every route: its envelope, how long it may be cached, what it is made from (rules 1.1 and 7.1)."""

import falcon.testing
from falcon.inspect import inspect_routes

from analytics_service.sources.simulated import RICH_ADDRESS
from tests.integration.routes import (
    COURSE,
    FILE,
    HISTORIES,
    NOON,
    ROUTES,
    SNAPSHOT_ROUTES,
    USER,
    Client,
    expect_error,
    get,
)

# Seconds between snapshots of a dataset.
INTERVALS = {"prices": 60, "rates": 60, "markets": 60, "loans": 300, "ptoken": 300, "positions": 300, "routes": 3600}
WITHOUT_SNAPSHOTS = {
    "/": "no-cache",
    FILE: "public, max-age=31536000, immutable",
    "/docs": "public, max-age=300",
    "/api/v1/openapi.json": "public, max-age=300",
}
# Paths that add datasets when they show USD values. All others that take with_value are made from prices anyway.
VALUED = {
    "/api/v1/analytics/ptoken/unlocks-distribution": "prices ptoken",
    "/api/v1/ptoken/params": "prices ptoken",
    "/api/v1/ptoken/state": "prices ptoken",
    "/api/v1/ptoken/staking": "prices ptoken",
    "/api/v1/markets/lend": "markets prices",
    "/api/v1/markets/lend/lookup": "markets prices",
    "/api/v1/markets/borrow": "markets prices",
    "/api/v1/markets/borrow/collaterals/lookup": "markets prices",
    "/api/v1/markets/borrow/debts/lookup": "markets prices",
    "/api/v1/markets/merged": "markets prices",
    "/api/v1/markets/merged/lookup": "markets prices",
    f"{USER}/user": "markets positions prices ptoken",
    f"{USER}/markets/merged": "markets positions prices",
    f"{USER}/ptoken/unlocks": "prices ptoken",
    f"{USER}/ptoken/staking/pools": "positions prices ptoken",
    # Markets determine the prices of receipt tokens, which a wallet or an event may have.
    f"{USER}/wallet/balances": "markets positions prices",
    f"{USER}/wallet/balance": "markets positions prices",
    f"{USER}/tx-history": "loans markets prices",
    "/api/v1/analytics/market/events": "loans markets prices",
}


def made_from(answer: falcon.testing.Result) -> str:
    """The datasets in the header of an answer, whose newest snapshots are of noon."""
    assert answer.status_code == 200, answer.text
    instants = dict(part.split("=@") for part in answer.headers["as-of"].split(", "))
    assert {*instants.values()} == {str(NOON)}
    # Positions before their newest snapshot are a rewrite. The service's clock is half a minute past noon.
    seconds = 30 if "positions" in instants else 0
    assert answer.headers["last-modified"] == f"Sat, 01 Mar 2025 12:00:{seconds:02} GMT"
    return " ".join(instants)


def test_the_table_lists_every_route(protocol: Client) -> None:
    routes = inspect_routes(protocol.app)
    listed = {path.replace(RICH_ADDRESS, "{address}").replace("/accounts/0", "/accounts/{index}") for path in ROUTES}
    assert listed - {FILE} | {"/static/{version}/{name}"} == {route.path for route in routes}
    for route in routes:
        methods = {method.method for method in route.methods if not method.internal}
        assert methods == {"GET", "HEAD", "OPTIONS"}, route.path


def test_every_route_answers_in_the_envelope_and_says_what_it_is_made_from(protocol: Client) -> None:
    """And whether it has files, and how long it may be cached: until the next snapshot of a dataset that it is made
    from; snapshots are half a minute old. tests/integration/test_openapi.py checks the answers against their schemas.
    """
    for path, route in ROUTES.items():
        answer = get(protocol, path)
        assert answer.status == "200 OK", (path, answer.text)
        if path not in WITHOUT_SNAPSHOTS:
            body = answer.json
            counted = {"count": len(body["data"])} if isinstance(body["data"], list) else {}
            assert answer.headers["content-type"] == "application/json", path
            assert body["data"] is not None, path
            assert body == {"data": body["data"], "error": None, "status": 200, "status_text": "OK", **counted}, path
        cached = WITHOUT_SNAPSHOTS.get(path, "no-store")
        if route.datasets:
            assert made_from(answer) == route.datasets, path
            cached = f"public, max-age={min(INTERVALS[dataset] for dataset in route.datasets.split()) - 30}"
        else:
            assert not {"as-of", "last-modified"} & answer.headers.keys(), path
        assert answer.headers["cache-control"] == cached, path
        has_files = "content-disposition" in get(protocol, path, Accept="text/csv").headers
        assert (answer.headers["vary"] == "Accept, Accept-Encoding") == has_files, path
        assert has_files or path not in (*HISTORIES, COURSE)


def test_values_and_sums_add_the_datasets_that_they_are_made_from(protocol: Client) -> None:
    valued = {path: made_from(get(protocol, path, f"{ROUTES[path].query}&with_value=true")) for path in VALUED}
    assert valued == VALUED
    # Only the newer shapes of lists have sums.
    for path, query, datasets in (
        ("/api/v1/markets", "shape=older", "markets"),
        ("/api/v1/markets", "shape=older&with_value=true", "markets prices"),
        ("/api/v1/markets/lend", "shape=newer", "markets prices"),
        ("/api/v1/markets/lend/lookup", f"{ROUTES['/api/v1/markets/lend/lookup'].query}&shape=newer", "markets"),
    ):
        assert made_from(get(protocol, path, query)) == datasets


def test_every_path_that_shows_snapshots_is_unavailable_before_the_first_one(empty: Client) -> None:
    for path in SNAPSHOT_ROUTES:
        answer = get(empty, path)
        assert "snapshot" in expect_error(answer, 503, "unavailable", "server")
        assert int(answer.headers["retry-after"]) > 0
