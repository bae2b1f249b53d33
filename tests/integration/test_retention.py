"""Raw rows that are dropped after their cells exist (rule 8.14): the same answers, or an error that says so."""

import random
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import falcon.testing
import pytest

from analytics_service.app import create_app
from analytics_service.config import Settings
from analytics_service.errors import ObservationsDropped
from analytics_service.history import catalogue
from analytics_service.history.buckets import Buckets
from analytics_service.history.candles import Aggregate
from analytics_service.history.memory import Loader, Memory
from analytics_service.history.reader import HistoryReader
from analytics_service.history.text_file import TextFile
from analytics_service.imports.families import PRICES
from analytics_service.imports.run import Request, import_files, try_import
from analytics_service.market.instants import instant
from analytics_service.market.prices import Price
from analytics_service.sources.simulated.source import SimulatedSource
from analytics_service.store.announcements import APPEND, REWRITE, tell
from analytics_service.store.connection import Store
from analytics_service.store.ledger import new_version, read_heads
from analytics_service.store.loans import read_loans
from analytics_service.store.progress import NO_REPORT
from analytics_service.store.retention import kept_from, prune
from jobs.registry import JOBS
from jobs.runner import backfill, run_once
from tests import oracle
from tests.doubles import FreshHeads, WatchedStore
from tests.integration.handmade import RealSource
from tests.integration.pages import Observations, Pages, commit

HOUR = timedelta(hours=1)
JANUARY, FEBRUARY, MARCH, APRIL = (int(datetime(2025, month, 1, tzinfo=UTC).timestamp()) for month in (1, 2, 3, 4))
NOW = datetime(2025, 4, 1, tzinfo=UTC)


def history(draw: random.Random) -> Observations:
    """Three months: a series by the hour, a sparse one, one of some dense days in January and March, one that ends."""

    def walk(first: int, last: int, step: int) -> list[tuple[int, Decimal]]:
        seconds = range(first, last, step)
        return [(at + draw.randint(0, step - 1), Decimal(draw.randint(1, 10**12)).scaleb(-9)) for at in seconds]

    dense = [*walk(JANUARY + 9 * 86_400, JANUARY + 12 * 86_400, 60), *walk(MARCH, MARCH + 2 * 86_400, 60)]
    return {
        "token;dense": dense,
        "token;ended": walk(JANUARY, JANUARY + 5 * 86_400, 1800),
        "token;hours": walk(JANUARY, APRIL, 3600),
        "token;rare": walk(JANUARY, APRIL, 9 * 86_400),
    }


@dataclass
class Kept:
    """A store of three months of which only March has raw rows, and what it would have without the loss."""

    store: Store
    rows: Observations
    count: Callable[[], list[int]]
    drop: Callable[[], None]


@pytest.fixture
def kept(store: Store, draw: random.Random) -> Kept:
    rows = history(draw)
    commit(store, rows, kind="import")

    def count() -> list[int]:
        months = store.frame("history_density", table="price").sort("month").iter_rows()
        return [int(name) for name, _ in months]

    def drop() -> None:
        prune(store, 30, NOW)
        prune(store, 30, NOW + HOUR)

    return Kept(store, rows, count, drop)


@pytest.fixture(params=[0, 96], ids=["store", "memory"])
def client(request: pytest.FixtureRequest, settings: Settings, kept: Kept) -> falcon.testing.TestClient:
    own = replace(settings, history_memory=request.param)
    return falcon.testing.TestClient(create_app(own, kept.store, heads=FreshHeads(kept.store)))


def page(client: falcon.testing.TestClient, **query: object) -> Any:
    return client.simulate_get("/api/v1/assets/price-history", query_string=urlencode(query)).json


def test_whole_months_go_an_hour_after_they_were_noted(kept: Kept) -> None:
    """30 days before April are in March, so January and February go, and March stays whole."""
    prune(kept.store, 30, NOW)
    assert (kept.count(), kept_from(kept.store, "price")) == ([202501, 202502, 202503], MARCH)
    prune(kept.store, 30, NOW + HOUR - timedelta(seconds=1))
    assert kept.count() == [202501, 202502, 202503]
    for _ in range(2):
        prune(kept.store, 30, NOW + HOUR)
        assert (kept.count(), kept_from(kept.store, "price")) == ([202503], MARCH)


def test_days_count_from_the_newest_observation_where_that_is_old(kept: Kept) -> None:
    prune(kept.store, 40, NOW + 365 * timedelta(days=1))
    assert kept_from(kept.store, "price") == FEBRUARY


def test_rows_stay_while_a_run_is_put_in_place(kept: Kept) -> None:
    """It may have been announced before the note, so that it needs them."""
    prune(kept.store, 30, NOW)
    for kind in (REWRITE, APPEND):
        version = new_version(kept.store)
        tell(kept.store, kind, ["prices"], version, finished=0)
        prune(kept.store, 30, NOW + HOUR)
        assert kept.count() == [202501, 202502, 202503]
        tell(kept.store, kind, ["prices"], version, finished=1)
    prune(kept.store, 30, NOW + HOUR)
    assert kept.count() == [202503]


@pytest.mark.parametrize("at_once", [4_000_000, 100], ids=["all series at once", "one after the other"])
def test_cells_that_are_missing_are_computed_first(kept: Kept, monkeypatch: pytest.MonkeyPatch, at_once: int) -> None:
    monkeypatch.setattr("analytics_service.store.cells._ROWS_AT_ONCE", at_once)
    kept.store.execute("ALTER TABLE price_cell DELETE WHERE cell < '2025-01-20' SETTINGS mutations_sync = 2")
    prune(kept.store, 30, NOW)
    assert kept_from(kept.store, "price") == MARCH


def test_cells_that_are_older_than_their_rows_are_computed_again(kept: Kept, settings: Settings) -> None:
    """The last price of the tenth of February is corrected by hand: there are as many rows as before."""
    second, _ = kept.rows["token;hours"][(31 + 10) * 24 - 1]
    corrected = f"('token;hours', {second}, 7.5, {new_version(kept.store)})"
    kept.store.execute(f"INSERT INTO price (asset_id, observed_at, price, version) VALUES {corrected}")
    kept.drop()
    assert kept.count() == [202503]
    client = falcon.testing.TestClient(create_app(settings, kept.store, heads=FreshHeads(kept.store)))
    day = FEBRUARY + 9 * 86_400
    (series,) = page(client, start=day, end=day + 86_399, period="d", asset_ids="token;hours")["data"]["series"]
    assert series["points"] == [{"t": day, "v": "7.5"}]


def test_rows_that_their_cells_do_not_sum_up_are_kept(kept: Kept) -> None:
    """A row was deleted by hand in February: what its cells say of it is of more observations."""
    kept.store.execute(
        "ALTER TABLE price DELETE WHERE asset_id = 'token;hours' AND observed_at >= '2025-02-10' "
        "AND observed_at < '2025-02-11' SETTINGS mutations_sync = 2"
    )
    kept.drop()
    assert (kept.count(), kept_from(kept.store, "price")) == ([202502, 202503], FEBRUARY)


@pytest.mark.parametrize("at_once", [4_000_000, 100], ids=["all series at once", "one after the other"])
def test_rows_are_kept_where_cells_are_of_a_series_without_rows(
    kept: Kept, monkeypatch: pytest.MonkeyPatch, at_once: int
) -> None:
    """All rows of `ended` were deleted by hand. By its id it is between other series."""
    monkeypatch.setattr("analytics_service.store.cells._ROWS_AT_ONCE", at_once)
    kept.store.execute("ALTER TABLE price DELETE WHERE asset_id = 'token;ended' SETTINGS mutations_sync = 2")
    kept.drop()
    assert (kept.count(), kept_from(kept.store, "price")) == ([202501, 202502, 202503], 0)


def test_pages_of_quarter_hours_and_wider_stay_as_they_were(
    client: falcon.testing.TestClient, kept: Kept, draw: random.Random
) -> None:
    """All aggregates of all periods and zones agree with all observations; buckets of minutes do where they can."""
    kept.drop()
    pages = Pages(client, oracle.Oracle(kept.rows), draw)
    for number in range(16):
        if number in (4, 10):
            client.app.loader.wait()
        period, interval, zone = draw.choice("hdwmy"), draw.randint(1, 7), draw.choice(oracle.ZONES)
        start = draw.randint(JANUARY, MARCH)
        end = (start + draw.randint(0, 40 * 86_400)) // 900 * 900 + 899
        grid = oracle.begins(start, end, period, interval, zone)
        agg, carry = draw.choice(pages.aggregates), draw.random() < 0.8
        pages.compare(start, end, period, interval, zone, 200, 0, carry, None, grid, agg)


def test_what_cells_do_not_tell_is_an_error_and_never_a_wrong_value(
    client: falcon.testing.TestClient, kept: Kept, draw: random.Random
) -> None:
    """Any page agrees with all observations, or says which parameter needs those that are not there."""
    kept.drop()
    pages = Pages(client, oracle.Oracle(kept.rows), draw)
    outcomes = {"answered": 0, "refused": 0}
    for number in range(24):
        if number == 8:
            client.app.loader.wait()
        period, interval = draw.choice(["min", "min", "h", "d"]), draw.randint(1, 20)
        interval *= draw.choice([1, 100]) if period == "min" else 1
        start = draw.choice([JANUARY + 10 * 86_400, JANUARY + 20 * 86_400, MARCH - 4000]) + draw.randint(0, 4000)
        end = start + draw.randint(0, {"min": 20_000 * (1 + interval // 20), "h": 40_000, "d": 400_000}[period])
        grid = oracle.begins(start, end, period, interval, "UTC")
        agg, carry = draw.choice(pages.aggregates), draw.random() < 0.8
        query = {"start": start, "end": end, "period": period, "interval": interval, "agg": agg, "limit": 250}
        answer = page(client, **query)
        if answer["error"]:
            outcomes["refused"] += 1
            assert answer["error"]["kind"] == "query_parameter_invalid"
            assert "before 2025-03-01T00:00:00Z are not kept" in answer["error"]["message"]
        else:
            outcomes["answered"] += 1
            pages.compare(start, end, period, interval, "UTC", 250, 0, carry, None, grid, agg)
    assert min(outcomes.values()) > 0


def test_a_page_does_not_need_what_is_not_known_of_other_series(client: falcon.testing.TestClient, kept: Kept) -> None:
    """The page ends within a quarter of an hour of dense observations; when the last of them was made is not told."""
    kept.drop()
    end = JANUARY + 11 * 86_400 + 450
    query = {"start": end - HOUR.seconds, "end": end, "period": "h", "asset_ids": "token;rare"}
    answer = client.simulate_get("/api/v1/assets/price-history", query_string=urlencode(query))
    (series,) = answer.json["data"]["series"]
    grid = oracle.begins(end - HOUR.seconds, end, "h", 1, "UTC")
    assert series["points"] == oracle.Oracle(kept.rows).page("token;rare", grid, end, 0, 200, True)
    assert "as-of" not in answer.headers
    assert page(client, **query | {"asset_ids": "token;dense"})["error"]


def test_observations_that_are_not_all_kept_are_not_read_for_memory(kept: Kept, settings: Settings) -> None:
    """Those of a page in March would be in a block that begins in February. With memory, reading the page takes no more
    than without, but for a look at what is kept."""
    kept.drop()
    head, begin = read_heads(kept.store)["prices"], MARCH + 5 * 86_400
    with closing(WatchedStore(settings)) as watched:

        def asked(memory: int) -> Counter[str]:
            loader = Loader(Memory(memory))
            reader = HistoryReader(watched, catalogue.PRICES, loader, Loader(Memory(0)), TextFile())
            reader.prepare(head)
            state = reader.at(head)
            loader.wait()
            before = watched.queries.copy()
            reader.points(state, state.ids, Buckets([begin, begin + HOUR.seconds], begin + 450), Aggregate.LAST)
            loader.wait()
            return watched.queries - before

        assert asked(10**8) - asked(0) == {"raw_dropped": 1}


def test_prices_at_a_moment_are_right_or_an_error(client: falcon.testing.TestClient, kept: Kept) -> None:
    """The last second of a day is that of a quarter of an hour; a second between dense observations is not known."""
    kept.drop()
    known = oracle.Oracle(kept.rows)

    def at(second: int) -> Any:
        return client.simulate_get("/api/v1/assets/prices", query_string=urlencode({"at": second})).json

    day = JANUARY + 11 * 86_400
    for second in (day - 1, day + 899, MARCH - 1, MARCH + 12_345):
        grid = [second, second + 1]
        expected = {name: known.page(name, grid, second, 0, 1, True)[0]["v"] for name in known.series}
        found = {one["asset"]["id"]: one["price"]["price"] for one in at(second)["data"]}
        assert found == {k: v for k, v in expected.items() if v}
    error = at(day + 450)["error"]
    assert error["kind"] == "query_parameter_invalid"
    assert f"Query parameter at='{day + 450}': single observations before 2025-03-01" in error["message"]


def test_an_import_that_would_change_what_is_not_kept_writes_nothing(kept: Kept, tmp_path: Path) -> None:
    kept.drop()
    before = read_heads(kept.store)["prices"]
    file = tmp_path / "prices.csv"
    file.write_text(f"asset_id,ts,price\ntoken;hours,{MARCH - 1},1\ntoken;hours,{MARCH + 1},1\n")
    request = Request(PRICES, [file])
    for act in (try_import, import_files):
        with pytest.raises(ObservationsDropped, match="before 2025-03-01T00:00:00Z are not kept"):
            act(kept.store, request, NOW, NO_REPORT)
    assert read_heads(kept.store)["prices"] == before


def test_months_that_are_kept_can_be_corrected(
    client: falcon.testing.TestClient, kept: Kept, tmp_path: Path, draw: random.Random
) -> None:
    """From their first second on."""
    kept.drop()
    second = kept.rows["token;hours"][-100][0]
    file = tmp_path / "prices.csv"
    file.write_text(f"asset_id,ts,price\ntoken;hours,{MARCH},7.5\ntoken;hours,{second},7.5\n")
    import_files(kept.store, Request(PRICES, [file]), NOW, NO_REPORT)
    changes = [(MARCH, Decimal("7.5")), (second, Decimal("7.5"))]
    corrected = {**kept.rows, "token;hours": [*kept.rows["token;hours"], *changes]}
    pages = Pages(client, oracle.Oracle(corrected), draw)
    for agg in pages.aggregates:
        grid = oracle.begins(JANUARY, APRIL - 1, "d", 1, "UTC")
        pages.compare(JANUARY, APRIL - 1, "d", 1, "UTC", 200, 0, True, None, grid, agg)
    kept.drop()
    assert instant(kept_from(kept.store, "price")) == instant(MARCH)


class Standing(RealSource):
    """An oracle that repeats the last price of an asset for ever, and the one old price of another."""

    def __init__(self, kept: Kept, **old: int) -> None:
        super().__init__("1")
        self._last = kept.rows["token;ended"][-1]
        self._old = old

    def prices(self, at: datetime) -> Sequence[Price]:
        second, usd = self._last
        older = [Price(f"token;{name}", instant(second), Decimal(9)) for name, second in self._old.items()]
        return [Price("token;ended", instant(second), usd), *older, Price("token;hours", at, Decimal(2))]


class Stopped(Standing):
    """An oracle that only repeats."""

    def prices(self, at: datetime) -> Sequence[Price]:
        return super().prices(at)[:-1]


def test_feeds_that_stand_still_do_not_keep_others_from_being_written(
    client: falcon.testing.TestClient, kept: Kept, caplog: pytest.LogCaptureFixture
) -> None:
    """The last price of `ended` is known from cells. One of `listed`, which is as old, cannot be added any more."""
    # Dropping rows says so, which is shown once a command has set up logging in this process.
    caplog.set_level("WARNING")
    kept.drop()
    at = datetime(2025, 4, 1, tzinfo=UTC)
    run_once(JOBS["prices"], Standing(kept), kept.store, at)
    assert not caplog.records
    run_once(JOBS["prices"], Standing(kept, listed=MARCH - 1), kept.store, at + HOUR)
    assert [record.message for record in caplog.records] == [
        "The price of token;listed is left out: it was observed at 2025-02-28T23:59:59Z, and single observations of "
        "that time are not kept any more (ANALYTICS_RAW_DAYS)."
    ]
    head = read_heads(kept.store)["prices"]
    assert (head.at, head.rewrites) == (APRIL + 3600, 0)
    newest = page(client, start=APRIL, end=APRIL + 3600, period="h", asset_ids="token;ended,token;hours")["data"][
        "series"
    ]
    last = format(kept.rows["token;ended"][-1][1].normalize(), "f")
    assert [[point["v"] for point in one["points"]] for one in newest] == [[last, last], ["2", "2"]]
    # An instant whose own observations are not kept is refused, as ever.
    for source in (Standing(kept, listed=MARCH - 60), Stopped(kept)):
        with pytest.raises(ObservationsDropped):
            run_once(JOBS["prices"], source, kept.store, instant(MARCH - 30))


def test_loans_stay_right_where_the_sums_of_a_snapshot_are_gone(settings: Settings, store: Store) -> None:
    """The sums of a month are dropped: a backfill right after it goes on from stored events, with the same totals."""
    source, step = SimulatedSource("1"), timedelta(minutes=5)
    loans = JOBS["loans"]
    times = [instant(MARCH) - step, instant(MARCH) + 2 * step, instant(APRIL)]
    for job in JOBS.values():
        run_once(job, source, store, times[0])
    for at in times[1:]:
        run_once(JOBS["prices"], source, store, at)
        run_once(loans, source, store, at)
    client = falcon.testing.TestClient(create_app(settings, store, heads=FreshHeads(store)))

    def as_of(second: int) -> Any:
        return client.simulate_get("/api/v1/analytics/market/state", query_string=f"at={second}").json

    shown = as_of(MARCH - 1)
    assert shown["error"] is None
    before = read_loans(store, MARCH + 600)
    prune(store, 30, NOW)
    prune(store, 30, NOW + HOUR)
    assert kept_from(store, "loans_originated") == MARCH
    client = falcon.testing.TestClient(create_app(settings, store, heads=FreshHeads(store)))
    assert as_of(MARCH - 1) == shown
    backfill(loans, source, store, [instant(MARCH) + step])
    assert read_loans(store, MARCH + 600) == before
    assert before.total >= read_loans(store, MARCH + 300).total > 0
    with pytest.raises(ObservationsDropped, match="loans: single observations before 2025-03-01"):
        backfill(loans, source, store, [instant(MARCH) - 2 * step])
