"""Runs of a job, without ClickHouse."""

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import fields, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import jobs
from analytics_service.clickhouse.errors import Retries
from analytics_service.config.parsers import Intervals
from analytics_service.errors import (
    SchemaError,
    SourceError,
    StoreFailure,
    StoreUnavailable,
    UserError,
)
from analytics_service.market.instants import multiples_between, unix_second
from analytics_service.market.prices import Price
from analytics_service.sources.simulated.source import SimulatedSource
from analytics_service.store.commits import Commit
from analytics_service.store.schema import Migration, shipped_migrations
from jobs.registry import JOBS
from jobs.runner import backfill, instants_to_fill, take_snapshot
from jobs.snapshot import JobContext
from tests.doubles import FakeStore

PRICES = JOBS["prices"]
NOON = datetime(2025, 3, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)


def test_a_backfill_of_too_many_instants_is_refused_before_they_are_listed() -> None:
    start = datetime(1970, 1, 1, tzinfo=UTC)
    with pytest.raises(UserError, match=r"1,740,830,400 snapshots 0:00:01 apart.* at most 2,000,000\..*--every"):
        instants_to_fill(start, NOON, timedelta(seconds=1))


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
    take_snapshot(PRICES, Late("1"), store, NOON)
    noon = 1_740_830_400
    row = store.inserts[-1][1].row(0, named=True)
    version = row.pop("version")
    assert row == {
        "dataset": "prices",
        "at": noon,
        "kind": "job",
        "first_observed_at": noon - 60,
        "last_observed_at": noon - 30,
        "rows": 2,
        "source": "simulated:1",
        "simulated": True,
        "import_id": 0,
        "reported_histories": [],
        "complete_until": 0,
        "tables": [],
        "table_rows": [],
    }
    assert [table for table, _ in store.inserts] == ["observation", "asset_definition", "snapshot"]
    assert [frame["version"].unique().to_list() for _, frame in store.inserts] == [[version]] * 3


@pytest.mark.parametrize(
    ("failures", "pauses"),
    [
        ([SourceError("no"), StoreUnavailable("no")], [1, 2]),
        # Told to stop in the third pause.
        ([SourceError("no")] * 4, [1, 2, 4]),
        # Time does not mend these.
        ([StoreFailure("refused")], []),
        ([ZeroDivisionError()], []),
    ],
)
def test_a_run_is_retried_while_its_source_or_store_is_away(
    failures: list[Exception], pauses: list[float], caplog: pytest.LogCaptureFixture
) -> None:
    class Flaky(SimulatedSource):
        def prices(self, at: datetime) -> Sequence[Price]:
            if left:
                raise left.pop(0)
            return super().prices(at)

    def wait(seconds: float) -> bool:
        waited.append(seconds)
        return len(waited) == 3

    left, waited = [*failures], list[float]()
    retries = Retries(3600, errors=(SourceError, StoreUnavailable), wait=wait)
    with nullcontext() if len(pauses) == len(failures) else pytest.raises(type(failures[-1])):
        assert take_snapshot(PRICES, Flaky("1"), FakeStore(), NOON, retries)
    assert waited == pauses
    # Once for each cause, whatever the number of attempts. What a source says has its instant.
    asked = {SourceError: "no It was asked for prices as of 2025-03-01T12:00:00Z.", StoreUnavailable: "no"}
    causes = dict.fromkeys(asked.get(type(failure)) for failure in failures if pauses)
    assert caplog.messages == [f"prices: {cause} Trying again." for cause in causes]


@pytest.mark.parametrize(
    "schema",
    [shipped_migrations()[:-1], (*shipped_migrations(), Migration(9999, "9999_more.sql", ""))],
    ids=["earlier", "newer"],
)
def test_no_snapshot_is_taken_under_the_schema_of_another_version(schema: tuple[Migration, ...]) -> None:
    """Rule 8.14."""
    store = FakeStore()
    store.migrations = schema
    with pytest.raises(SchemaError):
        take_snapshot(PRICES, SimulatedSource("1"), store, NOON)
    assert store.inserts == []


def test_a_source_without_prices_completes_nothing() -> None:
    class Empty(SimulatedSource):
        def prices(self, at: datetime) -> Sequence[Price]:
            return []

    store = FakeStore()
    with pytest.raises(SourceError, match="simulated:1 quotes no prices as of 2025-03-01T12:00:00Z"):
        take_snapshot(PRICES, Empty("1"), store, NOON)
    assert store.inserts == []


def test_a_backfill_writes_many_instants_in_one_insert_for_each_table() -> None:
    """1,001 hours: two batches of 500 and one of 1; 13 priced assets in each."""

    class Steady(SimulatedSource):
        """Has the prices of noon at every hour, which are quickly made."""

        def prices(self, at: datetime) -> Sequence[Price]:
            return [replace(price, observed_at=at) for price in of_noon]

    of_noon = SimulatedSource("1").prices(NOON)
    store = FakeStore()
    heard: list[int] = []
    assert backfill(PRICES, Steady("1"), store, multiples_between(NOON, NOON + 1001 * HOUR, HOUR), heard.append) == 1001
    assert heard == [500, 500, 1]
    assert [table for table, _ in store.inserts] == ["observation", "asset_definition", "snapshot"] * 3
    assert [rows.height for table, rows in store.inserts if table == "snapshot"] == [500, 500, 1]
    assert [rows.height for table, rows in store.inserts if table == "observation"] == [6500, 6500, 13]
    assert {kind for table, rows in store.inserts if table == "snapshot" for kind in rows["kind"]} == {"backfill"}
    assert store.inserts[1][1]["id"].is_unique().all()


def test_a_backfill_counts_what_a_job_takes_together() -> None:
    def collect(context: JobContext) -> Commit:
        return PRICES.collect(replace(context, instants=context.instants[:2]))

    heard: list[int] = []
    instants = multiples_between(NOON, NOON + 3 * HOUR, HOUR)
    few = replace(PRICES, collect=collect)
    assert backfill(few, SimulatedSource("1"), FakeStore(), instants, heard.append) == 3
    assert heard == [2, 1]


@pytest.mark.parametrize(("unknown", "asked"), [({2, 7, 8}, 10), ({2, 3, 4}, 5)])
def test_a_backfill_leaves_what_the_source_cannot_tell_until_that_is_three_in_a_row(
    unknown: set[int], asked: int
) -> None:
    class Holed(SimulatedSource):
        def prices(self, at: datetime) -> Sequence[Price]:
            if (at - NOON) // HOUR in unknown:
                raise SourceError("No such block.")
            return super().prices(at)

    store = FakeStore()
    heard: list[int] = []
    instants = [NOON + hour * HOUR for hour in range(10)]
    said = (
        r"No such block\. It was asked for prices as of 2025-03-01T14:00:00Z\. "
        r"3 of 10 snapshots cannot be taken"
    )
    with pytest.raises(SourceError, match=rf"^{said}{'; the rest was not tried' if asked == 5 else ''}\.$"):
        backfill(PRICES, Holed("1"), store, instants, heard.append)
    known = [at for hour, at in enumerate(instants) if hour < asked and hour not in unknown]
    assert (store.instants, sum(heard)) == ([*map(unix_second, known)], asked if asked == 10 else 4)


def test_every_module_that_collects_is_a_job() -> None:
    modules = Path(jobs.__file__).parent.glob("*.py")
    assert {path.stem for path in modules if "\ndef collect(" in path.read_text("utf-8")} == set(JOBS)
    assert [*JOBS] == [field.name for field in fields(Intervals)]
