"""Rewrites under another schema, and those that cannot be completed.

How rewrites end that are killed or stopped is shown with ClickHouse, in tests/integration/test_interrupted_rewrites.py.
"""

import logging
import threading

import polars as pl
import pytest

from analytics_service.clickhouse.queries import Placeholders
from analytics_service.errors import SchemaError, StoreUnavailable
from analytics_service.store.ledger import REWRITES, Head, LedgerRow
from analytics_service.store.rewrite import Staging, keep_complete, publish
from analytics_service.store.schema import Migration, shipped_migrations
from analytics_service.store.write_lock import WriteLock
from tests.doubles import NOON, LedgerStore

NEWER = Migration(9999, "9999_more.sql", "SELECT 1")
RUN = LedgerRow("prices", NOON, "import", NOON, NOON, 1, "prices.csv", version=7)
OTHER_SCHEMAS = pytest.mark.parametrize(
    "schema", [shipped_migrations()[:-1], (*shipped_migrations(), NEWER)], ids=["earlier", "newer"]
)


class RewrittenStore(LedgerStore):
    """A store whose lock is always held, and whose rewrites have no staging tables, so that they need only be finished.

    `failure` is raised for them. `told` is what was written of them: dataset, version and whether they have finished;
    `inserts` are all other tables that were written to.
    """

    def __init__(self) -> None:
        super().__init__("prices", "rates")
        self.failure: Exception | None = None
        self.told: list[tuple[object, ...]] = []
        self.inserts: list[str] = []

    def query(self, query: str, parts: Placeholders = (), **parameters: object) -> pl.DataFrame:
        if query == "list_staging_tables" and self.failure:
            raise self.failure
        if query == "check_lock_held":
            return pl.DataFrame({"held": [True]})
        if query == "measure_rewrite":
            return pl.DataFrame({"first": [NOON], "last": [NOON], "added": [1], "removed": [0], "until": [NOON]})
        nothing = ("list_staging_tables", "list_lock_holders", "read_head", "list_abandoned_staging")
        return pl.DataFrame({"name": []}) if query in nothing else super().query(query, parts, **parameters)

    def insert(self, table: str, rows: pl.DataFrame) -> None:
        if table == REWRITES:
            self.told += rows.select("dataset", "version", "finished").rows()
        else:
            self.inserts.append(table)

    def run(self, query: str, parts: Placeholders = (), **parameters: object) -> None:
        if query == "announce_rewrite":
            self.told.append((parameters["dataset"], parameters["version"], parameters["finished"]))


class NothingStaged(Staging):
    """A rewrite that changes nothing but the ledger."""

    def put_in_place(self, head: Head | None) -> None:
        """There is nothing."""


class Looks(threading.Event):
    """Lets a scheduler look so many times."""

    def __init__(self, count: int) -> None:
        super().__init__()
        self._left = count

    def wait(self, timeout: float | None = None) -> bool:
        self._left -= 1
        return self._left < 0


@pytest.fixture
def store() -> RewrittenStore:
    return RewrittenStore()


@OTHER_SCHEMAS
def test_no_rewrite_is_announced_under_the_schema_of_another_version(
    store: RewrittenStore, schema: tuple[Migration, ...]
) -> None:
    """Rule 8.14: what this version leaves out might be what readers of the other schema need."""
    staged = NothingStaged(store, "prices", 7, WriteLock(store, "import", "prices", "holder"))
    store.migrations = schema
    with pytest.raises(SchemaError):
        publish(store, staged, [RUN])
    assert (store.inserts, store.told) == ([], [])
    store.migrations = shipped_migrations()
    publish(store, staged, [RUN])
    assert store.told == [("prices", 7, 0), ("prices", 7, 1)]


@pytest.mark.parametrize("error", [StoreUnavailable("It takes too long."), ZeroDivisionError("It takes too long.")])
def test_a_scheduler_completes_rewrites_and_logs_once_that_it_cannot(
    store: RewrittenStore, caplog: pytest.LogCaptureFixture, error: Exception
) -> None:
    """A stack, or a line, each time would fill the disk."""
    store.rewrite("prices")
    store.failure = error
    keep_complete(store, Looks(2))
    assert store.told == []
    [fault] = [one for one in caplog.records if one.levelno == logging.ERROR]
    assert fault.getMessage() == "Interrupted rewrites cannot be completed: It takes too long."
    # Only an unexpected error has a stack.
    assert bool(fault.exc_info) is isinstance(error, ZeroDivisionError)
    store.failure = None
    keep_complete(store, Looks(1))
    assert store.told == [("prices", 1, 1)]
    # This store has no staging tables.
    assert "of an interrupted rewrite of prices are gone" in caplog.messages[-1]
