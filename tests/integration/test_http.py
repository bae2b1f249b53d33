"""What holds on every route: envelope, errors, methods and headers (rules 1.1, 3.1 to 3.3 and 7.1)."""

import gzip
import re
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal

import falcon.testing
import pytest
from falcon.inspect import inspect_routes

from analytics_service.app import App, create_app
from analytics_service.config.settings import Settings
from analytics_service.resources import metrics
from analytics_service.sources.simulated import EMPTY_ADDRESS, RICH_ADDRESS, SWAP_CONTRACT
from analytics_service.sources.simulated.universe import LISTINGS
from analytics_service.state.heads import Heads
from analytics_service.store.connection import Store
from analytics_service.store.ledger import LEDGER, Run, ledger_frame
from analytics_service.store.scheduled_runs import ScheduledRun, scheduled_runs
from jobs.registry import JOBS
from tests.doubles import FirstHeads, FreshHeads, Statement, WatchedStore
from tests.integration.conftest import Simulated
from tests.integration.databases import database
from tests.integration.pages import commit
from tests.samples import samples

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

NOON = Simulated.noon
HISTORY = f"start={NOON - 86_400}&end={NOON}&period=h"
ASSET = "asset_id=native;uorb"
CONTRACT = f"contract_address={SWAP_CONTRACT}"
NEWER = "shape=newer"
LOANS = "/api/v1/analytics/market/history/loans-originated"
LIQUIDATIONS = "/api/v1/analytics/market/history/liquidations"
ONE_SERIES = (LOANS, LIQUIDATIONS, "/api/v1/markets/history/tvl", "/api/v1/markets/history/net-tvl")
USER = f"/api/v1/users/{RICH_ADDRESS}"
ETH = next(one.asset.id for one in LISTINGS.values() if one.asset.symbol == "ETH")
# Every path with a valid query.
ROUTES = {
    "/healthz": "",
    "/readyz": "",
    "/docs": "",
    "/api/v1/openapi.json": "",
    "/api/v1/status/health": "",
    "/api/v1/analytics/market/state": "",
    **dict.fromkeys(ONE_SERIES, HISTORY),
    f"{LOANS}/by-asset": HISTORY,
    f"{LIQUIDATIONS}/by-asset": HISTORY,
    "/api/v1/analytics/ptoken/unlocks-distribution": "with_percent=true",
    "/api/v1/assets": "",
    "/api/v1/assets/prices": "with_text=true",
    "/api/v1/assets/price-history": HISTORY,
    "/api/v1/ptoken/params": "",
    "/api/v1/ptoken/state": "",
    "/api/v1/ptoken/staking": "",
    "/api/v1/markets": "",
    "/api/v1/markets/config": "",
    "/api/v1/markets/supply": "",
    "/api/v1/markets/tvl": "",
    "/api/v1/markets/lend": "",
    "/api/v1/markets/lend/lookup": ASSET,
    "/api/v1/markets/lend/rate-history": HISTORY,
    "/api/v1/markets/borrow": "",
    "/api/v1/markets/borrow/collaterals": "",
    "/api/v1/markets/borrow/collaterals/lookup": ASSET,
    "/api/v1/markets/borrow/debts": "",
    "/api/v1/markets/borrow/debts/lookup": ASSET,
    "/api/v1/markets/borrow/rate-history": HISTORY,
    "/api/v1/markets/history/deposits": HISTORY,
    "/api/v1/markets/history/collateral": HISTORY,
    "/api/v1/markets/history/debt": HISTORY,
    "/api/v1/markets/history/utilization": HISTORY,
    "/api/v1/markets/merged": "",
    "/api/v1/markets/merged/lookup": ASSET,
    f"{USER}/user": "",
    f"{USER}/markets": "",
    f"{USER}/markets/merged": "",
    f"{USER}/markets/merged/lookup": f"asset_id={ETH}",
    f"{USER}/markets/lend": "",
    f"{USER}/markets/lend/lookup": f"asset_id={ETH}",
    f"{USER}/markets/borrow": "",
    f"{USER}/markets/borrow/lookup/collateral": f"asset_id={ETH}",
    f"{USER}/markets/borrow/lookup/debt": f"asset_id={ETH}",
    f"{USER}/markets/borrow/sum/collaterals": "",
    f"{USER}/markets/borrow/sum/debts": "",
    f"{USER}/markets/borrow/accounts/0": "",
    f"{USER}/markets/borrow/accounts/0/collaterals": "",
    f"{USER}/markets/borrow/accounts/0/debts": "",
    f"{USER}/markets/borrow/accounts/0/health": "",
    f"{USER}/ptoken/unlocks": "with_percent=true",
    f"{USER}/ptoken/staking": "",
    f"{USER}/ptoken/staking/pools": "",
    f"{USER}/ptoken/staking/pools/lookup": "index=0",
    f"{USER}/ptoken/staking/unstaking": "",
    f"{USER}/wallet/balances": "",
    f"{USER}/wallet/balance": f"asset_id={ETH}",
    f"{USER}/tx-history": "limit=1000",
    "/api/v1/swap/routes": f"{CONTRACT}&source_denom=uusdc",
    "/api/v1/swap/routes/all": CONTRACT,
}
# Paths that show no snapshots; all others do.
OPERATIONAL = ("/healthz", "/readyz", "/docs", "/api/v1/openapi.json", "/api/v1/status/health")
# Headers that let browsers read an answer from another origin.
CROSS_ORIGIN_HEADERS = ("access-control-allow-origin", "access-control-expose-headers")
SNAPSHOT_ROUTES = [path for path in ROUTES if path not in OPERATIONAL]
DOCUMENTS = ("/docs", "/api/v1/openapi.json")
JSON_ROUTES = [path for path in ROUTES if path != "/docs"]
ENVELOPED = [path for path in JSON_ROUTES if path != "/api/v1/openapi.json"]
CODINGS = {"identity": bytes, "gzip": gzip.decompress, "zstd": zstd.decompress}
HISTORIES = [path for path in ROUTES if ROUTES[path] == HISTORY]

Client = falcon.testing.TestClient


def client_of(
    settings: Settings,
    store: Store | None = None,
    now: int = NOON + 30,
    heads: Callable[[Store], Heads] = FirstHeads,
) -> Client:
    """The service at a unix second; without `FreshHeads` it shows what there is at its first request."""
    store = store or Store(settings)
    app = create_app(settings, store, lambda: at(now), heads(store))
    # Otherwise each response has another id.
    return falcon.testing.TestClient(app, headers={"X-Request-ID": "test"})


def operators_of(settings: Settings, store: Store | None = None, now: int = NOON + 30) -> Client:
    """What is on the operators' bind of that service."""
    app = client_of(settings, store, now).app
    assert isinstance(app, App)
    return falcon.testing.TestClient(app.operators)


def at(second: int) -> datetime:
    return datetime.fromtimestamp(second, UTC)


@pytest.fixture(scope="module")
def protocol(simulated: Simulated) -> Client:
    """The service with a complete snapshot of the simulated protocol, half a minute old."""
    return client_of(simulated.settings, simulated.store, simulated.noon + 30)


@pytest.fixture(scope="module")
def client(server: Settings) -> Iterator[Client]:
    """The service with the prices of two assets, half a minute old."""
    prices = [(NOON - 3600, Decimal("1.5")), (NOON, Decimal("1572.5"))]
    settings = replace(server, clickhouse_database="test_two_assets")
    with database(settings) as store:
        commit(store, {"token;a": prices, "token;b": [(NOON, Decimal(0))]})
        yield client_of(settings, store)


@pytest.fixture(scope="module")
def empty(server: Settings) -> Iterator[Client]:
    """The service before any snapshot."""
    settings = replace(server, clickhouse_database="test_empty")
    with database(settings) as store:
        yield client_of(settings, store)


def expect_error(answer: falcon.testing.Result, status: int, kind: str, scope: str) -> str:
    """Check the error body and return its message."""
    body = answer.json
    message = body["error"]["message"]
    phrase = {400: "Bad Request", 404: "Not Found", 405: "Method Not Allowed", 406: "Not Acceptable"}
    phrase |= {500: "Internal Server Error", 503: "Service Unavailable"}
    assert body == {
        "data": None,
        "error": {"kind": kind, "scope": scope, "message": message},
        "status": status,
        "status_text": phrase[status],
    }
    assert (answer.status_code, answer.headers["content-type"]) == (status, "application/json")
    assert answer.headers["cache-control"] == "no-store"
    assert "etag" not in answer.headers
    assert isinstance(message, str)
    assert message
    return message


def test_the_table_lists_every_route(protocol: Client) -> None:
    listed = {path.replace(RICH_ADDRESS, "{address}").replace("/accounts/0", "/accounts/{index}") for path in ROUTES}
    pages = {"/", "/static/{version}/{name}"}
    assert listed | pages == {route.path for route in inspect_routes(protocol.app)}


@pytest.mark.parametrize("path", ENVELOPED)
def test_a_200_has_the_envelope(protocol: Client, path: str) -> None:
    answer = protocol.simulate_get(path, query_string=ROUTES[path])
    assert answer.status == "200 OK"
    assert answer.headers["content-type"] == "application/json"
    assert answer.json["error"] is None
    assert (answer.json["status"], answer.json["status_text"]) == (200, "OK")
    assert answer.json["data"] is not None
    is_list = isinstance(answer.json["data"], list)
    assert answer.json.get("count") == (len(answer.json["data"]) if is_list else None)


@pytest.mark.parametrize("path", ROUTES)
@pytest.mark.parametrize("coding", CODINGS)
def test_head_has_the_headers_of_get_and_no_body(protocol: Client, path: str, coding: str) -> None:
    accepted = {"Accept-Encoding": coding}
    got = protocol.simulate_get(path, query_string=ROUTES[path], headers=accepted)
    head = protocol.simulate_head(path, query_string=ROUTES[path], headers=accepted)
    assert (head.status, head.content, dict(head.headers)) == (got.status, b"", dict(got.headers))
    assert int(head.headers["content-length"]) == len(got.content)


@pytest.mark.parametrize("path", ROUTES)
def test_an_answer_is_the_same_in_every_requested_coding(protocol: Client, path: str) -> None:
    got = {
        coding: protocol.simulate_get(path, query_string=ROUTES[path], headers={"Accept-Encoding": coding})
        for coding in CODINGS
    }
    plain = got["identity"].content
    assert got["identity"].headers.get("content-encoding") is None
    for coding in ("gzip", "zstd"):
        encoding = got[coding].headers.get("content-encoding")
        assert encoding == (coding if len(plain) >= 1024 else None)
        assert (CODINGS[coding](got[coding].content) if encoding else got[coding].content) == plain
        assert (len(got[coding].content) < len(plain)) == (encoding is not None)
    vary = "Accept, Accept-Encoding" if path in HISTORIES else "Accept-Encoding"
    assert {answer.headers["vary"] for answer in got.values()} == {vary}
    assert len({answer.headers["etag"] for answer in got.values()}) == len(CODINGS)


@pytest.mark.parametrize("path", ROUTES)
@pytest.mark.parametrize("coding", CODINGS)
@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_a_caller_that_has_the_answer_gets_a_304_without_a_body(
    protocol: Client, path: str, coding: str, method: str
) -> None:
    def request(if_none_match: str) -> falcon.testing.Result:
        headers = {"Accept-Encoding": coding, "If-None-Match": if_none_match}
        return protocol.simulate_request(method, path, query_string=ROUTES[path], headers=headers)

    full = request('"other"')
    etag = full.headers["etag"]
    assert re.fullmatch(r'"[!-~]+"', etag)
    kept = {"etag", "cache-control", "vary", "last-modified", "as-of", "x-request-id", *CROSS_ORIGIN_HEADERS}
    kept &= set(full.headers)
    for if_none_match in (etag, f"W/{etag}", f'"other", {etag}', "*"):
        answer = request(if_none_match)
        assert (answer.status_code, answer.content) == (304, b"")
        assert dict(answer.headers) == {name: full.headers[name] for name in kept}
    assert ("last-modified" in kept) == (path in SNAPSHOT_ROUTES)


@pytest.mark.parametrize("path", ROUTES)
def test_an_answer_may_be_cached_until_its_next_snapshot_is_due(protocol: Client, path: str) -> None:
    """Prices, rates and markets are due in half a minute, most other families four minutes later.

    The protocol token and wallets without values are not made from prices.
    """
    later = {"/api/v1/swap/routes": 3570, "/api/v1/swap/routes/all": 3570}
    slow = ("loans", "liquidations", "ptoken", "tx-history", "wallet")
    later |= {path: 270 for path in ROUTES if any(name in path for name in slow)}
    expected = f"public, max-age={later.get(path, 300 if path in DOCUMENTS else 30)}"
    answer = protocol.simulate_get(path, query_string=ROUTES[path])
    no_store = path in OPERATIONAL and path not in DOCUMENTS
    assert answer.headers["cache-control"] == ("no-store" if no_store else expected)


@pytest.mark.parametrize("path", ROUTES)
@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "TRACE"])
def test_other_methods_are_not_allowed(protocol: Client, path: str, method: str) -> None:
    answer = protocol.simulate_request(method, path)
    expect_error(answer, 405, "method_not_allowed", "client")
    assert answer.headers["allow"] == "GET, HEAD, OPTIONS"


@pytest.mark.filterwarnings("ignore:Unknown REQUEST_METHOD")
@pytest.mark.parametrize("method", ["BREW", "WEBSOCKET"])
def test_an_unknown_method_is_not_allowed(client: Client, method: str) -> None:
    """Falcon has a method of its own that is called WEBSOCKET."""
    answer = client.simulate_request(method, "/api/v1/assets")
    expect_error(answer, 405, "method_not_allowed", "client")
    assert answer.headers["allow"] == "GET, HEAD, OPTIONS"


@pytest.mark.parametrize("path", ROUTES)
def test_options_lists_methods_and_allows_preflight_requests(protocol: Client, path: str) -> None:
    plain = protocol.simulate_options(path)
    assert (plain.status_code, plain.headers["allow"]) == (200, "GET, HEAD, OPTIONS")
    preflight = protocol.simulate_options(
        path, headers={"Origin": "https://dash.example", "Access-Control-Request-Method": "GET"}
    )
    assert preflight.headers["access-control-allow-origin"] == "*"
    assert preflight.headers["access-control-allow-methods"] == "GET, HEAD, OPTIONS"


def test_browsers_may_read_the_etag(client: Client) -> None:
    answer = client.simulate_get("/healthz", headers={"Origin": "https://dash.example"})
    assert "ETag" in answer.headers["access-control-expose-headers"].split(", ")


def test_browsers_may_read_errors_from_another_origin(client: Client) -> None:
    answer = client.simulate_get("/nowhere", headers={"Origin": "https://dash.example"})
    assert answer.headers["access-control-allow-origin"] == "*"


def test_an_answer_cached_for_a_caller_without_an_origin_is_readable_in_browsers(client: Client) -> None:
    """Answers do not vary by origin, so they need the same headers with and without one."""
    names = (*CROSS_ORIGIN_HEADERS, "vary")
    without, with_origin = (
        client.simulate_get("/healthz", headers=headers) for headers in ({}, {"Origin": "https://a.example"})
    )
    assert [without.headers.get(name) for name in names] == [with_origin.headers[name] for name in names]


def test_only_the_origins_in_the_setting_are_allowed(settings: Settings, store: Store) -> None:
    client = client_of(replace(settings, cors_origins="https://a.example, https://b.example"), store)
    allowed = client.simulate_get("/healthz", headers={"Origin": "https://b.example"})
    refused = client.simulate_get("/healthz", headers={"Origin": "https://c.example"})
    assert allowed.headers["access-control-allow-origin"] == "https://b.example"
    assert allowed.headers["vary"] == "Accept-Encoding, Origin"
    assert "access-control-allow-origin" not in refused.headers


@pytest.mark.parametrize("path", ["/nowhere", "/api/v1", "/api/v1/assets/", "/api/v2/assets", "/healthz/"])
def test_an_unknown_path_is_a_404_that_names_it(client: Client, path: str) -> None:
    assert path in expect_error(client.simulate_get(path), 404, "path_unknown", "client")


@pytest.mark.parametrize(
    "path",
    [
        "//api/v1/assets",
        "/api/v1//assets",
        "/api/v1/assets//",
        "/api/v1/users//user",
        "/api%2Fv1/assets",
        "/api/v1%2fassets",
        "/api/v1/assets%2F",
        f"/api/v1/users%2F{RICH_ADDRESS}/user",
        f"/api/v1/users/{RICH_ADDRESS}%2Fuser",
        f"/api/v1/users/{RICH_ADDRESS}%2F/user",
        "/api/v1/markets/lend%2Flookup",
    ],
)
@pytest.mark.parametrize("method", ["GET", "HEAD", "POST"])
def test_a_path_with_double_or_percent_encoded_slashes_is_unknown(protocol: Client, path: str, method: str) -> None:
    answer = protocol.simulate_request(method, path)
    assert answer.status_code == 404
    if method != "HEAD":
        assert path in expect_error(answer, 404, "path_unknown", "client")


def test_slashes_of_a_query_and_of_a_scheme_are_not_those_of_the_path(protocol: Client) -> None:
    """A proxy may send the whole URL as the target; a denom may have slashes."""
    for prefix in ("", "http://localhost:8080"):
        extras = {"RAW_URI": f"{prefix}/api/v1/swap/routes?source_denom=ibc//%2Fa"}
        query = f"{CONTRACT}&source_denom=ibc//%2Fa"
        answer = protocol.simulate_get("/api/v1/swap/routes", query_string=query, extras=extras)
        expect_error(answer, 404, "entity_not_found", "user")
    doubled = {"RAW_URI": "http://localhost:8080/api//v1/assets"}
    expect_error(protocol.simulate_get("/api/v1/assets", extras=doubled), 404, "path_unknown", "client")


@pytest.mark.parametrize("path", JSON_ROUTES)
@pytest.mark.parametrize("accept", ["text/xml", "text/html, image/*", "application/json;q=0"])
def test_an_accept_header_that_rules_out_json_is_refused(protocol: Client, path: str, accept: str) -> None:
    answer = protocol.simulate_get(path, query_string=ROUTES[path], headers={"Accept": accept})
    assert accept in expect_error(answer, 406, "content_type_unsupported", "client")


@pytest.mark.parametrize(
    "accept",
    [
        "*/*",
        "application/*",
        "text/html, */*;q=0.1",
        "application/json",
        "Application/JSON",
        "APPLICATION/*;Q=0.5",
        "text/html,,application/json",
        ", application/json ,",
        "",
        " , ,",
    ],
)
def test_an_accept_header_that_includes_json_is_accepted(client: Client, accept: str) -> None:
    assert client.simulate_get("/api/v1/assets", headers={"Accept": accept}).status_code == 200


@pytest.mark.parametrize("path", ROUTES)
def test_an_unknown_parameter_is_refused(protocol: Client, path: str) -> None:
    answer = protocol.simulate_get(path, query_string=ROUTES[path] + "&with_texts=true")
    assert "with_texts" in expect_error(answer, 400, "query_parameter_unknown", "client")


REQUIRED = [(path, name) for path in HISTORIES for name in ("start", "end", "period")]
REQUIRED += [(path, "asset_id") for path in ROUTES if ROUTES[path] == ASSET]
REQUIRED += [("/api/v1/swap/routes/all", "contract_address"), ("/api/v1/swap/routes", "contract_address")]
REQUIRED += [("/api/v1/swap/routes", "source_denom")]


@pytest.mark.parametrize(("path", "name"), REQUIRED)
@pytest.mark.parametrize("empty", [True, False])
def test_a_missing_or_empty_required_parameter_is_refused(protocol: Client, path: str, name: str, empty: bool) -> None:
    rest = [part for part in ROUTES[path].split("&") if not part.startswith(f"{name}=")]
    query = "&".join([*rest, f"{name}="] if empty else rest)
    answer = protocol.simulate_get(path, query_string=query)
    assert f" {name} " in expect_error(answer, 400, "query_parameter_missing", "client")


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("start=1.5&end=2&period=h", ["start='1.5'", "whole second, without a fraction"]),
        ("start=1764547200000&end=2&period=h", ["start='1764547200000'", "unix seconds, not milliseconds"]),
        ("start=yesterday&end=2&period=h", ["start='yesterday'", "2026-01-31T12:00", "now-7d"]),
        ("start=now-60y&end=2&period=h", ["start", "from 0 to 4294967295"]),
        ("start=now&end=now-1h&period=h", ["start", "later than end"]),
        ("start=-1&end=2&period=h", ["start='-1'", "from 0 to 4294967295"]),
        ("start=+1&end=2&period=h", ["start=' 1'"]),
        ("start=0x10&end=2&period=h", ["start='0x10'"]),
        ("start=\u0661&end=2&period=h", ["start='\u0661'"]),
        ("start=1&end=4294967296&period=h", ["end='4294967296'"]),
        ("start=1&end=99999999999999999999999999&period=h", ["end=", "from 0"]),
        ("start=1&end=2&period=H", ["period='H'", "min, h, d, w, m, y, auto"]),
        ("start=1&end=2&period=hour", ["period='hour'"]),
        (HISTORY + "&interval=0", ["interval='0'", "from 1 to 10000"]),
        (HISTORY + "&interval=10001", ["interval='10001'"]),
        (HISTORY + "&interval=", ["interval=''"]),
        (HISTORY + "&limit=0", ["limit='0'"]),
        (HISTORY + "&limit=10001", ["limit='10001'", "from 1 to 10000"]),
        (HISTORY + "&offset=-1", ["offset='-1'"]),
        (HISTORY + "&tz=Mars/Olympus", ["tz='Mars/Olympus'", "IANA"]),
        (HISTORY + "&tz=../../etc/passwd", ["tz="]),
        (HISTORY + "&tz=localtime", ["tz='localtime'", "IANA"]),
        (HISTORY + "&tz=Factory", ["tz='Factory'", "IANA"]),
        (HISTORY + "&tz=posixrules", ["tz='posixrules'", "IANA"]),
        (HISTORY + "&tz=posix/Europe/London", ["tz='posix/Europe/London'", "IANA"]),
        (HISTORY + "&tz=right/UTC", ["tz='right/UTC'", "IANA"]),
        (HISTORY + "&tz=", ["tz=''", "IANA"]),
        (HISTORY + "&tz=utc", ["tz='utc'", "such as UTC."]),
        (HISTORY + "&tz=asia/ho chi minh", ["such as Asia/Ho_Chi_Minh."]),
        (HISTORY + "&fill=zero", ["fill='zero'", "previous, none"]),
        (HISTORY + "&asset_ids=a", ["asset_ids='a'", "asset id"]),
        (HISTORY + "&asset_ids=token;a,,token;b", ["asset_ids="]),
        (HISTORY + "&asset_ids=cw20;a", ["asset_ids='cw20;a'"]),
        (HISTORY + "&limit=5&limit=6", ["limit", "2 times"]),
        ("start=5&end=4&period=h", ["start", "later than end"]),
        ("start=0&end=4294967295&period=h", ["interval", "1,193,047 buckets", "at most 1,000,000"]),
        (HISTORY + "&points=500", ["points", "period=auto only"]),
        ("start=1&end=2&period=auto&interval=1", ["interval", "must not be given with period=auto"]),
        ("start=1&end=2&period=auto&points=9", ["points='9'", "from 10 to 10000"]),
        (
            "start=0&end=4294967295&period=auto&points=100",
            ["points", "137 years, more than 100", "narrow start and end"],
        ),
        ("start=now-9999y&end=0&period=h", ["start='now-9999y'", "from 0 to 4294967295"]),
        (HISTORY + "&points=10", ["points='10'", "is for period=auto only"]),
        (HISTORY + "&digits=19", ["digits='19'", "from 1 to 18"]),
        (HISTORY + "&symbols=ETH,", ["symbols='ETH,'", "separated by commas"]),
        (HISTORY + "&limit=" + "9" * 200, ["limit='999", "..."]),
        (HISTORY + "&limit=" + "0" * 5_000, ["limit='000", "must be from 1 to 10000."]),
    ],
)
def test_a_malformed_parameter_is_named_with_its_value_and_what_is_allowed(
    client: Client, query: str, expected: list[str]
) -> None:
    answer = client.simulate_get("/api/v1/assets/price-history", query_string=query)
    message = expect_error(answer, 400, "query_parameter_invalid", "client")
    assert all(part in message for part in expected), message
    assert len(message) < 300


@pytest.mark.parametrize("value", ["1", "True", "yes", ""])
def test_a_boolean_is_true_or_false_and_nothing_else(client: Client, value: str) -> None:
    answer = client.simulate_get("/api/v1/assets/prices", query_string=f"with_text={value}")
    assert "true or false" in expect_error(answer, 400, "query_parameter_invalid", "client")


def test_of_several_faults_unknown_is_reported_before_missing_before_invalid(client: Client) -> None:
    path = "/api/v1/assets/price-history"
    answers = [client.simulate_get(path, query_string=q) for q in ("start=x&extra=1", "start=x", HISTORY + "&limit=x")]
    kinds = [answer.json["error"]["kind"] for answer in answers]
    assert kinds == ["query_parameter_unknown", "query_parameter_missing", "query_parameter_invalid"]


def test_an_unknown_parameter_is_reported_before_a_malformed_address(protocol: Client) -> None:
    answers = [protocol.simulate_get("/api/v1/users/x/user", query_string=q) for q in ("extra=1", "with_text=x")]
    kinds = [answer.json["error"]["kind"] for answer in answers]
    assert kinds == ["query_parameter_unknown", "path_parameter_invalid"]


@pytest.mark.parametrize("path", [path for path in ROUTES if ROUTES[path] == ASSET])
@pytest.mark.parametrize("ids", ["native;uorb,native;uusdt", "a,b", "native%3Buorb%2Cnative%3Buusdt", "native;uorb,"])
def test_a_lookup_takes_one_asset_id(protocol: Client, path: str, ids: str) -> None:
    answer = protocol.simulate_get(path, query_string=f"asset_id={ids}")
    assert "must be one asset id" in expect_error(answer, 400, "query_parameter_invalid", "client")


@pytest.mark.parametrize("zone", ["Asia/Kathmandu", "US/Pacific", "EST5EDT", "UTC", "Etc/GMT+12"])
def test_zones_and_links_of_the_iana_database_are_accepted(client: Client, zone: str) -> None:
    query = f"{HISTORY}&tz={zone.replace('+', '%2B')}"
    assert client.simulate_get("/api/v1/assets/price-history", query_string=query).status_code == 200


@pytest.mark.parametrize(
    ("path", "query", "named"),
    [
        *(
            (path, HISTORY + "&asset_ids=native;nothing", "native;nothing")
            for path in HISTORIES
            if path not in ONE_SERIES
        ),
        *((path, "asset_id=native;nothing", "native;nothing") for path in ROUTES if ROUTES[path] == ASSET),
        # Existing assets that lack the market.
        ("/api/v1/markets/lend/lookup", "asset_id=native;uptk", "native;uptk"),
        ("/api/v1/markets/lend/rate-history", HISTORY + "&asset_ids=native;uptk", "native;uptk"),
        # Only the unknown one of several ids is named.
        ("/api/v1/assets/price-history", HISTORY + "&asset_ids=native;uorb,native;nothing", "'native;nothing'"),
        ("/api/v1/swap/routes/all", "contract_address=0x" + "0" * 40, "0x" + "0" * 40),
        ("/api/v1/swap/routes", f"{CONTRACT}&source_denom=unothing", "unothing"),
    ],
)
def test_a_well_formed_id_that_names_nothing_is_a_404_that_names_it(
    protocol: Client, path: str, query: str, named: str
) -> None:
    answer = protocol.simulate_get(path, query_string=query)
    assert named in expect_error(answer, 404, "entity_not_found", "user")


@pytest.mark.parametrize(
    "address",
    [
        "x",
        "0x12",
        "0x" + "g" * 40,
        # The last letter of the checksum is wrong.
        RICH_ADDRESS[:-1] + ("q" if RICH_ADDRESS[-1] != "q" else "p"),
        RICH_ADDRESS[:-1] + RICH_ADDRESS[-1].upper(),
        "%20",
    ],
)
def test_a_malformed_address_in_the_path_is_refused(protocol: Client, address: str) -> None:
    answer = protocol.simulate_get(f"/api/v1/users/{address}/user")
    assert "checksum" in expect_error(answer, 400, "path_parameter_invalid", "client")


@pytest.mark.parametrize("source_denom", ["native;uusdc", "token;0x" + "0" * 40, "a b", "a" * 201])
def test_a_source_denom_must_be_a_plain_denom(protocol: Client, source_denom: str) -> None:
    params = {"contract_address": SWAP_CONTRACT, "source_denom": source_denom}
    answer = protocol.simulate_get("/api/v1/swap/routes", params=params)
    assert "source_denom" in expect_error(answer, 400, "query_parameter_invalid", "client")


def test_a_contract_address_needs_a_valid_checksum(protocol: Client) -> None:
    answer = protocol.simulate_get("/api/v1/swap/routes/all", query_string="contract_address=" + SWAP_CONTRACT[:-1])
    assert "checksum" in expect_error(answer, 400, "query_parameter_invalid", "client")


def test_an_address_without_a_position_has_an_empty_one(protocol: Client) -> None:
    data = protocol.simulate_get(f"/api/v1/users/{EMPTY_ADDRESS}/user").json["data"]
    assert data["markets"]["borrow"]["accounts"] == []
    assert data["markets"]["borrow"]["totals"]["debts"] == []
    assert data["markets"]["lend"]["asset_pools"] == []
    assert data["wallets"]["balances"] == []
    assert data["wallets"]["total_value"] is None
    assert data["ptoken"]["staking"]["bonding_sum"] == "0"
    assert data["ptoken"]["unlocks"]["totals"]["amount"] == "0"


def test_hex_addresses_are_case_insensitive(protocol: Client) -> None:
    lower, upper = (protocol.simulate_get(f"/api/v1/users/0x{byte * 20}/user") for byte in ("ab", "AB"))
    assert (lower.status_code, lower.json) == (200, upper.json)


def test_too_many_points_on_a_page_are_refused_with_the_number_that_fits(settings: Settings, store: Store) -> None:
    commit(store, {f"token;{n}": [(NOON, Decimal(n))] for n in range(60)})
    query = f"start={NOON - 10_000 * 3600}&end={NOON}&period=h&limit="
    client = client_of(settings, store)
    path = "/api/v1/assets/price-history"
    # 100,000 points of 60 series are 1,666 buckets.
    refused = client.simulate_get(path, query_string=query + "1667")
    assert "at most 1,666 buckets" in expect_error(refused, 400, "query_parameter_invalid", "client")
    assert len(client.simulate_get(path, query_string=query + "1666").json["data"]["series"][0]["points"]) == 1666


def test_series_are_in_the_requested_order_without_repeats_percent_encoded_or_not(client: Client) -> None:
    for ids in ("token;b,token;a,token;b", "token%3Bb%2Ctoken%3Ba"):
        answer = client.simulate_get("/api/v1/assets/price-history", query_string=f"{HISTORY}&asset_ids={ids}")
        assert [series["asset"]["id"] for series in answer.json["data"]["series"]] == ["token;b", "token;a"]


def test_ids_of_hex_tokens_are_found_in_any_case_and_shown_as_stored(settings: Settings, store: Store) -> None:
    commit(store, {"token;0xAb": [(NOON, Decimal(1))], "token;b": [(NOON, Decimal(2))]})
    client = client_of(settings, store)

    def ids(query: str) -> list[str]:
        answer = client.simulate_get("/api/v1/assets/price-history", query_string=f"{HISTORY}&asset_ids={query}")
        return [series["asset"]["id"] for series in answer.json["data"]["series"]]

    assert ids("token;0xaB") == ids("token;0XAB,token;0xab") == ["token;0xAb"]
    assert ids("token;b,token;0xab") == ["token;b", "token;0xAb"]
    unknown = client.simulate_get("/api/v1/assets/price-history", query_string=f"{HISTORY}&asset_ids=token;B")
    assert "'token;B'" in expect_error(unknown, 404, "entity_not_found", "user")


@pytest.mark.parametrize("path", [path for path in ROUTES if ROUTES[path] == ASSET])
def test_lookups_find_hex_tokens_in_any_case(protocol: Client, path: str) -> None:
    listed = protocol.simulate_get(path.removesuffix("/lookup")).json["data"]
    ids = [one["asset_info"]["asset"]["id"] for one in listed]
    stored = next(one for one in ids if one.startswith("token;0x"))
    as_written, upper = (
        protocol.simulate_get(path, params={"asset_id": one}).json
        for one in (stored, stored.upper().replace("TOKEN", "token"))
    )
    assert upper == as_written
    assert upper["data"]["asset_info"]["asset"]["id"] == stored


def test_the_zone_of_the_setting_is_the_default(settings: Settings, store: Store) -> None:
    commit(store, {"token;a": [(NOON, Decimal(1))]})
    path, query = "/api/v1/assets/price-history", f"start={NOON - 86_400}&end={NOON}&period=d"
    utc, york = (client_of(replace(settings, tz=zone), store) for zone in ("UTC", "America/New_York"))
    named = utc.simulate_get(path, query_string=query + "&tz=America/New_York")
    unnamed = york.simulate_get(path, query_string=query)
    assert unnamed.json == named.json != utc.simulate_get(path, query_string=query).json
    assert unnamed.headers["etag"] == named.headers["etag"]
    assert unnamed.headers["etag"] != utc.simulate_get(path, query_string=query).headers["etag"]


@pytest.mark.parametrize("path", SNAPSHOT_ROUTES)
def test_last_modified_is_the_instant_of_the_newest_snapshot(protocol: Client, path: str) -> None:
    answer = protocol.simulate_get(path, query_string=ROUTES[path])
    assert answer.headers["last-modified"] == "Sat, 01 Mar 2025 12:00:00 GMT"


# The families that the answers are made from, without and with values.
MADE_FROM = {
    "/api/v1/analytics/market/state": "loans markets positions",
    "/api/v1/analytics/ptoken/unlocks-distribution": "ptoken",
    "/api/v1/assets": "prices",
    "/api/v1/assets/prices": "prices",
    "/api/v1/markets/supply": "markets prices",
    "/api/v1/markets": "markets prices",
    "/api/v1/markets?shape=older": "markets",
    "/api/v1/markets/lend?shape=newer": "markets prices",
    "/api/v1/markets/lend/lookup?shape=newer": "markets",
    "/api/v1/markets/tvl": "markets prices",
    f"{USER}/user": "markets positions prices ptoken",
}
VALUED = {
    "/api/v1/analytics/ptoken/unlocks-distribution": "prices ptoken",
    "/api/v1/markets?shape=older": "markets prices",
    f"{USER}/user": "markets positions prices ptoken",
}
MADE_FROM |= {path: "ptoken" for path in ROUTES if "v1/ptoken/" in path}
VALUED |= {path: "prices ptoken" for path in ROUTES if "v1/ptoken/" in path}
_PARTS = {
    "markets/lend": "markets positions prices",
    "markets/merged": "markets positions",
    "markets/borrow/accounts/0/health": "markets positions prices ptoken",
    "ptoken/unlocks": "ptoken",
    "ptoken/staking": "positions ptoken",
    "wallet/balances": "positions",
    "wallet/balance": "positions",
    "tx-history": "loans",
}
MADE_FROM |= {f"{USER}/{part}": made for part, made in _PARTS.items()}
_MARKETS = [path for path in ROUTES if "v1/markets/" in path and path not in HISTORIES and path not in MADE_FROM]
MADE_FROM |= dict.fromkeys(_MARKETS, "markets")
VALUED |= {path: "markets prices" for path in _MARKETS if path != "/api/v1/markets/config"}
VALUED |= {f"{USER}/wallet/{path}": "markets positions prices" for path in ("balances", "balance")}
VALUED |= {f"{USER}/tx-history": "loans markets prices"}
MADE_FROM |= {path: "routes" for path in ROUTES if "/swap/" in path}


@pytest.mark.parametrize("valued", [False, True])
def test_as_of_names_the_families_that_an_answer_is_made_from(protocol: Client, valued: bool) -> None:
    for path, families in (VALUED if valued else MADE_FROM).items():
        route, _, more = path.partition("?")
        query = "&".join(
            filter(None, [ROUTES[route].replace("with_text=true", ""), more, valued and "with_value=true"])
        )
        answer = protocol.simulate_get(route, query_string=query)
        assert answer.status_code == 200, (path, answer.json)
        found = dict(part.split("=@") for part in answer.headers["as-of"].split(", "))
        assert " ".join(found) == families, path
        assert {*found.values()} == {str(NOON)}


@pytest.mark.parametrize("query", ["", "with_text=true&with_value=true"])
def test_the_newer_shape_of_borrowing_is_that_of_the_overview(protocol: Client, query: str) -> None:
    newer = protocol.simulate_get("/api/v1/markets/borrow", query_string=f"shape=newer&{query}").json["data"]
    assert newer == protocol.simulate_get("/api/v1/markets", query_string=query).json["data"]["borrow"]
    older = protocol.simulate_get("/api/v1/markets/borrow", query_string=f"shape=older&{query}").json["data"]
    assert older == protocol.simulate_get("/api/v1/markets/borrow", query_string=query).json["data"] != newer


@pytest.mark.parametrize("path", [*ROUTES, "/nothing", "/api/v1/assets?x=1"])
def test_browsers_are_told_to_load_and_frame_nothing(protocol: Client, path: str) -> None:
    route, _, query = path.partition("?")
    headers = protocol.simulate_get(route, query_string=ROUTES.get(route, "") or query).headers
    assert (headers["x-content-type-options"], headers["referrer-policy"]) == ("nosniff", "no-referrer")
    policy = headers["content-security-policy"].split("; ")
    assert {"default-src 'none'", "frame-ancestors 'none'"} <= {*policy}
    assert {*policy} - {"default-src 'none'", "frame-ancestors 'none'"} == (
        {"style-src 'unsafe-inline'"} if path == "/docs" else set()
    )


def test_a_closed_page_is_revalidated_after_any_number_of_snapshots(settings: Settings, store: Store) -> None:
    commit(store, {"token;a": [(NOON - 7200, Decimal(1)), (NOON, Decimal(2))]})
    client = client_of(settings, store, NOON + 3600, FreshHeads)
    path, query = "/api/v1/assets/price-history", f"start={NOON - 10_000}&end={NOON - 3601}&period=h&asset_ids=token;a"
    first = client.simulate_get(path, query_string=query)
    assert first.headers["as-of"] == f"prices=@{NOON - 7200}"
    for tick in range(1, 4):
        commit(store, {"token;a": [(NOON + 60 * tick, Decimal(tick))]})
        known = {"If-None-Match": first.headers["etag"]}
        again = client.simulate_get(path, query_string=query, headers=known)
        assert (again.status_code, again.headers["as-of"]) == (304, first.headers["as-of"])


def test_the_price_list(client: Client) -> None:
    listed = client.simulate_get("/api/v1/assets/prices", query_string="with_text=true").json
    assert listed["count"] == 2
    assert listed["data"][0] == {
        "asset": {"id": "token;a", "group": "token", "group_key": "a"},
        "classification": {"kind": "regular", "protocol_receipt_asset": None},
        "metadata": {
            "decimals_denom": 6,
            "decimals_display": 2,
            "name": "a",
            "symbol": "a",
            "symbol_denom": "a",
        },
        "price": {
            "price": "1572.5",
            "last_updated_at": "2025-03-01T12:00:00Z",
            "extra": {"text": {"price": "$1,572.50", "last_updated_at": "2025-03-01 12:00:00 UTC"}},
        },
    }
    bare = client.simulate_get("/api/v1/assets/prices").json
    assert [asset["price"]["extra"] for asset in bare["data"]] == [{"text": None}] * 2
    assert bare["data"][1]["price"]["price"] == "0"


@pytest.mark.parametrize("kind", ["lend", "borrow/collaterals", "borrow/debts"])
def test_lists_of_markets_have_two_shapes_and_are_older_by_default(protocol: Client, kind: str) -> None:
    path = f"/api/v1/markets/{kind}"
    default, older, newer = (protocol.simulate_get(path, query_string=q).json for q in ("", "shape=older", NEWER))
    overview = protocol.simulate_get("/api/v1/markets").json["data"]
    for part in kind.split("/"):
        overview = overview[part]
    assert default == older
    assert default["count"] == len(default["data"]) == len(newer["data"]["contents"])
    assert newer["data"] == overview
    assert {*newer["data"]} == {"supply", "contents"}
    assert "count" not in newer
    assert "shape" in protocol.simulate_get(path, query_string="shape=new").json["error"]["message"]


@pytest.mark.parametrize("kind", ["lend", "borrow/collaterals", "borrow/debts"])
def test_lookups_of_markets_have_two_shapes_and_are_older_by_default(protocol: Client, kind: str) -> None:
    path = f"/api/v1/markets/{kind}"
    for shape in ("older", "newer"):
        listed = protocol.simulate_get(path, query_string=f"shape={shape}").json["data"]
        markets = listed if shape == "older" else listed["contents"]
        (expected,) = (one for one in markets if one["asset_info"]["asset"]["id"] == "native;uorb")
        found = protocol.simulate_get(f"{path}/lookup", query_string=f"{ASSET}&shape={shape}").json["data"]
        assert found == expected
        if shape == "older":
            assert protocol.simulate_get(f"{path}/lookup", query_string=ASSET).json["data"] == expected


def test_the_older_total_value_locked_is_that_of_the_supply(protocol: Client) -> None:
    supply = protocol.simulate_get("/api/v1/markets/supply", query_string="with_text=true").json["data"]
    tvl = protocol.simulate_get("/api/v1/markets/tvl", query_string="with_text=true").json["data"]
    assert tvl["collateral_value"] == supply["borrow_collateral"]["non_receipt"]["balance"]
    assert tvl["lend_value"] == supply["lend"]["principal"]
    assert tvl["total_value"] == supply["tvl"]["tvl"]
    assert tvl["extra"]["text"]["total_value"] == supply["tvl"]["extra"]["text"]["tvl"]


def test_the_asset_list_is_the_price_list_without_prices(client: Client) -> None:
    priced = client.simulate_get("/api/v1/assets/prices").json
    expected = [{key: asset[key] for key in ("asset", "classification", "metadata")} for asset in priced["data"]]
    listed = client.simulate_get("/api/v1/assets").json
    assert (listed["data"], listed["count"]) == (expected, 2)


@pytest.mark.parametrize("path", SNAPSHOT_ROUTES)
def test_the_service_is_unavailable_without_a_snapshot(empty: Client, path: str) -> None:
    answer = empty.simulate_get(path, query_string=ROUTES[path])
    assert "snapshot" in expect_error(answer, 503, "unavailable", "server")
    assert int(answer.headers["retry-after"]) > 0


@pytest.mark.parametrize("path", SNAPSHOT_ROUTES)
@pytest.mark.parametrize("url", ["http://127.0.0.1:1", None])
def test_the_service_is_unavailable_without_a_store_and_reveals_nothing_internal(path: str, url: str | None) -> None:
    answer = client_of(Settings(clickhouse_url=url)).simulate_get(path, query_string=ROUTES[path])
    message = expect_error(answer, 503, "unavailable", "server")
    assert "127.0.0.1" not in message
    assert "ClickHouse" not in message
    assert int(answer.headers["retry-after"]) > 0


def test_the_service_is_unavailable_without_tables(settings: Settings) -> None:
    answer = client_of(settings).simulate_get("/api/v1/assets")
    expect_error(answer, 503, "unavailable", "server")


class BrokenStore(Store):
    """A store with a programming error."""

    def frame(self, query: str, parts: object = (), **parameters: object) -> Iterator[None]:  # type: ignore[override]
        raise RuntimeError("SELECT secret FROM /etc/passwd")


def test_an_unexpected_error_reveals_nothing_internal(settings: Settings) -> None:
    answer = client_of(settings, BrokenStore(settings)).simulate_get("/api/v1/assets")
    message = expect_error(answer, 500, "internal", "server")
    assert "secret" not in message


def test_rendered_answers_are_served_while_the_store_is_unreachable(settings: Settings, store: Store) -> None:
    """Their Last-Modified shows how old they are. Answers that are not rendered yet are unavailable.

    Without memory for history no thread loads more pages in the background, which would make them available.
    """
    commit(store, {"token;a": [(NOON, Decimal(1))]})
    own = Store(settings)
    client = client_of(replace(settings, history_memory=0), own, heads=FreshHeads)
    rendered = {"/api/v1/assets/prices": "", "/api/v1/assets/price-history": HISTORY}
    before = [client.simulate_get(path, query_string=query) for path, query in rendered.items()]
    own.close()
    own._settings = replace(settings, clickhouse_url="http://127.0.0.1:1")
    after = [client.simulate_get(path, query_string=query) for path, query in rendered.items()]
    assert [answer.status_code for answer in before] == [200, 200]
    assert [(answer.json, dict(answer.headers)) for answer in after] == [
        (answer.json, dict(answer.headers)) for answer in before
    ]
    other = client.simulate_get("/api/v1/assets/price-history", query_string=HISTORY + "&limit=30")
    expect_error(other, 503, "unavailable", "server")


def test_readiness_needs_a_store_a_schema_and_a_fresh_snapshot(settings: Settings, store: Store) -> None:
    def missing(client: Client) -> str:
        return expect_error(client.simulate_get("/readyz"), 503, "unavailable", "server")

    assert "store" in missing(client_of(Settings(clickhouse_url="http://127.0.0.1:1")))
    assert "schema" in missing(client_of(replace(settings, clickhouse_database="nothing_here")))
    assert "there is no history yet" in missing(client_of(settings, store))
    assert "there is no history yet" in missing(client_of(replace(settings, source="none"), store))
    told = replace(settings, source="simulated")
    assert "there is no snapshot of prices yet" in missing(client_of(told, store))
    store.insert(
        LEDGER, ledger_frame([Run(job.family, NOON, "job", NOON, NOON, 0, "test", 1) for job in JOBS.values()])
    )
    assert client_of(settings, store, NOON + 5 * 60).simulate_get("/readyz").status_code == 200
    assert "prices" in missing(client_of(settings, store, NOON + 5 * 60 + 1))
    # Without a source nothing is scheduled, so nothing can be late.
    idle = replace(settings, source="none")
    assert client_of(idle, store, NOON + 10**6).simulate_get("/readyz").status_code == 200


def test_health_shows_the_store_and_every_family(settings: Settings, store: Store) -> None:
    store.insert(LEDGER, ledger_frame([Run("prices", NOON, "job", NOON, NOON, 0, "test", 1)]))
    data = client_of(settings, store, NOON + 400).simulate_get("/api/v1/status/health").json["data"]
    snapshots = {one.pop("family"): one for one in data.pop("snapshots")}
    assert snapshots["prices"] == {
        "newest": "2025-03-01T12:00:00Z",
        "age_seconds": 400,
        "fresh": False,
        "interval_seconds": 60,
    }
    assert snapshots["markets"] == {"newest": None, "age_seconds": None, "fresh": False, "interval_seconds": 60}
    assert sorted(snapshots) == sorted(job.family for job in JOBS.values())
    assert "snapshots of prices are not fresh" in data.pop("faults")
    assert data == {
        "healthy": False,
        "at": "2025-03-01T12:06:40Z",
        "simulated": False,
        "sources": ["test"],
        "store": {"reachable": True, "schema_current": True},
    }
    unreachable = client_of(Settings(clickhouse_url="http://127.0.0.1:1")).simulate_get("/api/v1/status/health")
    assert (unreachable.status_code, unreachable.json["data"]["store"]["reachable"]) == (200, False)


def test_health_tells_that_no_snapshots_are_scheduled(settings: Settings, store: Store) -> None:
    store.insert(LEDGER, ledger_frame([Run("prices", NOON, "job", NOON, NOON, 0, "test", 1)]))
    idle = client_of(replace(settings, source="none"), store, NOON + 400)
    [prices] = idle.simulate_get("/api/v1/status/health").json["data"]["snapshots"]
    assert (prices["fresh"], prices["interval_seconds"]) == (True, None)


def test_metrics_show_the_store_and_the_age_of_snapshots(settings: Settings, store: Store) -> None:
    store.insert(LEDGER, ledger_frame([Run("prices", NOON, "job", NOON, NOON, 0, "test", 1)]))
    answer = operators_of(settings, store, NOON + 400).simulate_get("/metrics")
    lines = answer.text.splitlines()
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    assert "analytics_store_up 1.0" in lines
    assert 'analytics_snapshot_age_seconds{family="prices"} 400.0' in lines
    assert 'analytics_snapshot_fresh{family="prices"} 0.0' in lines
    assert 'analytics_job_rows{job="prices"} 0.0' in lines
    unreachable = operators_of(Settings(clickhouse_url="http://127.0.0.1:1")).simulate_get("/metrics").text
    assert "analytics_store_up 0.0" in unreachable.splitlines()


def test_a_scrape_waits_for_no_store_and_goes_on_to_show_how_old_snapshots_are(
    settings: Settings, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After the first scrape the ledger cannot be read, other queries hang, and the clock goes on for a minute."""
    monkeypatch.setattr(metrics, "_PATIENCE", 0.2)
    version = 10**9 * NOON + 11_500_000_000
    store.insert(LEDGER, ledger_frame([Run("prices", NOON + 10, "job", NOON, NOON, 7, "test", version)]))
    ends, now, hangs = threading.Event(), NOON + 30, False

    def wait(statement: Statement) -> None:
        if hangs:
            ends.wait(60)

    hanging, away = WatchedStore(settings, before=wait), WatchedStore(settings)
    operators = create_app(settings, hanging, lambda: at(now), FreshHeads(away)).operators
    client = falcon.testing.TestClient(operators)
    shown = samples(client.simulate_get("/metrics").text)
    while 'analytics_job_rows{job="prices"}' not in shown:
        shown = samples(client.simulate_get("/metrics").text)
    assert shown["analytics_store_up"] == 1
    assert shown['analytics_job_lag_seconds{job="prices"}'] == 1.5
    assert shown['analytics_job_next_run_timestamp_seconds{job="prices"}'] == NOON + 60
    hangs, now, away.away = True, NOON + 90, True
    shown = samples(client.simulate_get("/metrics").text)
    assert shown["analytics_store_up"] == 0
    assert shown['analytics_snapshot_age_seconds{family="prices"}'] == 80
    assert shown['analytics_job_rows{job="prices"}'] == 7
    assert "analytics_schema_current" not in shown
    ends.set()


def test_gaps_are_instants_between_scheduled_snapshots_that_have_none(store: Store) -> None:
    """Of prices, each minute from NOON + 2: minutes 4, 5 and 7 are missing; a backfill has added minute 5.

    Snapshots at other seconds count for the minute they are in. What was filled in before the first scheduled one, and
    what is older than asked for, does not count. Rates were never scheduled.
    """

    def run(family: str, second: int, kind: str, rows: int = 1, version: int = 1) -> Run:
        return Run(family, NOON + second, kind, NOON, NOON, rows, "test", version)

    minutes = {0: "backfill", 120: "job", 180: "job", 190: "job", 300: "backfill", 360: "job", 495: "job"}
    prices = [
        run("prices", second, kind, version=10**9 * (NOON + second) + 250_000_000) for second, kind in minutes.items()
    ]
    others = [run("prices", -3600, "job"), run("prices", 1000, "import"), run("rates", 0, "backfill")]
    store.insert(LEDGER, ledger_frame([*prices, *others]))
    (found,) = scheduled_runs(store, {"prices": 60, "rates": 60, "loans": 300}, NOON - 60 + 86_400)
    assert found == ScheduledRun("prices", NOON + 495, rows=1, lag=0.25, missing=2)
    assert scheduled_runs(store, {}, NOON) == []
