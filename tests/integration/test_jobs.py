"""Jobs, and what they write into ClickHouse."""

from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import falcon.testing
import pytest
from clickhouse_connect.driver.client import Client

from analytics_service.app import create_app
from analytics_service.clickhouse.connection import Store
from analytics_service.config.settings import Settings
from analytics_service.errors import SourceError, StoreUnavailable
from analytics_service.market.assets import Asset
from analytics_service.market.instants import multiples_between
from analytics_service.market.prices import Price
from analytics_service.sources.simulated.source import SimulatedSource
from analytics_service.store.datasets.assets import read_assets
from analytics_service.store.ledger import read_heads
from jobs.recompute import plan, replace_snapshots
from jobs.registry import JOBS
from jobs.runner import backfill, take_snapshot
from tests.clickhouse import contents
from tests.doubles import FreshHeads, dying
from tests.integration import imports
from tests.oracle import rollups
from tests.stored import write_assets

PRICES = JOBS["prices"]
SOURCE = SimulatedSource("1")
NOON = datetime(2025, 3, 1, 12, tzinfo=UTC)
NOON_SECOND = 1_740_830_400
HOUR = timedelta(hours=1)

pytestmark = pytest.mark.usefixtures("store")


def stored_prices(client: Client, at: datetime) -> dict[str, Decimal]:
    """The prices stored for an instant, by asset."""
    query = "SELECT asset_id, value_exact FROM price WHERE observed_at = {at:DateTime('UTC')}"
    rows = client.query(query, parameters={"at": at}).result_rows
    return {row[0]: row[1] for row in rows}


def quoted_prices(at: datetime) -> dict[str, Decimal]:
    """The prices that the source quotes at an instant, by asset."""
    return {price.asset_id: price.usd for price in SOURCE.prices(at)}


def filled(store: Store, start: datetime, end: datetime) -> int:
    return backfill(PRICES, SOURCE, store, multiples_between(start, end + HOUR, HOUR))


def test_a_run_stores_the_prices_and_assets_of_the_source(store: Store, client: Client) -> None:
    take_snapshot(PRICES, SOURCE, store, NOON)
    assert stored_prices(client, NOON) == quoted_prices(NOON)
    assert list(read_assets(store).values()) == sorted(SOURCE.assets(NOON), key=lambda asset: asset.id)
    assert read_heads(store)["prices"].instant == NOON


def test_a_backfill_that_dies_half_way_continues_where_it_was(
    store: Store, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of seven hours it dies after the first batch, which is of five."""
    monkeypatch.setattr("jobs.runner._CHUNK", 5)

    def die(_: int) -> None:
        raise StoreUnavailable("ClickHouse is gone.")

    with pytest.raises(StoreUnavailable):
        backfill(PRICES, SOURCE, store, multiples_between(NOON, NOON + 7 * HOUR, HOUR), die)
    assert filled(store, NOON, NOON + 6 * HOUR) == 2
    assert len(contents(client)["observation"]) == 7 * 13


class SlowSource(SimulatedSource):
    """While it is asked for prices for the first time, something else happens."""

    def __init__(self, meanwhile: Callable[[], object]) -> None:
        super().__init__("1")
        self.meanwhile = [meanwhile]

    def prices(self, at: datetime) -> Sequence[Price]:
        while self.meanwhile:
            self.meanwhile.pop()()
        return super().prices(at)


def test_a_scheduler_that_another_one_overtakes_rewrites_nothing(store: Store) -> None:
    take_snapshot(PRICES, SOURCE, store, NOON - HOUR)
    slow = SlowSource(lambda: take_snapshot(PRICES, SOURCE, store, NOON))
    assert not take_snapshot(PRICES, slow, store, NOON)
    head = read_heads(store)["prices"]
    assert (head.instant, head.runs, head.rewrites) == (NOON, 2, 0)


def test_a_backfill_of_the_past_that_another_one_overtakes_rewrites_nothing(store: Store) -> None:
    take_snapshot(PRICES, SOURCE, store, NOON)
    slow = SlowSource(lambda: filled(store, NOON - HOUR, NOON - HOUR))
    assert backfill(PRICES, slow, store, [NOON - HOUR]) == 0
    assert read_heads(store)["prices"].rewrites == 1


def test_a_backfill_that_another_one_overtakes_takes_the_rest(store: Store, client: Client) -> None:
    slow = SlowSource(lambda: filled(store, NOON + HOUR, NOON + 2 * HOUR))
    assert backfill(PRICES, slow, store, multiples_between(NOON, NOON + 5 * HOUR, HOUR)) == 3
    assert len(contents(client)["observation"]) == 5 * 13


class RenamingSource(SimulatedSource):
    """A protocol that renames its first asset and delists its last one at NOON."""

    def assets(self, at: datetime) -> Sequence[Asset]:
        first, *others, last = super().assets(at)
        if at < NOON:
            return [replace(first, name="Old Name"), *others, last]
        return [replace(first, name="New Name"), *others]


def test_a_backfill_of_the_past_adds_assets_and_redefines_none(store: Store) -> None:
    source = RenamingSource("1")
    first, *_, last = SOURCE.assets(NOON)
    take_snapshot(PRICES, source, store, NOON)
    assert last.id not in read_assets(store)
    backfill(PRICES, source, store, [NOON - 2 * HOUR, NOON - HOUR])
    assets = read_assets(store)
    assert assets[first.id].name == "New Name"
    assert assets[last.id] == last


def test_a_later_snapshot_redefines_assets(store: Store) -> None:
    """Also those that were written while the clock was ahead."""
    source = RenamingSource("1")
    first, second, *_ = SOURCE.assets(NOON)
    take_snapshot(PRICES, source, store, NOON - HOUR)
    assert read_assets(store)[first.id].name == "Old Name"
    ahead = int(datetime(2100, 1, 1, tzinfo=UTC).timestamp()) * 1000
    write_assets(store, [replace(second, name="Other Name")], ahead)
    backfill(PRICES, source, store, [NOON - HOUR, NOON, NOON + HOUR])
    assets = read_assets(store)
    assert (assets[first.id].name, assets[second.id]) == ("New Name", second)


class Oracle(SimulatedSource):
    """An oracle with two feeds: each has a price (of an observation so many seconds after NOON) until tests set one."""

    def __init__(self, **feeds: tuple[int, str]) -> None:
        super().__init__("1")
        self.feeds = feeds

    def prices(self, at: datetime) -> Sequence[Price]:
        return [
            Price(f"token;{name}", NOON + timedelta(seconds=second), Decimal(usd))
            for name, (second, usd) in self.feeds.items()
        ]


def test_a_price_that_the_oracle_only_repeats_is_written_once_and_rewrites_nothing(
    store: Store, client: Client
) -> None:
    """At the first snapshot, its observation is a day old."""
    oracle = Oracle(busy=(-1, "1"), still=(-86_400, "7"))
    take_snapshot(PRICES, oracle, store, NOON)
    for minute in (1, 2):
        oracle.feeds["busy"] = (60 * minute - 1, f"1.{minute}")
        take_snapshot(PRICES, oracle, store, NOON + timedelta(minutes=minute))
    # Nothing at all is new a minute later.
    take_snapshot(PRICES, oracle, store, NOON + timedelta(minutes=3))
    head = read_heads(store)["prices"]
    assert (head.at, head.runs, head.rewrites) == (NOON_SECOND + 180, 4, 0)
    query = "SELECT asset_id, toInt64(toUnixTimestamp(observed_at)) - {noon:Int64}, value_exact FROM price ORDER BY ALL"
    assert client.query(query, parameters={"noon": NOON_SECOND}).result_rows == [
        ("token;busy", -1, Decimal(1)),
        ("token;busy", 59, Decimal("1.1")),
        ("token;busy", 119, Decimal("1.2")),
        ("token;still", -86_400, Decimal(7)),
    ]


def observed_of(client: Client, name: str) -> list[tuple[int, Decimal]]:
    """The observations of a feed: seconds after NOON, and prices."""
    seconds = "toInt64(toUnixTimestamp(observed_at)) - {noon:Int64}"
    query = f"SELECT {seconds}, value_exact FROM price WHERE asset_id = {{id:String}} ORDER BY ALL"
    return [*client.query(query, parameters={"noon": NOON_SECOND, "id": f"token;{name}"}).result_rows]


def test_an_observation_that_the_oracle_corrects_or_brings_late_is_a_rewrite(store: Store, client: Client) -> None:
    oracle = Oracle(busy=(-1, "1"), still=(-86_400, "7"))
    take_snapshot(PRICES, oracle, store, NOON)
    oracle.feeds = {"busy": (59, "1.1"), "still": (-86_400, "8"), "late": (-100, "5")}
    take_snapshot(PRICES, oracle, store, NOON + timedelta(minutes=1))
    assert read_heads(store)["prices"].rewrites == 1
    assert observed_of(client, "busy") == [(-1, Decimal(1)), (59, Decimal("1.1"))]
    assert observed_of(client, "late") == [(-100, Decimal(5))]
    assert observed_of(client, "still") == [(-86_400, Decimal(8))]


# What the oracle says at seconds after NOON. The second tick closes the first quarter of an hour, and the third one
# brings an observation that was made in it.
TICKS = {
    120: {"busy": (120, "1"), "slow": (100, "5")},
    900: {"busy": (900, "2"), "slow": (100, "5")},
    1200: {"busy": (1200, "3"), "slow": (300, "9")},
}


def tick(store: Store, second: int, feeds: dict[str, tuple[int, str]]) -> None:
    take_snapshot(PRICES, Oracle(**feeds), store, NOON + timedelta(seconds=second))


def observed(*ticks: dict[str, tuple[int, str]]) -> dict[tuple[str, int], Decimal]:
    """All that an oracle has said."""
    return {
        (f"token;{name}", NOON_SECOND + second): Decimal(usd)
        for feeds in ticks
        for name, (second, usd) in feeds.items()
    }


def slow_quarters(service: falcon.testing.TestClient) -> list[tuple[str, ...]]:
    """Of the slow feed, the value at the end of each of the first two quarters of an hour, and its candle."""
    asked = f"start={NOON_SECOND}&end={NOON_SECOND + 1799}&period=min&interval=15&asset_ids=token;slow"
    pages = []
    for agg in ("last", "ohlc"):
        answer = service.simulate_get("/api/v1/assets/price-history", query_string=f"{asked}&agg={agg}")
        pages.append(answer.json["data"]["series"][0]["points"])
    return [(last["v"], *map(candle.get, "ohlc")) for last, candle in zip(*pages, strict=True)]


def test_an_observation_older_than_the_head_corrects_pages_candles_and_rollups(
    settings: Settings, store: Store
) -> None:
    """What the pages showed before is in memory when the observation comes."""
    service = falcon.testing.TestClient(create_app(settings, store, heads=FreshHeads(store)))
    for second in (120, 900):
        tick(store, second, TICKS[second])
    assert slow_quarters(service) == [("5", "5", "5", "5", "5")] * 2
    tick(store, 1200, TICKS[1200])
    assert slow_quarters(service) == [("9", "5", "9", "5", "9"), ("9", "9", "9", "9", "9")]
    assert read_heads(store)["prices"].rewrites == 1
    assert set(imports.query(settings, imports.ROLLUPS.format(history="price"))) == rollups(observed(*TICKS.values()))


def test_an_observation_that_a_dead_run_left_before_the_head_is_written_again(
    settings: Settings, store: Store, client: Client
) -> None:
    """The next run is told the same price."""
    service = falcon.testing.TestClient(create_app(settings, store, heads=FreshHeads(store)))
    for second in (120, 900):
        tick(store, second, TICKS[second])
    slow_quarters(service)
    with closing(dying(settings, "snapshot")) as broken, pytest.raises(StoreUnavailable):
        tick(broken, 1200, TICKS[1200])
    following = {"busy": (1260, "3"), "slow": (300, "9")}
    tick(store, 1260, following)
    rows = "SELECT value, version IN (SELECT version FROM snapshot) FROM observation FINAL"
    where = f"asset_id = 'token;slow' AND observed_at = {NOON_SECOND + 300}"
    assert client.query(f"{rows} WHERE {where}").result_rows == [(Decimal(9), 1)]
    assert slow_quarters(service) == [("9", "5", "9", "5", "9"), ("9", "9", "9", "9", "9")]
    assert set(imports.query(settings, imports.ROLLUPS.format(history="price"))) == rollups(
        observed(*TICKS.values(), following)
    )


def test_a_price_of_the_far_future_is_left_out_and_holds_up_nothing(
    store: Store, client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    """The last second of 32 bits is what some sources have for an unknown time; a day ahead is a clock."""
    oracle = Oracle(busy=(-1, "1"), ahead=(86_400, "2"), never=(2**32 - 1 - NOON_SECOND, "3"))
    take_snapshot(PRICES, oracle, store, NOON)
    query = "SELECT asset_id, value_exact FROM price ORDER BY asset_id"
    assert client.query(query).result_rows == [("token;ahead", Decimal(2)), ("token;busy", Decimal(1))]
    assert "prices: observed_at of token;never is 2106-02-07T06:28:15Z, which cannot be true." in caplog.text
    with pytest.raises(SourceError, match="quotes no valid prices"):
        take_snapshot(PRICES, Oracle(never=(2 * 86_400, "3")), store, NOON + HOUR)


def test_many_repeated_prices_are_looked_for_in_parts(store: Store, client: Client) -> None:
    """More than one query's worth, with ids as long as denoms get."""
    feeds = {f"{'x' * 100}{number}": (-number - 1, "1") for number in range(1_100)}
    oracle = Oracle(**feeds)
    for minute in (0, 1):
        take_snapshot(PRICES, oracle, store, NOON + timedelta(minutes=minute))
    assert len(contents(client)["observation"]) == 1_100
    assert read_heads(store)["prices"].rewrites == 0


def test_a_backfill_writes_a_repeated_price_once(store: Store, client: Client) -> None:
    """In whatever order its parts are filled, and when they are taken again."""
    oracle, day = Oracle(still=(-86_400, "7")), [NOON + hour * HOUR for hour in range(4)]
    for hours in (day[2:], day[:2]):
        backfill(PRICES, oracle, store, hours)
    (portion, *_) = plan(store, "prices", NOON, NOON + 2 * HOUR)
    replace_snapshots(PRICES, oracle, store, portion)
    assert observed_of(client, "still") == [(-86_400, Decimal(7))]


def test_an_observation_that_comes_after_snapshots_without_any_is_appended(store: Store) -> None:
    """It was made before the last of them, which had nothing new."""
    oracle = Oracle(still=(-1, "7"))
    for minute in (0, 1, 2):
        take_snapshot(PRICES, oracle, store, NOON + timedelta(minutes=minute))
    oracle.feeds["still"] = (118, "8")
    take_snapshot(PRICES, oracle, store, NOON + timedelta(minutes=3))
    head = read_heads(store)["prices"]
    assert (head.last_observed_at, head.rewrites) == (NOON_SECOND + 118, 0)
