"""Stores for tests: one that watches and disturbs a real store, and others without a ClickHouse."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from inspect import isfunction
from typing import NamedTuple

import polars as pl

from analytics_service.config import Settings
from analytics_service.errors import SchemaError, StoreUnavailable
from analytics_service.sources.base import Source
from analytics_service.state.heads import Heads, Known, Seen
from analytics_service.store.applied import Migration, shipped
from analytics_service.store.connection import Store
from analytics_service.store.job_runs import JobRun
from analytics_service.store.ledger import Head
from analytics_service.store.sql import Parts


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

    def run(self, query: str, parts: Parts = (), **parameters: object) -> None:
        self._begin(Statement("run", query))
        super().run(query, parts, **parameters)
        self._after(Statement("run", query))

    def _begin(self, statement: Statement) -> None:
        if self.away:
            raise StoreUnavailable("ClickHouse is away.")
        self._before(statement)


def dying(settings: Settings, table: str) -> WatchedStore:
    """A store that loses ClickHouse when rows of a table are staged."""

    def die(statement: Statement) -> None:
        if statement.kind == "insert" and statement.name.startswith(f"{table}_staging_"):
            raise StoreUnavailable("ClickHouse is gone.")

    return WatchedStore(settings, before=die)


# 2026-03-01 12:00:00 UTC.
NOON = 1772366400
# What a source is asked for, each time as of an instant.
QUESTIONS = [name for name, one in vars(Source).items() if isfunction(one) and name[0] != "_" and name != "close"]
_LEDGER = {
    "how": pl.String,
    "family": pl.String,
    "version": pl.UInt64,
    "runs": pl.UInt64,
    "silent": pl.UInt8,
    "at": pl.UInt32,
    "last_observed_at": pl.UInt32,
    "sources": pl.List(pl.Struct({"source": pl.String, "simulated": pl.Boolean})),
}


class LedgerStore(Store):
    """A database that knows the ledger, announcements of runs, and staging tables. It is for data not simulated.

    `heads` are by family. `silent` are versions of unfinished runs without a heartbeat, by family; `finished` says of
    each rewrite, and `appended` of each run that appends, whether it has finished. `tables` are the
    comments of staging tables and their views, by name; `in_place` are versions of what was written into other tables;
    `migrations` are those that were applied, and `job_runs` what schedulers that run told last, the newest first.
    `before` is called before each statement that writes, and `on_look` when the ledger is read.
    """

    def __init__(self, *families: str) -> None:
        super().__init__(Settings())
        self.heads = {family: Head(family, NOON, NOON, 1, 1) for family in families or ("prices",)}
        self.open: set[str] = set()
        self.silent: dict[str, list[int]] = {}
        self.finished: dict[tuple[str, int], bool] = {}
        self.appended: dict[tuple[str, int], bool] = {}
        self.completed: set[tuple[str, int]] = set()
        self.tables: dict[str, str] = {}
        self.staged: dict[str, pl.DataFrame] = {}
        self.in_place: dict[str, set[int]] = {}
        self.away = False
        self.migrations: Sequence[Migration] = shipped()
        self.job_runs: Sequence[JobRun] = ()
        self.queries: Counter[str] = Counter()
        self.statements: list[str] = []
        self.on_look: Callable[[], None] = lambda: None
        self.before: Hook = nothing

    def watch(self) -> None:
        """There is no server that could hang."""

    def change(self, family: str, **fields: int) -> "LedgerStore":
        """Give a family another head."""
        self.heads[family] = replace(self.heads[family], **fields)
        return self

    def rewrite(self, family: str) -> None:
        """Announce a rewrite of a family."""
        self.change(family, rewrites=self.heads[family].rewrites + 1)
        self.open.add(family)

    def fall_silent(self) -> None:
        """Let three seconds pass without heartbeats."""
        for (family, version), finished in [*self.finished.items(), *self.appended.items()]:
            if not finished and version not in self.silent.setdefault(family, []):
                self.silent[family].append(version)

    def frame(self, query: str, parts: Parts = (), **parameters: object) -> pl.DataFrame:
        """The ledger, announcements, or staging tables."""
        self.queries[query] += 1
        if self.away:
            raise StoreUnavailable("away")
        family = str(parameters.get("family"))
        if query == "import_began":
            return pl.DataFrame(schema={"first_observed_at": pl.UInt32})
        if query == "newest_version":
            return pl.DataFrame({"version": [max((head.version for head in self.heads.values()), default=0)]})
        if query in ("ledger", "family_state"):
            self.on_look()
            return self._ledger() if query == "ledger" else self._state(family)
        if query == "rewrites":
            announced = self.heads[family].rewrites
            return pl.DataFrame({"announced": [announced], "finished": [announced - (family in self.open)]})
        if query == "run_state":
            run = family, int(str(parameters["version"]))
            states = {"rewrite": self.finished.get(run), "append": self.appended.get(run)}
            known = [(how, int(finished)) for how, finished in states.items() if finished is not None]
            return pl.DataFrame(known, schema={"how": pl.String, "finished": pl.UInt8}, orient="row")
        if query == "staged_runs":
            self._require(str(parameters["table"]))
            return self.staged[str(parameters["table"])]
        if query == "snapshots_between":
            instants = [at for one, at in self.completed if one == family]
            return pl.DataFrame({"at": instants}, schema={"at": pl.UInt32})
        if query == "staged_tables":
            names = [name for name in self.tables if name.endswith(str(parameters["suffix"]))]
            names.sort(key=lambda name: ("_view_" not in name, name))
            rows = [(name, "MaterializedView" if "_view_" in name else "Log", self.tables[name]) for name in names]
            return pl.DataFrame(rows, schema=["name", "engine", "comment"], orient="row")
        if query == "store_claim":
            return pl.DataFrame({"side": ["not simulated"]})
        if query == "raw_dropped":
            return pl.DataFrame(schema={"noted": pl.UInt32, "settled": pl.UInt32})
        if query == "celled_tables":
            return pl.DataFrame({"table": ["price"], "value": ["price"]})
        if query == "history_density":
            return pl.DataFrame({"month": ["202503"], "rows": [2]})
        if query == "applied_migrations":
            applied = [(one.number, one.name, one.checksum) for one in self.migrations]
            return pl.DataFrame(applied, schema=["number", "name", "checksum"], orient="row")
        if query == "job_runs":
            return pl.DataFrame([{**asdict(run), "age": 0} for run in self.job_runs])
        assert query in ("abandoned_staging", "assets"), query
        return pl.DataFrame({"name": []})

    def insert(self, table: str, rows: pl.DataFrame) -> None:
        """Write rows: announcements and the ledger's have their effect."""
        self._begin("insert", table)
        if table in ("publication", "append_run"):
            for row in rows.iter_rows(named=True):
                self.tell(table, (row["family"], row["version"]), bool(row["finished"]))
        elif table == "snapshot":
            self._complete(rows)
        elif "_staging_" in table:
            self._require(table)
            self.staged[table] = rows
        elif "version" in rows.columns:
            self.in_place.setdefault(table, set()).update(rows["version"])

    def execute(self, statement: str) -> None:
        """Make, fill or drop staging tables, or put them in place."""
        self._begin("execute", statement)
        words = statement.split()
        if statement.startswith("CREATE"):
            name = words[words.index("EXISTS") + 1]
            self.tables.setdefault(name, words[-1].strip("'") if "COMMENT" in words else "")
        elif statement.startswith("DROP"):
            for name in words[words.index("EXISTS") + 1 : -1]:
                self.tables.pop(name.strip(","), None)
        else:
            table, staged = words[2], next(word for word in words if "_staging_" in word)
            self._require(staged)
            if table == "snapshot":
                self._complete(self.staged[staged])
            else:
                self.in_place.setdefault(table, set()).add(int(staged.rpartition("_")[2]))

    def run(self, query: str, parts: Parts = (), **parameters: object) -> None:
        """Compute cells, or have definitions of assets shown; what is forgotten is never here."""
        if query in ("forget_finished", "forget_future_reports", "announce_assets"):
            self._begin("run", query)
            return
        if query == "show_assets":
            self._begin("run", query)
            head = self.heads.get(str(parameters["family"]))
            if head is not None and max(self.in_place.get("asset", ()), default=0) > head.version:
                self.change(head.family, version=int(str(parameters["version"])), runs=head.runs + 1)
            return
        cells = str(parameters["cells"])
        assert (query, cells.partition("_staging_")[0]) == ("fill_cells", "price_cell"), query
        self._begin("run", f"{query} {cells}")
        if cells != "price_cell":
            self._require(cells)

    def _begin(self, kind: str, name: str) -> None:
        if self.away:
            raise StoreUnavailable("away")
        self.before(Statement(kind, name))
        self.statements.append(name)

    def _require(self, table: str) -> None:
        if table not in self.tables:
            raise SchemaError(f"There is no {table}.")

    def tell(self, table: str, run: tuple[str, int], finished: bool) -> None:
        """Announce a run in a table, send its heartbeat, or finish it."""
        family, version = run
        announced = self.appended if table == "append_run" else self.finished
        if table == "publication" and run not in announced:
            self.rewrite(family)
        announced[run] = announced.get(run, False) or finished
        self.silent = {one: [v for v in silent if v != version] for one, silent in self.silent.items()}
        self.open = {one for (one, _), done in self.finished.items() if not done}

    def _complete(self, rows: pl.DataFrame) -> None:
        for row in rows.iter_rows(named=True):
            self.completed.add((row["family"], row["at"]))
            old = self.heads.get(row["family"], Head(row["family"], 0, 0, 0, 0))
            self.heads[old.family] = replace(
                old,
                at=max(old.at, row["at"]),
                last_observed_at=max(old.last_observed_at, row["last_observed_at"]),
                version=max(old.version, row["version"]),
                runs=old.runs + 1,
            )

    def _state(self, family: str) -> pl.DataFrame:
        heads = [(h.at, h.last_observed_at, h.version, h.runs) for h in self.heads.values() if h.family == family]
        return pl.DataFrame(heads, schema=["at", "last_observed_at", "version", "runs"], orient="row")

    def _ledger(self) -> pl.DataFrame:
        heads = [("head", h.family, h.version, h.runs, 0, h.at, h.last_observed_at, []) for h in self.heads.values()]
        announced = [("rewrite", run, done) for run, done in self.finished.items()]
        # Tests may say no more than that there are rewrites, or that one is open.
        for family, head in self.heads.items():
            known = sum(one == family for one, _ in self.finished)
            unnamed = range(head.rewrites - known)
            announced += [("rewrite", (family, 9 + n), n > 0 or family not in self.open) for n in unnamed]
        announced += [("append", run, False) for run, finished in self.appended.items() if not finished]
        runs = [
            (how, family, 0 if finished else version, 1, version in self.silent.get(family, []), 0, 0, [])
            for how, (family, version), finished in announced
        ]
        return pl.DataFrame(runs + heads, schema=_LEDGER, orient="row")


def dying_in_place(settings: Settings, table: str) -> WatchedStore:
    """A store that loses ClickHouse when staged rows of a table are put in place; so their run has been announced."""

    def die(statement: Statement) -> None:
        if statement.name.startswith((f"ALTER TABLE {table} ATTACH", f"INSERT INTO {table} ")):
            raise StoreUnavailable("ClickHouse is gone.")

    return WatchedStore(settings, before=die)


class FakeStore(LedgerStore):
    """An empty database that remembers inserts in order, each under the table that its rows are meant for. It knows the
    ledger; other queries return nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.heads = {}
        self.inserts: list[tuple[str, pl.DataFrame]] = []

    @property
    def instants(self) -> list[int]:
        """Instants of the snapshots that were written (unix seconds), in the order of writing."""
        return [at for table, rows in self.inserts if table == "snapshot" for at in rows["at"]]

    def frame(self, query: str, parts: Parts = (), **parameters: object) -> pl.DataFrame:
        """The ledger, announcements, or staging tables; else nothing."""
        known = (
            "ledger",
            "family_state",
            "newest_version",
            "run_state",
            "staged_runs",
            "staged_tables",
            "snapshots_between",
            "abandoned_staging",
            "applied_migrations",
        )
        if query == "observed_prices":
            return pl.DataFrame(schema={"asset_id": pl.String, "observed_at": pl.UInt32, "price": pl.Decimal(38, 18)})
        return super().frame(query, parts, **parameters) if query in known else pl.DataFrame()

    def insert(self, table: str, rows: pl.DataFrame) -> None:
        """Remember the rows; those of staging tables will be put in place."""
        super().insert(table, rows)
        if table not in ("publication", "append_run"):
            self.inserts.append((table.partition("_staging_")[0], rows))


class FirstHeads(Heads):
    """Heads that look at the ledger for the first request only, for tests that write nothing after it."""

    def __init__(self, store: Store) -> None:
        super().__init__(store, every=None, clock=lambda: 0.0)


class FreshHeads(Heads):
    """Heads that look at the ledger for every request, so that tests see immediately what they wrote."""

    def __init__(self, store: Store) -> None:
        super().__init__(store, every=None)

    def known(self) -> Known:
        """The heads as they are now."""
        self.look()
        return super().known()

    def seen(self) -> Seen:
        """The ledger as it is now."""
        self.look()
        return super().seen()
