"""Stores for tests: one that watches and disturbs a real store, and others without a ClickHouse."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import asdict, replace
from inspect import isfunction
from typing import NamedTuple

import polars as pl

from analytics_service.clickhouse.cluster import Cluster
from analytics_service.clickhouse.connection import Store
from analytics_service.clickhouse.queries import Placeholders
from analytics_service.config.settings import Settings
from analytics_service.errors import AnalyticsError, StoreUnavailable
from analytics_service.sources.base import Source
from analytics_service.state.facts import Facts
from analytics_service.state.watcher import Heads, HeadWatcher, Look
from analytics_service.store.datasets.observations import NO_OBSERVATIONS
from analytics_service.store.job_runs import JobRun, read_runs, recorded_intervals
from analytics_service.store.ledger import Head
from analytics_service.store.ownership import MADE_UP
from analytics_service.store.schema import Migration, shipped_migrations, tables_made_by

# Headers of requests to the operators' bind, which refuses the host of Falcon's tests.
LOCAL = {"Host": "localhost"}


class Statement(NamedTuple):
    """A statement: `query` or `run` and its name, `insert` and the table, or `execute` and the SQL."""

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

    def query(self, query: str, parts: Placeholders = (), **parameters: object) -> pl.DataFrame:
        statement = Statement("query", query)
        self.queries[query] += 1
        self._begin(statement)
        rows = super().query(query, parts, **parameters)
        self._after(statement)
        return rows

    def insert(self, table: str, rows: pl.DataFrame) -> None:
        statement = Statement("insert", table)
        self._begin(statement)
        super().insert(table, rows)
        self._after(statement)

    def insert_if(self, table: str, rows: pl.DataFrame, condition: str, **parameters: object) -> bool:
        statement = Statement("insert", table)
        self._begin(statement)
        holds = super().insert_if(table, rows, condition, **parameters)
        self._after(statement)
        return holds

    def execute(self, statement: str, *, in_database: bool = True) -> None:
        self._begin(Statement("execute", statement))
        super().execute(statement, in_database=in_database)
        self._after(Statement("execute", statement))

    def run(self, query: str, parts: Placeholders = (), **parameters: object) -> None:
        self._begin(Statement("run", query))
        super().run(query, parts, **parameters)
        self._after(Statement("run", query))

    def _begin(self, statement: Statement) -> None:
        if self.away:
            raise StoreUnavailable("ClickHouse is away.")
        self._before(statement)


def dying(settings: Settings, table: str) -> WatchedStore:
    """A store that loses ClickHouse when rows of a table are to be written."""

    def die(statement: Statement) -> None:
        if statement == Statement("insert", table):
            raise StoreUnavailable("ClickHouse is gone.")

    return WatchedStore(settings, before=die)


# 2026-03-01 12:00:00 UTC.
NOON = 1772366400
# What a source is asked for, each time as of an instant.
QUESTIONS = [
    name for name, one in vars(Source).items() if isfunction(one) and name[0] != "_" and name not in ("hurry", "close")
]
_LEDGER = {
    "how": pl.String,
    "dataset": pl.String,
    "version": pl.UInt64,
    "runs": pl.UInt64,
    "at": pl.UInt32,
    "last_observed_at": pl.UInt32,
    "sources": pl.List(pl.Struct({"source": pl.String, "simulated": pl.Boolean})),
    "now": pl.UInt32,
    "losses": pl.List(pl.Struct({"what": pl.String, "first_at": pl.UInt32, "last_at": pl.UInt32, "part": pl.String})),
}


class Silent:
    """Shows no progress of what takes long."""

    def stage(self, label: str, total: int) -> None:
        """Ignored."""

    def advance(self, count: int) -> None:
        """Ignored."""


class LedgerStore(Store):
    """A database that knows the ledger, and which rewrites are under way. It is for data not simulated.

    `heads` are by dataset, and `open` the datasets that are being rewritten. `migrations` are those that were applied,
    and `job_runs` what schedulers that run told last, the newest first. Rewrites were announced at `rewritten_at`.
    `on_look` is called when the ledger is read. `shards` are those that a cluster has, and those that are recorded.
    """

    def __init__(self, *datasets: str) -> None:
        super().__init__(Settings())
        self._layout = Cluster()
        self.heads = {dataset: Head(dataset, NOON, NOON, 1, 1) for dataset in datasets or ("prices",)}
        self.open: set[str] = set()
        self.rewritten_at = 0
        self.away = False
        self.migrations: Sequence[Migration] = shipped_migrations()
        self.job_runs: Sequence[JobRun] = ()
        self.shards = ("", "")
        self.queries: Counter[str] = Counter()
        self.on_look: Callable[[], None] = lambda: None

    def probe(self, seconds: float) -> None:
        if self.away:
            raise StoreUnavailable("away")

    def change(self, dataset: str, **fields: int) -> "LedgerStore":
        self.heads[dataset] = replace(self.heads[dataset], **fields)
        return self

    def rewrite(self, dataset: str) -> None:
        self.change(dataset, rewrites=self.heads[dataset].rewrites + 1)
        self.open.add(dataset)

    def query(self, query: str, parts: Placeholders = (), **parameters: object) -> pl.DataFrame:
        """The ledger and what is beside it."""
        self.queries[query] += 1
        if self.away:
            raise StoreUnavailable("away")
        if query == "read_ledger":
            self.on_look()
            return self._ledger()
        if query == "count_rewrites":
            asked = parameters["datasets"]
            assert isinstance(asked, list)
            counts = [(dataset, self.heads[dataset].rewrites) for dataset in asked]
            rows = [(dataset, announced, announced - (dataset in self.open)) for dataset, announced in counts]
            return pl.DataFrame(rows, schema=["name", "announced", "finished"], orient="row")
        if query == "read_migrations":
            applied = [(one.number, one.name, one.checksum) for one in self.migrations]
            return pl.DataFrame(applied, schema=["number", "name", "checksum"], orient="row")
        if query == "list_tables":
            return pl.DataFrame({"name": [*tables_made_by(shipped_migrations())]})
        if query == "count_anomalies":
            return pl.DataFrame({"anomalies": [0]})
        if query in (
            "list_assets",
            "read_disk_space",
            "count_missing_runs",
            "list_lock_holders",
            "find_snapshot_before",
        ):
            return pl.DataFrame()
        if query == "read_shards":
            return pl.DataFrame([self.shards], schema=["shards", "recorded"], orient="row")
        assert query == "read_job_runs", query
        return pl.DataFrame([{**asdict(run), "interval_seconds": run.interval, "age": 0} for run in self.job_runs])

    def _ledger(self) -> pl.DataFrame:
        heads = [
            ("head", h.dataset, h.version, h.runs, h.at, h.last_observed_at, [], NOON, []) for h in self.heads.values()
        ]
        rewrites = []
        for dataset, head in self.heads.items():
            # Each has a number as version, from 1; the last one is open.
            for version in range(1, head.rewrites + 1):
                is_open = dataset in self.open and version == head.rewrites
                kind = ("rewrite", dataset, version if is_open else 0)
                rewrites.append((*kind, 1, self.rewritten_at, 0, [], NOON, []))
        losses = [
            ("loss", dataset, head.losses, 0, 0, 0, [], NOON, []) for dataset, head in self.heads.items() if head.losses
        ]
        return pl.DataFrame(rewrites + heads + losses, schema=_LEDGER, orient="row")


class FakeStore(Store):
    """An empty database for runs of jobs: it remembers inserts in order, and which snapshots are complete.

    `migrations` are those that were applied.
    """

    def __init__(self) -> None:
        super().__init__(Settings())
        self._layout = Cluster()
        self.inserts: list[tuple[str, pl.DataFrame]] = []
        self.completed: set[int] = set()
        self.migrations: Sequence[Migration] = shipped_migrations()
        self.head: tuple[int, int, int, int] | None = None

    def watch(self) -> None:
        """There is no server that could hang."""

    def together(self, operation: str) -> AbstractContextManager[None]:
        """There is no server that could lose a write."""
        return nullcontext()

    @property
    def instants(self) -> list[int]:
        """Instants of the snapshots that were written (unix seconds), in the order of writing."""
        return [at for table, rows in self.inserts if table == "snapshot" for at in rows["at"]]

    def query(self, query: str, parts: Placeholders = (), **parameters: object) -> pl.DataFrame:
        """What a run must know when it begins; else nothing."""
        if query == "read_commit_base":
            version = len(self.inserts) + 1
            applied = [{"1": one.number, "2": one.name, "3": one.checksum} for one in self.migrations]
            heads = [dict(zip("1234", self.head, strict=True))] if self.head else []
            row = {
                "completed": sorted(self.completed),
                "heads": heads,
                "owners": [{"1": f"{MADE_UP}simulated:1", "2": "simulated:1", "3": 1}],
            }
            row |= {"left": {"1": None, "2": 0}, "restoring": False}
            return pl.DataFrame([{**row, "migrations": applied, "version": version, "now": 2**31}])
        if query == "make_version":
            return pl.DataFrame({"version": [len(self.inserts) + 1]})
        if query == "read_stored_prices":
            return pl.DataFrame(schema={"asset_id": pl.String, "observed_at": pl.UInt32, "value": pl.Decimal(38, 18)})
        if query == "read_last_rows":
            return pl.DataFrame(schema={"series": pl.UInt32, "last_at": pl.UInt32, "close": pl.String})
        if query == "read_market_values":
            return NO_OBSERVATIONS
        if query == "read_owner":
            return pl.DataFrame({"name": [f"{MADE_UP}simulated:1"], "source": ["simulated:1"], "claimed_at": [1]})
        return pl.DataFrame()

    def insert_if(self, table: str, rows: pl.DataFrame, condition: str, **parameters: object) -> bool:
        """Remember the rows, unless there are none; those of the ledger have their effect."""
        if rows.height:
            self.inserts.append((table, rows))
        if table == "snapshot":
            self.completed |= set(rows["at"])
            at, last, version = (max(rows[name]) for name in ("at", "last_observed_at", "version"))
            self.head = (at, last, version, len(self.completed))
        return True

    def insert(self, table: str, rows: pl.DataFrame) -> None:
        self.inserts.append((table, rows))

    def run(self, query: str, parts: Placeholders = (), **parameters: object) -> None:
        """Rollups are not computed here."""


class FirstHeads(HeadWatcher):
    """Heads that look at the ledger for the first request only, for tests that write nothing after it."""

    def __init__(self, store: Store) -> None:
        super().__init__(store, interval=None, clock=lambda: 0.0)


class FreshHeads(HeadWatcher):
    """Heads that look at the ledger for every request, so that tests see immediately what they wrote. Facts, which most
    tests do not ask for, are read when they are."""

    def __init__(self, store: Store) -> None:
        self._facts = Facts()
        self._unread: Mapping[str, Head] | None = None
        self._intervals: Mapping[str, int] | None = None
        super().__init__(store, interval=None)

    @property
    def facts(self) -> Facts:
        """The facts, read once in a while as in a service."""
        if self._unread is not None:
            heads, self._unread = self._unread, None
            super()._read_facts(heads)
        return self._facts

    @facts.setter
    def facts(self, facts: Facts) -> None:
        self._facts = facts

    def _read_facts(self, heads: Mapping[str, Head]) -> None:
        self._unread, self._intervals = heads, None

    def intervals(self, configured: Mapping[str, int]) -> Mapping[str, int]:
        """The only facts behind most answers."""
        if self._intervals is None:
            with suppress(AnalyticsError):
                self._intervals = recorded_intervals(*read_runs(self._store))
        known = self._intervals or {}
        return {dataset: known.get(dataset, interval) for dataset, interval in configured.items()}

    def shown(self) -> Heads:
        """The heads as they are now."""
        self.look()
        return super().shown()

    def last_look(self) -> Look:
        """The ledger as it is now."""
        self.look()
        return super().last_look()
