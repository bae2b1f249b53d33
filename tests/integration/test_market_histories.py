"""Histories of what markets are worth, over hand-made and simulated markets."""

from dataclasses import replace
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any
from urllib.parse import urlencode

import falcon.testing
import pytest

from analytics_service.app import create_app
from analytics_service.clickhouse.connection import Store
from analytics_service.config.settings import Settings
from analytics_service.errors import SourceError
from analytics_service.history.candles import Aggregate
from analytics_service.history.formats import FORMATS
from analytics_service.market.assets import Asset, AssetGroup, AssetKind
from analytics_service.market.markets import CollateralMarket, LendMarket, Market
from analytics_service.store.datasets.markets import read_market_prices
from analytics_service.store.ledger import read_heads
from jobs.registry import JOBS
from jobs.runner import backfill, take_snapshot
from tests.doubles import FreshHeads
from tests.integration.handmade import MARKETS, NOON, HandMade, debt_market

JOB = JOBS["markets"]
SECOND = int(NOON.timestamp())
MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)
SINGLE = ("tvl", "net-tvl")
A, RECEIPT, B, UNPRICED = "native;a", "native;ra", "native;b", "native;c"


def asset(key: str, decimals: int, kind: AssetKind = AssetKind.REGULAR, receipt: str | None = None) -> Asset:
    return Asset(AssetGroup.NATIVE, key, key, key.upper(), f"u{key}", decimals, 2, kind, None, receipt)


# Each hundredth of a is a denom unit, each unit of b and c is one.
ASSETS = (asset("a", 2, receipt=RECEIPT), asset("ra", 2, AssetKind.RECEIPT), asset("b", 0), asset("c", 0))
COLLATERAL = next(each.collateral.config for each in MARKETS if each.collateral)


def lent(principal: int, receipts: int) -> LendMarket:
    return LendMarket(Decimal(0), principal, receipts)


def posted(balance: int) -> CollateralMarket:
    return CollateralMarket(COLLATERAL, balance, 1)


def owed(balance: int) -> Any:
    return debt_market(balance=balance, shares=1)


def world(a: str, b: str, markets: list[Market]) -> HandMade:
    return HandMade(assets_=ASSETS, prices_={A: Decimal(a), B: Decimal(b)}, markets_=markets)


# At noon 1.10 a are lent against 1.00 receipts, and 0.50 receipts are posted. Receipts cost 1.1 times as much as a.
FIRST = world(
    "2",
    "3.5",
    [
        Market(A, lent(110, 100), None, owed(33)),
        Market(RECEIPT, None, posted(50), None),
        Market(B, None, posted(4), None),
        Market(UNPRICED, lent(8, 8), posted(5), owed(6)),
    ],
)
# An hour later both prices have changed, everything was taken out of a, b can be lent, and debts in it exceed all else.
SECOND_HOUR = world(
    "1",
    "0.5",
    [
        Market(A, lent(0, 0), None, owed(0)),
        Market(RECEIPT, None, posted(0), None),
        Market(B, lent(3, 3), posted(4), owed(9)),
        Market(UNPRICED, lent(8, 8), posted(5), owed(6)),
    ],
)
# 1.10 a at 2 USD, 0.50 receipts at 2.2 USD, 0.33 a of debt, 4 b at 3.5 USD; then 3 b at 0.5 USD, 4 b, 9 b of debt.
VALUES: dict[str, Any] = {
    "tvl": ["16.2", "3.5"],
    "net-tvl": ["15.54", "-1"],
    "deposits": {A: ["2.2", "0"], B: [None, "1.5"]},
    "collateral": {B: ["14", "2"], RECEIPT: ["1.1", "0"]},
    "debt": {A: ["0.66", "0"], B: [None, "4.5"]},
    "utilization": {A: ["0.3", None], B: [None, "3"], UNPRICED: ["0.75", "0.75"]},
}


@pytest.fixture
def client(settings: Settings, store: Store) -> falcon.testing.TestClient:
    return falcon.testing.TestClient(create_app(settings, store, heads=FreshHeads(store)))


def page(client: falcon.testing.TestClient, name: str, start: int, end: int, **query: object) -> Any:
    """The values of a history in each bucket: of a single series, or by asset id."""
    asked = {"start": start, "end": end, "period": "h", **query}
    answer = client.simulate_get(f"/api/v1/markets/history/{name}", query_string=urlencode(asked))
    assert answer.status_code == 200, answer.json
    data = answer.json["data"]
    if name in SINGLE:
        return [point["v"] for point in data["points"]]
    return {one["asset"]["id"]: [point["v"] for point in one["points"]] for one in data["series"]}


def test_each_history_has_the_values_at_the_prices_of_each_snapshot(
    client: falcon.testing.TestClient, store: Store
) -> None:
    """An asset without a price counts in no USD value, but it has a utilization."""
    take_snapshot(JOB, FIRST, store, NOON)
    take_snapshot(JOB, SECOND_HOUR, store, NOON + HOUR)
    for name, expected in VALUES.items():
        assert page(client, name, SECOND, SECOND + 3600, fill="none") == expected, name
    # Without deposits there is no ratio, and the one before does not go on.
    assert page(client, "utilization", SECOND, SECOND + 3600)[A] == ["0.3", None]


def test_a_receipt_token_that_only_itself_names_its_origin_has_its_price(
    client: falcon.testing.TestClient, store: Store
) -> None:
    one_way = (asset("a", 2), replace(asset("ra", 2, AssetKind.RECEIPT), origin_asset=A), *ASSETS[2:])
    source = replace(FIRST, assets_=one_way)
    for job in (JOBS["prices"], JOB):
        take_snapshot(job, source, store, NOON)
    assert page(client, "collateral", SECOND, SECOND)[RECEIPT] == ["1.1"]
    flags = {"with_text": "true", "with_value": "true"}
    for moment in ({}, {"at": SECOND}):
        for path, asset_id, variant, expected in (
            ("borrow/collaterals", RECEIPT, "value", {"price": "2.2", "balance": "1.1"}),
            ("lend", A, "text", {"receipt_total_supply": "1.00 RA"}),
        ):
            query = urlencode({"asset_id": asset_id, **flags, **moment})
            answer = client.simulate_get(f"/api/v1/markets/{path}/lookup", query_string=query).json["data"]
            assert answer["state"]["extra"][variant].items() >= expected.items()


def test_a_negative_total_comes_back_from_rollups_of_every_width(
    client: falcon.testing.TestClient, store: Store
) -> None:
    """Read from the store, and from memory once that is loaded."""
    steps = {"h": 3600, "m": 31 * 86_400}
    for after in (0, *steps.values()):
        take_snapshot(JOB, SECOND_HOUR if after else FIRST, store, NOON + timedelta(seconds=after))
    for period, step in [*steps.items()] * 2:
        assert page(client, "net-tvl", SECOND, SECOND + step, period=period)[-1] == "-1"
        assert page(client, "net-tvl", SECOND, SECOND, period=period) == ["15.54"]
        client.app.memory.wait(10)


def test_others_are_the_sum_of_all_assets_that_are_not_named_or_null_while_one_is_unknown(
    client: falcon.testing.TestClient, store: Store
) -> None:
    """Of a, b and c in turn 2, 4 and 5 are posted at 1 USD each; b is new at the second hour and too much to store at
    the third."""

    def at_hour(b: int | None) -> HandMade:
        balances = {A: 2, B: b, UNPRICED: 5}
        markets = [Market(name, None, posted(each), None) for name, each in balances.items() if each is not None]
        plain = tuple(asset(key, 0) for key in "abc")
        return HandMade(assets_=plain, prices_=dict.fromkeys(balances, Decimal(1)), markets_=markets)

    for hour, b in enumerate((None, 4, 10**20)):
        take_snapshot(JOB, at_hour(b), store, NOON + hour * HOUR)
    path, range_ = "/api/v1/markets/history/collateral", f"start={SECOND}&end={SECOND + 4 * 3600}&period=h&others=true"

    def others(query: str) -> Any:
        answer = client.simulate_get(path, query_string=f"{range_}&format=columns&{query}")
        assert answer.headers["history-begins"] == f"@{SECOND}"
        *named, last = answer.json["data"]["series"]
        assert all(one["asset"] for one in named)
        return last

    # After the newest snapshot there is nothing, unless it is carried on.
    assert others(f"asset_ids={A}") == {"v": ["5", "9", None, None, None]}
    assert others(f"asset_ids={B}&fill=last") == {"v": ["7", "7", "7", "7", "7"]}
    assert others(f"asset_ids={A},{UNPRICED}") == {"v": [None, "4", None, None, None]}
    assert others(f"asset_ids={A}&digits=1&limit=1&offset=1") == {"v": ["9"]}
    # Nothing is left.
    assert others("") == others(f"asset_ids={A},{B},{UNPRICED}") == {"v": [None] * 5}
    rows = client.simulate_get(path, query_string=f"{range_}&format=csv&asset_ids={A},{B}").text.splitlines()
    assert [row.split(",")[2:] for row in rows[-5:]] == [["", "", value] for value in ("5", "5", "5", "", "")]


@pytest.mark.parametrize(
    ("path", "query", "refused"),
    [
        ("markets/history/debt", "", "needs format=columns"),
        ("markets/history/debt", "&format=csv&agg=mean", "needs agg=last"),
        ("markets/history/debt", "&format=csv&fill=none", "needs agg=last"),
        ("assets/price-history", "&format=csv", "'others'"),
    ],
)
def test_others_are_added_where_values_add_up_only(
    empty: falcon.testing.TestClient, path: str, query: str, refused: str
) -> None:
    range_ = f"start={SECOND}&end={SECOND}&period=h&others=true"
    answer = empty.simulate_get(f"/api/v1/{path}", query_string=range_ + query)
    assert answer.status_code == 400
    assert refused in answer.json["error"]["message"]


def test_prices_that_come_later_change_no_point(client: falcon.testing.TestClient, store: Store) -> None:
    """Neither does the job that is run again; the present supply is at the newest prices."""
    for name in ("prices", "markets"):
        take_snapshot(JOBS[name], FIRST, store, NOON)
    take_snapshot(JOBS["prices"], SECOND_HOUR, store, NOON + MINUTE)
    assert not take_snapshot(JOB, SECOND_HOUR, store, NOON)
    assert page(client, "tvl", SECOND, SECOND) == ["16.2"]
    # 1.10 a at 1 USD and 4 b at 0.5 USD.
    assert client.simulate_get("/api/v1/markets/supply").json["data"]["tvl"]["tvl"] == "3.1"
    assert read_market_prices(store, SECOND) == {A: Decimal(2), B: Decimal("3.5")}


def test_a_value_that_cannot_be_stored_has_no_observation(client: falcon.testing.TestClient, store: Store) -> None:
    """10^20 USD are posted in b. Its utilization is known all the same; the total is not."""
    huge = [Market(A, lent(100, 100), None, None), Market(B, lent(2, 2), posted(10**20), owed(1))]
    take_snapshot(JOB, world("1", "1", huge), store, NOON)
    assert page(client, "collateral", SECOND, SECOND) == {}
    assert page(client, "deposits", SECOND, SECOND) == {A: ["1"], B: ["2"]}
    assert page(client, "utilization", SECOND, SECOND) == {A: ["0"], B: ["0.5"]}
    assert page(client, "tvl", SECOND, SECOND) == [None]


def test_a_source_without_prices_is_an_error(store: Store) -> None:
    with pytest.raises(SourceError, match="quotes no prices"):
        take_snapshot(JOB, HandMade(prices_={}), store, NOON)
    assert read_heads(store) == {}


def test_a_single_series_without_any_observation_is_empty_in_every_form(
    client: falcon.testing.TestClient, store: Store
) -> None:
    """What is lent is worth more than what can be stored, so there are no sums (rule 2.15). Read from the store, and
    from memory."""
    take_snapshot(JOB, world("2", "3.5", [Market(A, lent(10**30, 10**30), None, None)]), store, NOON)
    candle = {"o": None, "h": None, "l": None, "c": None, "n": 0}
    for agg, nothing in ((Aggregate.LAST, {"v": None}), (Aggregate.OHLC, candle)):
        query = f"start={SECOND - 3600}&end={SECOND + 3599}&period=h&agg={agg}"
        for _ in range(2):
            answer = client.simulate_get("/api/v1/markets/history/tvl", query_string=query)
            assert answer.json["data"]["points"] == [{"t": at, **nothing} for at in (SECOND - 3600, SECOND)]
            client.app.memory.wait()
        for form in FORMATS:
            answer = client.simulate_get("/api/v1/markets/history/tvl", query_string=f"{query}&format={form}")
            assert answer.status_code == 200, (form, answer.text)
            if form == "columns":
                assert answer.json["data"]["series"] == [{key: [value] * 2 for key, value in nothing.items()}]


# What the markets of each hour have: b vanishes after the first, and comes back in the fourth; a loses its debt market
# in the third.
HOURS = (
    [Market(A, lent(100, 100), None, owed(50)), Market(B, None, posted(4), None)],
    [Market(A, lent(100, 100), None, owed(50))],
    [Market(A, lent(100, 100), None, None)],
    [Market(A, lent(100, 100), None, None), Market(B, None, posted(2), None)],
)
VANISHED: dict[str, Any] = {
    "tvl": ["9", "1", "1", "5"],
    "deposits": {A: ["1", "1", "1", "1"]},
    "collateral": {B: ["8", "0", "0", "4"]},
    "debt": {A: ["0.5", "0.5", "0", "0"]},
}


def test_what_a_snapshot_lacks_is_zero_in_whatever_order_they_are_taken(
    client: falcon.testing.TestClient, store: Store
) -> None:
    """The totals leave it out, so series that carried it would not add up to them. Some are of one backfill."""

    class Changing(HandMade):
        def markets(self, at: datetime) -> list[Market]:
            return HOURS[(at - NOON) // HOUR]

    source = Changing(assets_=ASSETS, prices_={A: Decimal(1), B: Decimal(2)})
    take_snapshot(JOB, source, store, NOON + HOUR)
    for hours in ((0, 3), (2,)):
        backfill(JOB, source, store, [NOON + hour * HOUR for hour in hours])
    for name, expected in VANISHED.items():
        assert page(client, name, SECOND, SECOND + 3 * 3600) == expected, name
