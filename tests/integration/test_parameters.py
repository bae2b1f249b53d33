"""Faults of parameters, and how well-formed ones are read (rules 3.1 to 3.4)."""

from decimal import Decimal

import pytest

from analytics_service.clickhouse.connection import Store
from analytics_service.config.settings import Settings
from analytics_service.sources.simulated import RICH_ADDRESS, SWAP_CONTRACT
from tests.integration.pages import commit
from tests.integration.routes import (
    ASSET,
    CONTRACT,
    HISTORY,
    KINDS,
    NOON,
    PRICES,
    ROUTES,
    USER_ASSET,
    Client,
    client_of,
    expect_error,
    get,
)

LOOKUPS = [path for path, route in ROUTES.items() if route.query == ASSET]
SWAPS, ALL_SWAPS = "/api/v1/swap/routes", "/api/v1/swap/routes/all"
REQUIRED = [(PRICES, "start"), (PRICES, "period"), (LOOKUPS[0], "asset_id"), (SWAPS, "source_denom")]


def message_of(client: Client, path: str, query: str) -> str:
    """The message about an invalid parameter."""
    return expect_error(get(client, path, query), 400, "query_parameter_invalid", "client")


def ids(client: Client, asset_ids: str) -> list[str]:
    """The assets of a page of prices, in their order."""
    answer = get(client, PRICES, f"{HISTORY}&asset_ids={asset_ids}")
    return [series["asset"]["id"] for series in answer.json["data"]["series"]]


@pytest.mark.parametrize("path", KINDS.values(), ids=KINDS)
def test_an_unknown_parameter_is_refused(protocol: Client, path: str) -> None:
    answer = get(protocol, path, f"{ROUTES[path].query}&with_texts=true")
    assert "with_texts" in expect_error(answer, 400, "query_parameter_unknown", "client")


@pytest.mark.parametrize(("path", "name"), REQUIRED)
def test_a_missing_or_empty_required_parameter_is_refused(protocol: Client, path: str, name: str) -> None:
    others = [part for part in ROUTES[path].query.split("&") if not part.startswith(f"{name}=")]
    for query in ("&".join(others), "&".join([*others, f"{name}="])):
        assert f" {name} " in expect_error(get(protocol, path, query), 400, "query_parameter_missing", "client")


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        # tests/unit/test_times.py has all forms of times.
        ("start=yesterday&end=2&period=h", ["start='yesterday'", "2026-01-31T12:00", "now-7d"]),
        ("start=\u0661&end=2&period=h", ["start='\u0661'"]),
        ("start=1&end=4294967296&period=h", ["end='4294967296'", "from 0 to 4294967295"]),
        ("start=now-60y&end=2&period=h", ["start", "from 0 to 4294967295"]),
        ("start=now&end=now-1h&period=h", ["start", "later than end"]),
        ("start=1&end=2&period=H", ["period='H'", "min, h, d, w, m, y, auto"]),
        ("start=0&end=4294967295&period=h", ["interval", "1,193,047 buckets", "more than 1,000,000"]),
        ("start=1&end=2&period=auto&interval=1", ["interval", "is not allowed with period=auto"]),
        ("start=1&end=2&period=auto&points=9", ["points='9'", "from 10 to 10000"]),
        ("start=0&end=4294967295&period=auto&points=100", ["points", "137 years, more than 100", "narrow start"]),
        (f"{HISTORY}&interval=5&align=calendar", ["interval", "must divide a day", "1, 2, 3, 4, 6, 8, 12 or 24"]),
        (f"{HISTORY}&points=500", ["points='500'", "needs period=auto"]),
        (f"{HISTORY}&interval=0", ["interval='0'", "from 1 to 10000"]),
        (f"{HISTORY}&limit=10001", ["limit='10001'", "from 1 to 10000"]),
        (f"{HISTORY}&limit=5&limit=6", ["limit", "2 times", "give it once."]),
        (f"{HISTORY}&limit={'9' * 200}", ["limit='999", "..."]),
        (f"{HISTORY}&limit={'0' * 5_000}", ["limit='000", "must be from 1 to 10000."]),
        (f"{HISTORY}&digits=19", ["digits='19'", "from 1 to 18"]),
        (f"{HISTORY}&fill=zero", ["fill='zero'", "previous, none, last"]),
        (f"{HISTORY}&tz=../../etc/passwd", ["tz="]),
        (f"{HISTORY}&tz=Factory", ["tz='Factory'", "IANA"]),
        (f"{HISTORY}&tz=asia/ho chi minh", ["such as Asia/Ho_Chi_Minh."]),
        (f"{HISTORY}&asset_ids=native;", ["asset_ids='native;'", "asset id"]),
        (f"{HISTORY}&asset_ids=token;a,,token;b", ["asset_ids="]),
        (f"{HISTORY}&symbols=ETH,", ["symbols='ETH,'", "separated by commas"]),
    ],
)
def test_a_malformed_parameter_is_named_with_its_value_and_what_is_allowed(
    two_assets: Client, query: str, expected: list[str]
) -> None:
    message = message_of(two_assets, PRICES, query)
    assert all(part in message for part in expected), message
    assert len(message) < 300


def test_a_boolean_is_true_or_false_and_nothing_else(two_assets: Client) -> None:
    for value in ("1", "True", "yes", ""):
        assert "true or false" in message_of(two_assets, "/api/v1/assets/prices", f"with_text={value}")


@pytest.mark.parametrize(
    "asset_ids", ["native;uorb,native;uusdt", "a,b", "native%3Buorb%2Cnative%3Buusdt", "native;uorb,"]
)
def test_a_lookup_takes_one_asset_id(protocol: Client, asset_ids: str) -> None:
    assert "must be one asset id" in message_of(protocol, LOOKUPS[0], f"asset_id={asset_ids}")


def test_where_an_asset_id_is_taken_a_symbol_is(protocol: Client) -> None:
    routes = {path: query for path, (query, _) in ROUTES.items() if query.startswith("asset_id=")}
    assert len(routes) > 8
    for path, query in routes.items():
        symbol = query.replace(ASSET, "symbol=orb").replace(USER_ASSET, "symbol=Eth")
        assert get(protocol, path, symbol).json == get(protocol, path, query).json, path
    unknown = get(protocol, LOOKUPS[0], "symbol=NOTHING")
    assert "symbol: 'NOTHING'" in expect_error(unknown, 404, "entity_not_found", "user")
    assert "Give only one of" in message_of(protocol, LOOKUPS[0], f"{ASSET}&symbol=ORB")


def test_zones_and_links_of_the_iana_database_are_accepted_in_any_case(two_assets: Client) -> None:
    for zone in ("Asia/Kathmandu", "US/Pacific", "EST5EDT", "Etc/GMT%2B12"):
        names = (zone, zone.lower(), zone.upper())
        named, *others = (get(two_assets, PRICES, f"{HISTORY}&tz={name}") for name in names)
        assert named.status_code == 200, zone
        assert {other.headers["etag"] for other in others} == {named.headers["etag"]}, zone
    plain, plus = (get(two_assets, PRICES, f"{HISTORY}&tz=Etc/GMT{sign}5&format=csv") for sign in ("%2B", "+"))
    assert "-05:00" in plain.text
    assert plus.content == plain.content


@pytest.mark.parametrize(
    ("path", "query", "named"),
    [
        (PRICES, f"{HISTORY}&asset_ids=native;nothing", "native;nothing"),
        (LOOKUPS[0], "asset_id=native;nothing", "native;nothing"),
        # Existing assets that lack the market.
        ("/api/v1/markets/lend/lookup", "asset_id=native;uptk", "native;uptk"),
        ("/api/v1/markets/lend/rate-history", f"{HISTORY}&asset_ids=native;uptk", "native;uptk"),
        # Only the unknown one of several ids is named.
        (PRICES, f"{HISTORY}&asset_ids=native;uorb,native;nothing", "'native;nothing'"),
        (ALL_SWAPS, f"contract_address=0x{'0' * 40}", "0x" + "0" * 40),
        (SWAPS, f"{CONTRACT}&source_denom=unothing", "unothing"),
    ],
)
def test_a_well_formed_id_that_names_nothing_is_a_404_that_names_it(
    protocol: Client, path: str, query: str, named: str
) -> None:
    assert named in expect_error(get(protocol, path, query), 404, "entity_not_found", "user")


def test_a_malformed_address_in_the_path_is_refused(protocol: Client) -> None:
    """The last letter of the checksum is wrong."""
    wrong = RICH_ADDRESS[:-1] + ("q" if RICH_ADDRESS[-1] != "q" else "p")
    answer = protocol.simulate_get(f"/api/v1/users/{wrong}/user")
    assert "checksum" in expect_error(answer, 400, "path_parameter_invalid", "client")


def test_swaps_take_a_plain_denom_and_a_contract_with_a_valid_checksum(protocol: Client) -> None:
    for denom in ("native;uusdc", f"token;0x{'0' * 40}", "a b", "a" * 201):
        assert "source_denom" in message_of(protocol, SWAPS, f"{CONTRACT}&source_denom={denom}")
    assert "checksum" in message_of(protocol, ALL_SWAPS, f"contract_address={SWAP_CONTRACT[:-1]}")


def test_too_many_points_on_a_page_are_refused_with_the_number_that_fits(settings: Settings, store: Store) -> None:
    commit(store, {f"token;{number}": [(NOON, Decimal(number))] for number in range(60)})
    query = f"start={NOON - 10_000 * 3600}&end={NOON}&period=h&limit="
    client = client_of(settings, store)
    # 100,000 points of 60 series are 1,666 buckets.
    assert "at most 1,666 buckets" in message_of(client, PRICES, f"{query}1667")
    assert len(get(client, PRICES, f"{query}1666").json["data"]["series"][0]["points"]) == 1666
    # A file is never cut in silence.
    whole, longer = (f"start={NOON - hours * 3600}&end={NOON}&period=h&format=csv" for hours in (1665, 1666))
    assert get(client, PRICES, whole).text.count("\r\n") == 1 + 60 * 1666
    refused = message_of(client, PRICES, longer)
    ways = ("wider buckets", "shorter range", "fewer assets", "limit and offset", "1,666 buckets", "Link")
    assert all(part in refused for part in ("1,667 buckets of 60 series", *ways))


def test_series_are_in_the_requested_order_without_repeats_percent_encoded_or_not(two_assets: Client) -> None:
    for asset_ids in ("token;b,token;a,token;b", "token%3Bb%2Ctoken%3Ba"):
        assert ids(two_assets, asset_ids) == ["token;b", "token;a"]


def test_ids_of_hex_tokens_are_found_in_any_case_and_shown_as_stored(settings: Settings, store: Store) -> None:
    commit(store, {"token;0xAb": [(NOON, Decimal(1))], "token;b": [(NOON, Decimal(2))]})
    client = client_of(settings, store)
    assert ids(client, "token;0xaB") == ids(client, "token;0XAB,token;0xab") == ["token;0xAb"]
    assert ids(client, "token;b,token;0xab") == ["token;b", "token;0xAb"]
    unknown = get(client, PRICES, f"{HISTORY}&asset_ids=token;B")
    assert "'token;B'" in expect_error(unknown, 404, "entity_not_found", "user")


def test_lookups_find_hex_tokens_in_any_case(protocol: Client) -> None:
    path = LOOKUPS[0]
    ids = [one["asset_info"]["asset"]["id"] for one in get(protocol, path.removesuffix("/lookup"), "").json["data"]]
    stored = next(asset_id for asset_id in ids if asset_id.startswith("token;0x"))
    as_written, upper = (
        get(protocol, path, f"asset_id={asset_id}").json
        for asset_id in (stored, stored.upper().replace("TOKEN", "token"))
    )
    assert upper == as_written
    assert upper["data"]["asset_info"]["asset"]["id"] == stored


def test_one_asset_is_named_by_its_id_or_its_symbol_in_either_parameter(protocol: Client) -> None:
    path = LOOKUPS[0]
    ways = ("asset_id=native;uorb", "asset_id=Orb", "symbol=orb", "symbol=native;uorb")
    assert len({get(protocol, path, way).text for way in ways}) == 1
    assert get(protocol, path, "asset_id=nothing").json["error"]["kind"] == "entity_not_found"
