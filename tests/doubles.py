"""Stores for tests: one that watches and disturbs a real store, and others without a ClickHouse."""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import polars as pl

from analytics_service.config import Settings
from analytics_service.errors import StoreUnavailable
from analytics_service.state.heads import Heads, Known
from analytics_service.store.connection import Store
from analytics_service.store.ledger import Head
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


# 2026-03-01 12:00:00 UTC.
NOON = 1772366400
_LEDGER = {
    "family": pl.String,
    "at": pl.UInt32,
    "last_observed_at": pl.UInt32,
    "version": pl.UInt64,
    "runs": pl.UInt64,
    "rewrites": pl.UInt64,
    "open": pl.List(pl.UInt64),
    "silent": pl.List(pl.UInt64),
}


class LedgerStore(Store):
    """Answers the queries of the ledger: heads by family, and how many rewrites were announced and have finished.

    `silent` are versions of open rewrites without a heartbeat, by family. `on_look` is called when the ledger is read.
    """

    def __init__(self, *families: str) -> None:
        super().__init__(Settings())
        self.heads = {family: Head(family, NOON, NOON, 1, 1) for family in families or ("prices",)}
        self.open: set[str] = set()
        self.silent: dict[str, list[int]] = {}
        self.away = False
        self.queries: Counter[str] = Counter()
        self.on_look: Callable[[], None] = lambda: None

    def change(self, family: str, **fields: int) -> "LedgerStore":
        """Give a family another head."""
        self.heads[family] = replace(self.heads[family], **fields)
        return self

    def rewrite(self, family: str) -> None:
        """Announce a rewrite of a family."""
        self.change(family, rewrites=self.heads[family].rewrites + 1)
        self.open.add(family)

    def frame(self, query: str, parts: Parts = (), **parameters: object) -> pl.DataFrame:
        """The ledger, or the rewrites of a family."""
        self.queries[query] += 1
        if self.away:
            raise StoreUnavailable("away")
        if query == "rewrites":
            family = str(parameters["family"])
            announced = self.heads[family].rewrites
            return pl.DataFrame({"announced": [announced], "finished": [announced - (family in self.open)]})
        assert query == "ledger", query
        self.on_look()
        heads = [(h.family, h.at, h.last_observed_at, h.version, h.runs, 0, [], []) for h in self.heads.values()]
        rewrites = [
            (family, 0, 0, 0, 0, head.rewrites, [9] if family in self.open else [], self.silent.get(family, []))
            for family, head in self.heads.items()
            if head.rewrites
        ]
        return pl.DataFrame(heads + rewrites, schema=_LEDGER, orient="row")


class FreshHeads(Heads):
    """Heads that look at the ledger for every request, so that tests see immediately what they wrote."""

    def __init__(self, store: Store) -> None:
        super().__init__(store, every=None)

    def known(self) -> Known:
        """The heads as they are now."""
        self.look()
        return super().known()
