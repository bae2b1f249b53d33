"""Stores for tests: one that watches and disturbs a real store, and one with no ClickHouse behind it."""

from collections import Counter
from collections.abc import Callable
from typing import NamedTuple

import polars as pl

from analytics_service.config import Settings
from analytics_service.errors import StoreUnavailable
from analytics_service.store.connection import Store
from analytics_service.store.sql import Parts


class Statement(NamedTuple):
    """A statement: `query` and its name, `insert` and the table, or `execute` and the SQL."""

    kind: str
    name: str


Hook = Callable[[Statement], None]


def nothing(statement: Statement) -> None:
    """A hook that does nothing."""


class WatchedStore(Store):
    """Calls hooks before and after each statement, counts queries by name, and fails while it is `away`."""

    def __init__(self, settings: Settings, before: Hook = nothing, after: Hook = nothing) -> None:
        super().__init__(settings)
        self.queries: Counter[str] = Counter()
        self.away = False
        self._before = before
        self._after = after

    def frame(self, query: str, parts: Parts = (), **parameters: object) -> pl.DataFrame:
        statement = Statement("query", query)
        self.queries[query] += 1
        self._begin(statement)
        rows = super().frame(query, parts, **parameters)
        self._after(statement)
        return rows

    def insert(self, table: str, rows: pl.DataFrame) -> None:
        statement = Statement("insert", table)
        self._begin(statement)
        super().insert(table, rows)
        self._after(statement)

    def execute(self, statement: str) -> None:
        self._begin(Statement("execute", statement))
        super().execute(statement)
        self._after(Statement("execute", statement))

    def _begin(self, statement: Statement) -> None:
        if self.away:
            raise StoreUnavailable("ClickHouse is away.")
        self._before(statement)


def dying(settings: Settings, table: str) -> WatchedStore:
    """A store that loses ClickHouse when rows are inserted into a table."""

    def die(statement: Statement) -> None:
        if statement == Statement("insert", table):
            raise StoreUnavailable("ClickHouse is gone.")

    return WatchedStore(settings, before=die)


class FakeStore(Store):
    """Remembers inserts in order. It knows which snapshots were written to it; other queries return nothing."""

    def __init__(self) -> None:
        super().__init__(Settings())
        self.inserts: list[tuple[str, pl.DataFrame]] = []

    @property
    def completed(self) -> list[int]:
        """Instants of the snapshots that were written (unix seconds), in the order of writing."""
        return [at for table, rows in self.inserts if table == "snapshot" for at in rows["at"]]

    def frame(self, query: str, parts: Parts = (), **parameters: object) -> pl.DataFrame:
        if query == "snapshots_between":
            return pl.DataFrame({"at": self.completed}, schema={"at": pl.UInt32})
        return pl.DataFrame()

    def insert(self, table: str, rows: pl.DataFrame) -> None:
        self.inserts.append((table, rows))
