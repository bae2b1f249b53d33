"""Runs of a job, without ClickHouse."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import jobs
from analytics_service.config.settings import Settings
from analytics_service.errors import SchemaError, SnapshotRefused, SourceError, StoreFailure, StoreUnavailable
from analytics_service.market.instants import multiples
from analytics_service.market.prices import Price
from analytics_service.sources.simulated.source import SimulatedSource
from analytics_service.store.connection import Store
from analytics_service.store.retries import Retries
from analytics_service.store.schema import Migration, shipped
from jobs.registry import JOBS
from jobs.runner import Outcome, backfill, instants_to_fill, run_once
from tests.doubles import FakeStore

PRICES = JOBS["prices"]
NOON = datetime(2025, 3, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)


class FlakySource(SimulatedSource):
    """Raises the given errors one after another, then answers."""

    def __init__(self, *errors: Exception) -> None:
        super().__init__("1")
        self.errors = list(errors)

    def prices(self, at: datetime) -> Sequence[Price]:
        if self.errors:
            raise self.errors.pop(0)
        return super().prices(at)


class Timekeeper:
    """Remembers pauses, which take no time."""

    def __init__(self, stop_at_pause: int = 0) -> None:
        self.pauses: list[float] = []
        self.stop_at_pause = stop_at_pause

    def retries(self, seconds: float) -> Retries:
        return Retries(seconds, wait=self.wait)

    def wait(self, seconds: float) -> bool:
        self.pauses.append(seconds)
        return len(self.pauses) == self.stop_at_pause


def test_a_backfill_of_too_many_instants_is_refused_before_they_are_listed() -> None:
    start = datetime(1970, 1, 1, tzinfo=UTC)
    with pytest.raises(SnapshotRefused, match=r"1,740,830,400 snapshots 0:00:01 apart.* at most 2,000,000\..*--every"):
        instants_to_fill(start, NOON, timedelta(seconds=1))


def test_a_backfill_of_ends_takes_the_seconds_before_the_multiples() -> None:
    """Of those, the ones that lie in the range, both ends included."""
    second, hour = timedelta(seconds=1), timedelta(hours=1)
    ends = [NOON - second, NOON + hour - second]
    assert instants_to_fill(NOON - second, NOON + hour - second, hour, at_ends=True) == ends
    assert instants_to_fill(NOON, NOON + hour - 2 * second, hour, at_ends=True) == []


def test_a_run_writes_assets_and_prices_before_the_ledger() -> None:
    store = FakeStore()
    assert run_once(PRICES, SimulatedSource("1"), store, NOON) is Outcome.DONE
    assert [table for table, _ in store.inserts] == ["asset", "observation", "snapshot"]


def test_the_ledger_describes_what_the_run_wrote() -> None:
    """The oracle stated its prices a minute and half a minute earlier: those are the bounds of the observations."""

    class Late(SimulatedSource):
        def prices(self, at: datetime) -> Sequence[Price]:
            first, second, *_ = super().prices(at)
            return [
                Price(first.asset_id, at - timedelta(seconds=60), first.usd),
                Price(second.asset_id, at - timedelta(seconds=30), second.usd),
            ]

    store = FakeStore()
    run_once(PRICES, Late("1"), store, NOON)
    noon = 1_740_830_400
    row = store.inserts[-1][1].row(0, named=True)
    version = row.pop("version")
    assert row == {
        "family": "prices",
        "at": noon,
        "kind": "job",
        "first_observed_at": noon - 60,
        "last_observed_at": noon - 30,
        "rows": 2,
        "source": "simulated:1",
        "simulated": True,
        "files": 0,
    }
    assert [frame["version"].unique().to_list() for _, frame in store.inserts] == [[version]] * 3


def test_a_complete_instant_is_left_alone() -> None:
    store = FakeStore()
    run_once(PRICES, SimulatedSource("1"), store, NOON)
    assert run_once(PRICES, SimulatedSource("1"), store, NOON) is Outcome.ALREADY_DONE
    assert len(store.inserts) == 3


@pytest.mark.parametrize(
    "schema", [shipped()[:-1], (*shipped(), Migration(9999, "9999_more.sql", ""))], ids=["earlier", "newer"]
)
def test_no_snapshot_is_taken_under_the_schema_of_another_version(schema: tuple[Migration, ...]) -> None:
    """Rule 8.14."""
    store = FakeStore()
    store.migrations = schema
    with pytest.raises(SchemaError):
        run_once(PRICES, SimulatedSource("1"), store, NOON)
    assert store.inserts == []


def test_an_instant_is_a_whole_second() -> None:
    asked: list[datetime] = []

    class Watched(SimulatedSource):
        def prices(self, at: datetime) -> Sequence[Price]:
            asked.append(at)
            return super().prices(at)

    store = FakeStore()
    run_once(PRICES, Watched("1"), store, NOON + timedelta(milliseconds=700))
    assert asked == [NOON]
    assert run_once(PRICES, SimulatedSource("1"), store, NOON) is Outcome.ALREADY_DONE


def test_a_source_without_prices_completes_nothing() -> None:
    class Empty(SimulatedSource):
        def prices(self, at: datetime) -> Sequence[Price]:
            return []

    store = FakeStore()
    with pytest.raises(SourceError, match="simulated:1 quotes no prices as of 2025-03-01T12:00:00Z"):
        run_once(PRICES, Empty("1"), store, NOON)
    assert store.inserts == []


def test_a_run_is_retried_after_pauses_that_double() -> None:
    source = FlakySource(SourceError("no"), StoreUnavailable("no"), SourceError("no"))
    time = Timekeeper()
    assert run_once(PRICES, source, FakeStore(), NOON, time.retries(60)) is Outcome.DONE
    assert time.pauses == [1, 2, 4]


def test_a_run_gives_up_when_the_next_attempt_would_begin_too_late() -> None:
    """1 + 2 + 4 seconds fit into 10, 8 more do not: the fourth failure is the last."""
    source = FlakySource(*(SourceError(f"failure {number}") for number in range(1, 9)))
    time = Timekeeper()
    with pytest.raises(SourceError, match="failure 4"):
        run_once(PRICES, source, FakeStore(), NOON, time.retries(10))
    assert time.pauses == [1, 2, 4]


def test_pauses_grow_to_half_a_minute() -> None:
    time = Timekeeper()
    source = FlakySource(*[SourceError("no")] * 7)
    run_once(PRICES, source, FakeStore(), NOON, time.retries(3600))
    assert time.pauses == [1, 2, 4, 8, 16, 30, 30]


def test_a_run_that_is_told_to_stop_is_not_retried() -> None:
    source = FlakySource(SourceError("first"), SourceError("second"), SourceError("third"))
    with pytest.raises(SourceError, match="second"):
        run_once(PRICES, source, FakeStore(), NOON, Timekeeper(stop_at_pause=2).retries(3600))


@pytest.mark.parametrize("error", [StoreFailure("refused"), ZeroDivisionError()])
def test_errors_that_time_does_not_mend_are_not_retried(error: Exception) -> None:
    time = Timekeeper()
    with pytest.raises(type(error)):
        run_once(PRICES, FlakySource(error), FakeStore(), NOON, time.retries(3600))
    assert time.pauses == []


def test_without_retries_the_first_failure_is_raised() -> None:
    with pytest.raises(SourceError, match="first"):
        run_once(PRICES, FlakySource(SourceError("first"), SourceError("second")), FakeStore(), NOON)


def nothing(_: int) -> None:
    """Ignores progress."""


def backfilled(store: Store, start: datetime, end: datetime, progress: Callable[[int], None] = nothing) -> int:
    return backfill(PRICES, SimulatedSource("1"), store, multiples(start, end, HOUR), progress)


def test_a_backfill_writes_many_instants_in_one_insert_for_each_table() -> None:
    """1,001 hours: two batches of 500 and one of 1; 13 priced assets in each."""
    store = FakeStore()
    heard: list[int] = []
    assert backfilled(store, NOON, NOON + 1000 * HOUR, heard.append) == 1001
    assert heard == [500, 500, 1]
    assert [table for table, _ in store.inserts] == ["asset", "observation", "snapshot"] * 3
    assert [rows.height for table, rows in store.inserts if table == "snapshot"] == [500, 500, 1]
    assert [rows.height for table, rows in store.inserts if table == "observation"] == [6500, 6500, 13]
    assert {kind for table, rows in store.inserts if table == "snapshot" for kind in rows["kind"]} == {"backfill"}


def test_a_backfill_defines_an_asset_of_many_snapshots_once() -> None:
    store = FakeStore()
    backfilled(store, NOON, NOON + 5 * HOUR)
    assert store.inserts[0][1]["id"].is_unique().all()


def test_a_backfill_writes_only_what_is_missing() -> None:
    store = FakeStore()
    run_once(PRICES, SimulatedSource("1"), store, NOON)
    heard: list[int] = []
    assert backfilled(store, NOON, NOON + 2 * HOUR, heard.append) == 2
    assert heard == [3]
    assert store.inserts[-1][1]["at"].to_list() == [1_740_834_000, 1_740_837_600]


def test_a_backfill_of_nothing_writes_nothing() -> None:
    store = FakeStore()
    assert backfilled(store, NOON + timedelta(minutes=1), NOON + timedelta(minutes=59)) == 0
    assert backfilled(store, NOON + HOUR, NOON) == 0
    assert store.inserts == []


def test_every_module_that_collects_is_a_job() -> None:
    modules = Path(jobs.__file__).parent.glob("*.py")
    assert {path.stem for path in modules if "\ndef collect(" in path.read_text("utf-8")} == set(JOBS)


def test_jobs_first_run_in_the_order_of_their_settings() -> None:
    """Values are computed from prices, so prices come first."""
    assert list(JOBS) == ["prices", "rates", "markets", "loans", "ptoken", "positions", "routes"]


def test_a_job_has_its_interval_from_its_setting() -> None:
    job = JOBS["rates"]
    assert (job.interval(Settings(rates_every=17)), job.family) == (17, "rates")
    assert [job.name for job in JOBS.values() if not job.history] == ["positions"]
