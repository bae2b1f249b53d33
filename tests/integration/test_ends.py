"""Assets that ended: nothing is carried past their end, and they are in no list and no sum of the present."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any, NamedTuple
from urllib.parse import urlencode

import falcon.testing
import pytest
from clickhouse_connect.driver.client import Client

from analytics_service.app import create_app
from analytics_service.clickhouse.connection import Store
from analytics_service.config.settings import Settings
from analytics_service.market.assets import Asset, AssetGroup
from analytics_service.market.markets import LendMarket, Market
from analytics_service.market.prices import Price
from analytics_service.sources.registry import origin_of
from analytics_service.store.commits import Provenance, begin, commit
from analytics_service.store.datasets.assets import present_frame, read_assets
from analytics_service.store.rewrite import write_definitions
from jobs.registry import JOBS
from jobs.runner import backfill, take_snapshot
from jobs.snapshot import JobContext
from tests import clickhouse
from tests.doubles import FreshHeads
from tests.integration.databases import database
from tests.integration.handmade import NOON, HandMade

HOUR, DAY = timedelta(hours=1), timedelta(days=1)
SECOND = int(NOON.timestamp())
A = Asset(AssetGroup.NATIVE, "a", "A", "AAA", "ua", 0, 0)
B = Asset(AssetGroup.NATIVE, "b", "B", "BBB", "ub", 0, 0)


@dataclass
class Delisting(HandMade):
    """Lists b, prices it and has a market of it, up to noon and from `again` on."""

    again: datetime = NOON + 365 * DAY

    def _listed(self, at: datetime) -> list[Asset]:
        return [A, B] if at <= NOON or at >= self.again else [A]

    def assets(self, at: datetime) -> Sequence[Asset]:
        return self._listed(at)

    def prices(self, at: datetime) -> Sequence[Price]:
        return [Price(asset.id, at, Decimal(2 if at < NOON else 4)) for asset in self._listed(at)]

    def markets(self, at: datetime) -> Sequence[Market]:
        return [Market(asset.id, LendMarket(Decimal(0), 10, 10), None, None) for asset in self._listed(at)]


def take_prices(store: Store, *instants: datetime) -> None:
    for at in instants:
        take_snapshot(JOBS["prices"], Delisting(), store, at)


def client_of(settings: Settings, store: Store, now: datetime = NOON + 7 * DAY) -> falcon.testing.TestClient:
    return falcon.testing.TestClient(create_app(settings, store, lambda: now, heads=FreshHeads(store)))


def ask(client: falcon.testing.TestClient, path: str, **query: object) -> Any:
    answer = client.simulate_get(f"/api/v1/{path}", query_string=urlencode(query))
    assert answer.status_code == 200, answer.text
    return answer.json["data"]


def series(client: falcon.testing.TestClient, path: str, symbol: str = "BBB", **query: object) -> list[Any]:
    data = ask(client, path, symbols=symbol, **query)
    return data["series"][0]["points"]


class Ended(NamedTuple):
    """A database in which b was listed last at noon, read by many tests and written by none."""

    settings: Settings
    store: Store


@pytest.fixture(scope="module")
def ended(server: Settings) -> Iterator[Ended]:
    """From an hour before noon to 25 hours after it."""
    settings = replace(server, clickhouse_database="test_ends")
    with database(settings, views=True) as store:
        instants = (NOON - HOUR, NOON, NOON + HOUR, NOON + DAY)
        take_prices(store, *instants)
        backfill(JOBS["markets"], Delisting(), store, instants)
        yield Ended(settings, store)


RANGE = {"start": SECOND - 3600, "end": SECOND + 7200, "period": "h"}


def test_no_aggregate_and_no_fill_goes_past_the_end(ended: Ended) -> None:
    for memory, fill in ((0, "last"), (96, "previous")):
        client = client_of(replace(ended.settings, history_memory=memory), ended.store)
        for agg in ("last", "min", "mean"):
            points = series(client, "assets/price-history", agg=agg, fill=fill, **RANGE)
            assert [point["v"] for point in points] == ["2", "4", None, None], (agg, fill)
        points = series(client, "assets/price-history", agg="delta", fill=fill, **RANGE)
        assert [point["v"] for point in points] == [None, "2", None, None], fill
        points = series(client, "assets/price-history", agg="ohlc", fill=fill, **RANGE)
        candles = [(point["o"], point["c"], point["n"]) for point in points[1:]]
        assert candles == [("4", "4", 1), (None, None, 0), (None, None, 0)]
        assert [point["v"] for point in series(client, "assets/price-history", symbol="AAA", **RANGE)] == ["2", *"444"]


def test_a_mean_covers_the_time_up_to_the_end(ended: Ended) -> None:
    """Of the day of the end: 2 USD for an hour from 11:00 on, 4 USD for the second at noon."""
    day = {"start": "2025-03-01", "end": "2025-03-01", "period": "d", "agg": "mean", "digits": 8}
    expected = {"AAA": (2 * 3600 + 4 * 12 * 3600) / (13 * 3600), "BBB": (2 * 3600 + 4) / 3601}
    client = client_of(*ended)
    for symbol, mean in expected.items():
        (point,) = series(client, "assets/price-history", symbol=symbol, **day)
        assert float(point["v"]) == pytest.approx(mean, abs=1e-6)


def test_a_mean_of_deposits_goes_up_to_the_snapshot_that_lacks_them(ended: Ended) -> None:
    """20 USD for an hour from 11:00 on, 40 USD for the next one; the snapshot at 13:00 has no such market."""
    day = {"start": SECOND - 3600, "end": SECOND + 10_799, "period": "h", "interval": 4}
    client = client_of(*ended)
    for fill in ("previous", "last"):
        for agg, value in {"mean": "30", "min": "0", "max": "40"}.items():
            (point,) = series(client, "markets/history/deposits", agg=agg, fill=fill, **day)
            assert point["v"] == value, (agg, fill)


def test_between_its_last_listing_and_the_next_snapshot_an_asset_goes_on(ended: Ended) -> None:
    """In SQL as over HTTP, which show the newest snapshot."""
    listed = ask(client_of(*ended), "assets/prices", at=SECOND + 1800)
    assert [item["asset"]["id"] for item in listed] == [A.id, B.id]
    with clickhouse.client(ended.settings) as client:
        rows = client.query("SELECT asset_id FROM price_at(time = '2025-03-01T12:30:00Z') ORDER BY 1").result_rows
    assert rows == [(A.id,), (B.id,)]


def test_files_have_no_value_after_the_end(ended: Ended) -> None:
    client = client_of(*ended)
    text = client.simulate_get(
        "/api/v1/assets/price-history", query_string=urlencode({**RANGE, "format": "csv", "symbols": "BBB"})
    ).text
    assert [line.split(",")[-1] for line in text.split()[1:]] == ["2", "4", "", ""]
    deposits = ask(client, "markets/history/deposits", **RANGE)["series"]
    assert {one["asset"]["id"]: [point["v"] for point in one["points"]] for one in deposits} == {
        A.id: ["20", "40", "40", "40"],
        B.id: ["20", "40", None, None],
    }
    assert [point["v"] for point in ask(client, "markets/history/tvl", **RANGE)["points"]] == ["40", "80", "40", "40"]


def test_an_ended_asset_is_in_no_list_of_the_present(ended: Ended) -> None:
    app = client_of(*ended)
    for path in ("assets", "assets/prices"):
        listed = {str(item.get("asset_info", item)["asset"]["id"]) for item in ask(app, path)}
        assert listed == {A.id}, path
        before = ask(app, path, at=SECOND)
        assert {str(item.get("asset_info", item)["asset"]["id"]) for item in before} == {A.id, B.id}
        # It was found later that it had ended by then.
        during = ask(app, path, at=SECOND + 2 * 3600)
        assert {str(item.get("asset_info", item)["asset"]["id"]) for item in during} == {A.id}
    views = {
        "assets": [A.id],
        "all_assets": [A.id, B.id],
        "price_now": [A.id],
        f"price_at(time = '{NOON:%FT%TZ}')": [A.id, B.id],
        f"price_at(time = '{NOON + HOUR:%FT%TZ}')": [A.id],
    }
    with clickhouse.client(ended.settings) as client:
        for view, ids in views.items():
            assert [row[0] for row in client.query(f"SELECT asset_id FROM {view} ORDER BY 1").result_rows] == ids, view


def test_answers_that_were_given_before_the_end_was_found_are_made_again(settings: Settings, store: Store) -> None:
    take_prices(store, NOON, NOON + HOUR)
    backfill(JOBS["markets"], Delisting(), store, [NOON + hour * HOUR for hour in range(-1, 3)])
    app = client_of(settings, store)

    def shown() -> tuple[list[str], list[str | None]]:
        past = [item["asset"]["id"] for item in ask(app, "assets", at=SECOND + 3600)]
        points = series(app, "markets/history/deposits", **RANGE)
        return past, [point["v"] for point in points]

    assert shown() == ([A.id, B.id], ["20", "40", "0", "0"])
    take_prices(store, NOON + DAY)
    assert shown() == ([A.id], ["20", "40", None, None])


def test_an_asset_that_is_listed_again_goes_on(settings: Settings, store: Store) -> None:
    """A backfill changes no end."""
    take_prices(store, NOON, NOON + DAY)
    assert read_assets(store)[B.id].ended_at == NOON
    backfill(JOBS["prices"], Delisting(), store, [NOON - 2 * HOUR, NOON + 2 * HOUR])
    assert read_assets(store)[B.id].ended_at == NOON
    take_snapshot(JOBS["prices"], Delisting(again=NOON + 2 * DAY), store, NOON + 2 * DAY)
    assert read_assets(store)[B.id].ended_at is None
    client = client_of(settings, store)
    assert len(ask(client, "assets")) == 2
    days = {"start": SECOND, "end": SECOND + 2 * 86_400, "period": "d"}
    points = series(client, "assets/price-history", **days)
    assert [point["v"] for point in points] == ["4"] * 3


@pytest.mark.usefixtures("views")
def test_the_end_is_the_last_instant_at_which_any_run_saw_it_listed(store: Store, client: Client) -> None:
    """Whichever of them began or wrote last: here, a run that knows of less does both."""

    def ends() -> list[datetime | None]:
        in_view = client.query(f"SELECT ended_at FROM all_assets WHERE asset_id = '{B.id}'").first_row[0]
        return [read_assets(store)[B.id].ended_at, in_view and in_view.replace(tzinfo=UTC)]

    source, prices = Delisting(), JOBS["prices"]
    take_prices(store, NOON + 7 * DAY)
    backfill(prices, source, store, [NOON - 3 * HOUR])
    beginning = begin(store, "prices", SECOND, SECOND + 1)
    take_prices(store, NOON + 7 * DAY + HOUR)
    less = read_assets(store)[B.id]
    assert ends() == [NOON - 3 * HOUR] * 2
    changes = prices.collect(JobContext("prices", source, store, [NOON], beginning.present))
    commit(store, changes, Provenance("backfill", origin_of(source)), beginning)
    assert ends() == [NOON] * 2
    write_definitions(store, present_frame(store, [less]), "end")
    assert ends() == [NOON] * 2
    take_prices(store, NOON + 7 * DAY + 2 * HOUR)
    assert ends() == [NOON] * 2
    # What an operator says stays.
    write_definitions(store, present_frame(store, [replace(less, ended_at=NOON - HOUR)]), "end")
    assert ends() == [NOON - HOUR] * 2


def test_the_setting_says_how_long_an_asset_may_be_unlisted(settings: Settings, store: Store) -> None:
    store.price_max_age = HOUR
    take_prices(store, NOON, NOON + HOUR)
    assert read_assets(store)[B.id].ended_at == NOON
