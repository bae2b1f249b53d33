"""Rewrites: imports, backfills and other corrections of history that readers already see (rules 8.3 to 8.6).

A rewrite is atomic. It first writes observations, definitions of assets and ledger rows into staging tables. It writes
rows of other tables directly: nobody reads them before the ledger lists their commit. An announced rewrite is always
completed; meanwhile readers discard what they read of its dataset. The writer holds the write lock throughout, and
checks it before it announces and before it lists commits. All other steps read staging tables, which whoever takes the
lock next drops. The next holder completes the rewrite of a dead writer; every step may be repeated:

| staging tables | announcement | state of the rewrite | next step                             |
|----------------|--------------|----------------------|---------------------------------------|
| exist          | none         | staging              | drop                                  |
| exist          | open         | being put in place   | attach, rollups, ledger, finish, drop |
| exist          | finished     | in place             | drop                                  |
| dropped        | finished     | done                 | none                                  |
"""

import logging
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace

import polars as pl

from analytics_service.clickhouse.cluster import quote_identifier
from analytics_service.clickhouse.columns import with_version
from analytics_service.clickhouse.connection import Store
from analytics_service.clickhouse.errors import ANY_FAILURE
from analytics_service.clickhouse.queries import named_query
from analytics_service.errors import AnalyticsError, CorrectionInProgress, SchemaError
from analytics_service.store.bulk_copy import add_in_pieces
from analytics_service.store.datasets.assets import ASSETS, ASSETS_DATASET
from analytics_service.store.datasets.events import EVENTS
from analytics_service.store.datasets.histories import names_of
from analytics_service.store.datasets.observations import OBSERVATIONS
from analytics_service.store.ledger import (
    CORRECTION,
    HEADS,
    LEDGER,
    VALUES_ONLY,
    Head,
    LedgerRow,
    ledger_frame,
    new_version,
    parse_ledger_rows,
    read_head,
    read_ledger,
    record_rewrite,
)
from analytics_service.store.mutations import delete_rows
from analytics_service.store.rollups import TouchedRollups, compute_touched
from analytics_service.store.schema import TABLES, require_current, require_shards
from analytics_service.store.write_lock import ALL, PATIENCE, WriteLock, write_lock

log = logging.getLogger(__name__)

_STAGED = (LEDGER, OBSERVATIONS, ASSETS)
# In the staging table of the ledger, the kind of a removed commit begins with this.
_TAKEN_OUT = "-"
# Bytes of disk for a staged row, its copy in the table, rollups and merges.
_BYTES_OF_ROW = 64
# Seconds between checks for interrupted rewrites, by a scheduler or a service without a source.
_COMPLETE_EVERY = 5.0


class Staging:
    """The staging tables of a rewrite; `removed` lists observations to delete. `announce` and `put_in_place` raise
    WriteLockLost once the write lock is lost."""

    def __init__(self, store: Store, dataset: str, version: int, lock: WriteLock) -> None:
        self.dataset = dataset
        self.version = version
        self._lock = lock
        self._store = store
        self._suffix = f"_staging_{version}"
        # Events are staged, because readers see events of the past as soon as they are written.
        self._events = [EVENTS] if dataset == "loans" else []
        self._added = OBSERVATIONS + self._suffix
        self.removed = f"{self._added}_removed"
        # The table whose columns each staging table has.
        self._tables = {table + self._suffix: table for table in (*_STAGED, *self._events)}
        self._tables[self.removed] = OBSERVATIONS
        self._forgotten: list[LedgerRow] = []

    def require_room(self, rows: int) -> None:
        """DiskFull if `rows` rows do not fit."""
        self._store.require_room(2**20 + rows * _BYTES_OF_ROW)

    def create(self) -> None:
        with self._store.together(f"staging of {self.dataset}"):
            for staged, table in self._tables.items():
                self._store.execute(
                    f"CREATE TABLE IF NOT EXISTS {quote_identifier(staged)}{{on_cluster}} AS {quote_identifier(table)}"
                )

    def insert(self, table: str, rows: pl.DataFrame) -> None:
        """Write rows into the staging table of a table."""
        self._store.insert(table + self._suffix, rows)

    def has(self, table: str) -> bool:
        """Whether rows of a table can be staged."""
        return table in self._tables.values()

    def remove(self, observations: pl.DataFrame) -> None:
        """Delete stored observations (columns history, asset_id, observed_at), but none that the rewrite adds."""
        self._store.insert(self.removed, observations.select("history", "asset_id", "observed_at"))

    def forget(self, runs: Sequence[LedgerRow]) -> None:
        """Delete commits from the ledger, which hides their rows in tables of snapshots."""
        self._forgotten += runs

    def announce(self, runs: Sequence[LedgerRow]) -> None:
        """Stage the changes of the ledger, and announce the rewrite if the lock is still held."""
        changed = self._store.query("measure_rewrite", added=self._added, removed=self.removed).row(0, named=True)
        self.insert(LEDGER, ledger_frame(self._listed(runs, changed)))
        spans = [(run.first_observed_at, run.last_observed_at) for run in [*runs, *self._forgotten]]
        spans += [(changed["first"], changed["until"])] if changed["added"] or changed["removed"] else []
        rows = changed["removed"] + max(changed["added"], sum(run.rows for run in runs))
        first, last = min((first for first, _ in spans), default=0), max((last for _, last in spans), default=0)
        self._lock.announce(self.dataset, self.version, rows, (first, last))

    def _listed(self, runs: Sequence[LedgerRow], changed: Mapping[str, int]) -> list[LedgerRow]:
        """Changes of the ledger: commits to list, and if the rewrite does more, commits to delete, imports that keep
        only a part of their observations, and the correction itself."""
        listed, taken_out = [*runs], [*self._forgotten]
        if changed["removed"] or taken_out or not runs:
            firsts = [changed["first"]] if changed["added"] or changed["removed"] else []
            first = min([*firsts, *(run.first_observed_at for run in taken_out)], default=0)
            for run in self._imports_since(first) if changed["removed"] else ():
                if (left := self._left_of(run)) != run:
                    taken_out.append(run)
                    listed += [left] if left.rows else []
            listed.append(self._correction(first, changed["last"], changed["added"]))
        return [*listed, *(replace(run, kind=_TAKEN_OUT + run.kind) for run in taken_out)]

    def put_in_place(self, head: Head | None) -> None:
        """Attach the observations, compute the rollups that they touch or close, and list the commits. `head` is the
        dataset's head before the rewrite. Safe to repeat."""
        require_shards(self._store)
        runs = parse_ledger_rows(self._store.query("read_staged_runs", table=LEDGER + self._suffix))
        with self._store.together(f"a rewrite of {self.dataset}"):
            has_assets = self._put_rows_in_place(runs, head)
            self._list(runs)
            if has_assets and any(run.kind == "import" for run in runs):
                show_assets(self._store)

    def _put_rows_in_place(self, runs: Sequence[LedgerRow], head: Head | None) -> bool:
        """Put observations, events, definitions and rollups in place. Returns whether there are definitions."""
        tables = {"removed": self.removed, "assets": ASSETS + self._suffix}
        has_removed, has_assets = self._store.query("check_staged", **tables).row(0)
        removed = self.removed if has_removed else ""
        # Rows are added before the rows that they replace are deleted: a job may read both, but must not miss both.
        for table in (OBSERVATIONS, *self._events):
            self._add(table)
        if removed:
            self._delete(OBSERVATIONS, "delete_observations", removed, removed=removed)
        if has_assets:
            self._add_assets()
        first, newest = min(run.first_observed_at for run in runs), max(run.last_observed_at for run in runs)
        start = head.last_observed_at + 1 if head else first
        touched = TouchedRollups(self._added, removed, self.version)
        compute_touched(self._store, names_of(self.dataset), touched, start, max(newest + 1, start))
        return bool(has_assets)

    def _list(self, runs: Sequence[LedgerRow]) -> None:
        """Change the ledger."""
        staged_runs = LEDGER + self._suffix
        self._lock.require()
        if any(run.kind.startswith(_TAKEN_OUT) for run in runs):
            self._delete(LEDGER, "delete_runs", staged_runs, staged=staged_runs)
            if self._events:
                self._delete(EVENTS, "delete_events", staged_runs, staged=staged_runs)
        listed = f"SELECT * FROM {staged_runs} FINAL WHERE NOT startsWith(kind, '{_TAKEN_OUT}')"
        self._store.execute(f"INSERT INTO {LEDGER} {listed}")
        if any(run.kind == CORRECTION for run in runs):
            rebuild_head(self._store, self.dataset, self.version)

    def _add(self, table: str) -> None:
        staged = table + self._suffix
        if self._store.layout.is_replicated:
            add_in_pieces(self._store, table, staged, self.version)
        else:
            self._store.execute(f"ALTER TABLE {table} ATTACH PARTITION ALL FROM {staged}")

    def finish(self) -> None:
        record_rewrite(self._store, [self.dataset], self.version, finished=1)

    def drop(self) -> None:
        _drop(self._store, list(self._tables))

    def _correction(self, first: int, last: int, added: int) -> LedgerRow:
        """The ledger row of the rewrite itself. It has the source of the newest remaining commit."""
        without = [run.version for run in self._forgotten]
        origin = self._store.query("find_newest_origin", dataset=self.dataset, without=without)
        source, simulated = origin.row(0) if origin.height else ("", False)
        own = {"source": source, "simulated": simulated, "version": self.version, "import_id": self.version}
        return LedgerRow(self.dataset, VALUES_ONLY, CORRECTION, first, last, added, **own)

    def _imports_since(self, since: int) -> list[LedgerRow]:
        """The imports that may lose observations at or after a second."""
        rows = self._store.query("list_overlapping_imports", dataset=self.dataset, start=since, version=self.version)
        return [run for run in parse_ledger_rows(rows) if run not in self._forgotten]

    def _left_of(self, run: LedgerRow) -> LedgerRow:
        """An import as the rewrite leaves it."""
        left = self._store.query(
            "measure_import",
            dataset=self.dataset,
            histories=names_of(self.dataset),
            removed=self.removed,
            first=run.first_observed_at,
            last=run.last_observed_at,
            version=run.version,
        ).row(0, named=True)
        return replace(run, **left, at=run.at if run.at == VALUES_ONLY else left["last_observed_at"])

    def _delete(self, table: str, query: str, staged: str, /, **parts: str) -> None:
        statement = named_query(query, {**parts, "version": f"{self.version}"})
        delete_rows(self._store, table, statement, staged)

    def is_there(self) -> bool:
        """Whether all staging tables exist."""
        return len(self._store.query("list_staging_tables", suffix=self._suffix)) == len(self._tables)

    def _add_assets(self) -> None:
        """Add definitions of assets, unless newer definitions were written since. Definitions that come with a dataset
        other than prices get a version above all prices that readers have seen, so that past answers do not change
        (rule 8.2, equal heads)."""
        staged, columns, where = ASSETS + self._suffix, "*", "true"
        if self.dataset != ASSETS_DATASET:
            columns = f"* REPLACE ({new_version(self._store)} AS version)"
            where += f" AND id NOT IN (SELECT id FROM {ASSETS} WHERE version > {self.version})"
        self._store.execute(f"INSERT INTO {ASSETS} SELECT {columns} FROM {staged} WHERE {where}")


def rebuild_head(store: Store, dataset: str, version: int) -> None:
    """Derive a dataset's head from the ledger after a rewrite has deleted commits or observations. The head may become
    older, or disappear."""
    histories = ", ".join(f"'{name}'" for name in names_of(dataset))
    newest = "max(s.last_observed_at)"
    if not TABLES[dataset]:
        newest = f"least({newest}, (SELECT max(observed_at) FROM {OBSERVATIONS} WHERE history IN ({histories})))"
    parts = {"dataset": dataset, "ends": named_query("derive_head", {"dataset": dataset, "newest": newest})}
    head = store.query("compare_head", parts)
    has_runs, exceeds = head.row(0) if head.height else (True, True)
    if not has_runs:
        for table in (LEDGER, HEADS):
            store.execute(named_query("clear_ledger", {**parts, "table": table, "version": f"{version}"}))
    if exceeds:
        store.execute(named_query("lower_head", parts))
        store.execute(named_query("raise_head", parts))


def write_definitions(store: Store, assets: pl.DataFrame, what: str) -> None:
    """Write definitions, a batch without `version`, as a correction that is visible at once. `what` describes it."""
    with correction(store, ASSETS_DATASET, what) as lock:
        version = new_version(store)
        lock.require()
        store.insert(ASSETS, with_version(assets, version))
        show_assets(store)
        lock.announce(ASSETS_DATASET, version, assets.height, (0, 0), finished=1)


def show_assets(store: Store) -> None:
    """Make added definitions visible, even of assets without prices: the head of prices, with which assets are shown,
    gets a version above theirs. The dataset does not change otherwise."""
    store.run("show_assets", dataset=ASSETS_DATASET, version=new_version(store))
    store.run("announce_assets", dataset=ASSETS_DATASET)


@contextmanager
def correction(store: Store, dataset: str, what: str, *, patience: float = PATIENCE) -> Iterator[WriteLock]:
    """Hold the write lock during the block. First completes or drops the rewrites of dead writers. CorrectionInProgress
    like `write_lock`."""
    with write_lock(store, dataset, what, patience=patience) as lock:
        _complete(store, lock)
        yield lock


@contextmanager
def staging(
    store: Store, dataset: str, version: int | None, *, what: str = "correction", expected: int = 0
) -> Iterator[Staging]:
    """Staging tables for the duration of the block, which holds the write lock. They remain if the rewrite was
    announced and has not finished.

    `what` describes the rewrite to people, and `expected` is its number of rows, if known: DiskFull if they do not fit.
    The default `version` is above all stored versions. CorrectionInProgress like `write_lock`.
    """
    with correction(store, dataset, what) as lock:
        staged = Staging(store, dataset, version or new_version(store), lock)
        try:
            staged.require_room(expected)
            staged.create()
            yield staged
        except SchemaError:
            # Whoever took a lost lock has dropped the tables.
            lock.require()
            raise
        finally:
            try:
                if staged.version not in read_ledger(store).open.get(dataset, ()):
                    staged.drop()
            except AnalyticsError as error:
                log.warning("The next correction will drop the staging tables of this one: %s", error)


def publish(store: Store, staged: Staging, runs: Sequence[LedgerRow]) -> None:
    """Make all staged rows visible at once, as complete commits.

    SchemaError, with nothing shown, if the schema is of another version (rule 8.14, schema check). WriteLockLost, or
    StoreUnavailable while ClickHouse is away; others then complete an announced rewrite.
    """
    require_current(store)
    staged.announce(runs)
    _put_in_place(store, staged)


def _put_in_place(store: Store, staged: Staging) -> None:
    staged.put_in_place(read_head(store, staged.dataset))
    staged.finish()


def complete_interrupted(store: Store, last_error: str = "") -> str:
    """Complete rewrites whose writers have died, unless another process holds the write lock and so completes them.
    Returns the error, or an empty string, and logs an error other than `last_error`."""
    try:
        if read_ledger(store).open:
            what = "completion of an interrupted correction"
            with suppress(CorrectionInProgress), correction(store, ALL, what, patience=0):
                pass
        return ""
    except ANY_FAILURE as error:
        if (cause := f"{type(error).__name__}: {error}") != last_error:
            unexpected = None if isinstance(error, AnalyticsError) else error
            log.error("Interrupted rewrites cannot be completed: %s", error, exc_info=unexpected)
        return cause


def keep_complete(store: Store, stop: threading.Event) -> None:
    """Look for interrupted rewrites every few seconds, and complete them, until `stop` is set."""
    error = ""
    while not stop.wait(_COMPLETE_EVERY):
        error = complete_interrupted(store, error)


def _complete(store: Store, lock: WriteLock) -> None:
    """Complete announced rewrites, and drop other staging tables. Nobody uses these, since the caller holds the write
    lock."""
    for dataset, versions in read_ledger(store).open.items():
        for version in versions:
            staged = Staging(store, dataset, version, lock)
            if staged.is_there():
                _put_in_place(store, staged)
                log.warning("A rewrite of %s was interrupted; it is complete now.", dataset)
            else:
                staged.finish()
                log.error("Staging tables of an interrupted rewrite of %s are gone; run its command again.", dataset)
    if names := store.query("list_abandoned_staging")["name"].to_list():
        lock.require()
        _drop(store, names)


def _drop(store: Store, tables: Sequence[str]) -> None:
    store.execute(f"DROP TABLE IF EXISTS {', '.join(map(quote_identifier, tables))}{{on_cluster}} SYNC")
