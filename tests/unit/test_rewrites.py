"""Rewrites that meet what no writer of their own can cause: another schema, and others that do not get done.

How rewrites end that are killed or stopped is shown with ClickHouse, in tests/integration/test_interrupted_rewrites.py.
"""

import logging

import polars as pl
import pytest

from analytics_service.clickhouse.queries import Parts
from analytics_service.errors import BackupFailed, SchemaError, StoreUnavailable
from analytics_service.store.ledger import REWRITES, Run
from analytics_service.store.rewrite import Recovery, Staging, ledger_without_rewrites, publish, wait_for_rewrites
from analytics_service.store.schema import Migration, shipped
from tests.doubles import NOON, LedgerStore

NEWER = Migration(9999, "9999_more.sql", "SELECT 1")
OTHER_SCHEMAS = pytest.mark.parametrize("schema", [shipped()[:-1], (*shipped(), NEWER)], ids=["earlier", "newer"])


class RewrittenStore(LedgerStore):
    """A store whose rewrites have nothing in staging, so that there is nothing to do but to finish them.

    `failures` are what is raised for them, by version. `told` is what was written of them: family, version and whether
    they have finished; `inserts` are all tables that were written to.
    """

    def __init__(self) -> None:
        super().__init__("prices", "rates")
        self.failures: dict[int, Exception] = {}
        self.told: list[tuple[object, ...]] = []
        self.inserts: list[str] = []

    def frame(self, query: str, parts: Parts = (), **parameters: object) -> pl.DataFrame:
        if query == "staging_tables":
            version = int(str(parameters["suffix"]).rpartition("_")[2])
            if version in self.failures:
                raise self.failures[version]
            return pl.DataFrame()
        if query == "table_engines":
            return pl.DataFrame({"engine": [None]})
        if query == "changed_span":
            return pl.DataFrame({"first": [NOON], "last": [NOON], "added": [1], "removed": [0], "until": [NOON]})
        return pl.DataFrame() if query == "family_state" else super().frame(query, parts, **parameters)

    def insert(self, table: str, rows: pl.DataFrame) -> None:
        self.inserts.append(table)
        if table == REWRITES:
            self.told += rows.rows()

    def execute(self, statement: str, *, in_database: bool = True) -> None:
        """Staging tables that are gone need not be dropped."""
        assert statement.startswith("DROP TABLE IF EXISTS")


@pytest.fixture
def store() -> RewrittenStore:
    return RewrittenStore()


@OTHER_SCHEMAS
def test_no_rewrite_is_announced_under_the_schema_of_another_version(
    store: RewrittenStore, schema: tuple[Migration, ...]
) -> None:
    """Rule 8.14: what this version leaves out might be what readers of the other schema need."""
    runs = [Run("prices", NOON, "import", NOON, NOON, 1, "prices.csv", version=7)]
    store.migrations = schema
    with pytest.raises(SchemaError):
        publish(store, Staging(store, "prices", 7), runs)
    assert store.inserts == []
    store.migrations = shipped()
    publish(store, Staging(store, "prices", 7), runs)
    assert store.told == [("prices", 7, 0), ("prices", 7, 1)]


@pytest.mark.parametrize("error", [StoreUnavailable("It takes too long."), ZeroDivisionError("It takes too long.")])
def test_a_rewrite_that_cannot_be_completed_is_logged_once_and_holds_up_no_other(
    store: RewrittenStore, caplog: pytest.LogCaptureFixture, error: Exception
) -> None:
    """A worker looks every second: a stack, or a line, each time would fill the disk."""
    recovery, silent = Recovery(store), [("prices", 7), ("rates", 8)]
    store.failures = {7: error}
    recovery.roll_forward(silent)
    assert store.told == [("prices", 7, 0), ("rates", 8, 0), ("rates", 8, 1)]
    recovery.roll_forward(silent[:1])
    faults = [one for one in caplog.records if one.levelno == logging.ERROR]
    assert [one.getMessage() for one in faults] == [
        "An interrupted rewrite of prices cannot be completed: It takes too long."
    ]
    # Only an unexpected error has a stack.
    assert bool(faults[0].exc_info) is isinstance(error, ZeroDivisionError)
    store.failures = {}
    recovery.roll_forward(silent[:1])
    assert store.told[-1] == ("prices", 7, 1)
    assert caplog.messages[-1] == "A rewrite of prices was interrupted, or slow; it is complete now."


def test_looking_for_interrupted_rewrites_is_silent_while_there_is_no_ledger(
    store: RewrittenStore, caplog: pytest.LogCaptureFixture
) -> None:
    """ClickHouse is away. Others report that."""
    store.away = True
    assert Recovery(store).look().heads == {}
    assert caplog.messages == []


def test_a_writer_at_work_is_left_alone_and_keeps_the_schema_from_changing_for_some_seconds_only(
    store: RewrittenStore,
) -> None:
    """Eight looks, a second apart: a writer is silent after three."""
    store.rewrite("prices")
    pauses: list[float] = []
    wait_for_rewrites(store, pauses.append)
    assert pauses == [1.0] * 8
    assert store.told == []


def test_a_backup_waits_for_a_rewrite_and_gives_up_on_one_that_goes_on(store: RewrittenStore) -> None:
    store.rewrite("prices")
    with pytest.raises(BackupFailed, match=r"^prices: history is being rewritten"):
        ledger_without_rewrites(store, lambda seconds: None)
    assert ledger_without_rewrites(store, lambda seconds: store.open.clear()).open == {}
