"""Rewrites: imports and backfills of the past, which change history that readers already see (rules 8.3 to 8.6).

A rewrite is atomic. Its observations, definitions of assets and rows of the ledger are first written into staging
tables. Rows of other tables are written directly, since nobody reads them before the ledger lists their run. Once
announced, a rewrite is always completed; meanwhile readers reject everything that they read of its family. When its
writer sends no heartbeat for three seconds, any process that notices rolls it forward. Every step may be repeated, so a
writer that was only paused can go on. Stages of a rewrite, as the store shows them:

| staging tables | announcement | stage                                | next step                                    |
|----------------|--------------|--------------------------------------|----------------------------------------------|
| there          | none         | being staged, or its writer has died | writer: announce; anybody after a day: drop  |
| there          | open         | being put in place by its writer     | writer: attach, cells, ledger, finish        |
| there          | open, silent | its writer has died                  | anybody: attach, cells, ledger, finish       |
| there          | finished     | in place                             | whoever put it in place: drop                |
| gone           | finished     | done                                 | none                                         |
"""

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

import polars as pl

from analytics_service.clickhouse.cluster import named
from analytics_service.clickhouse.columns import versioned
from analytics_service.clickhouse.connection import Store
from analytics_service.clickhouse.queries import named_query
from analytics_service.clickhouse.retries import ANY_FAILURE, ONCE, Retries
from analytics_service.errors import AnalyticsError, BackupFailed
from analytics_service.market.assets import Asset
from analytics_service.market.instants import EPOCH
from analytics_service.store.adding import add_in_pieces
from analytics_service.store.corrections import HEARTBEAT_SECONDS, PUTTING_IN_PLACE, Correction, beating, in_turn
from analytics_service.store.datasets.assets import ASSETS, ASSETS_FAMILY, asset_frame
from analytics_service.store.datasets.events import EVENTS
from analytics_service.store.datasets.histories import names_of
from analytics_service.store.datasets.observations import OBSERVATIONS
from analytics_service.store.ledger import (
    CORRECTION,
    HEADS,
    LEDGER,
    VALUES_ONLY,
    Head,
    Ledger,
    Run,
    ledger_frame,
    new_version,
    read_ledger,
    read_state,
    record_rewrite,
    runs_of,
)
from analytics_service.store.mutations import delete_once
from analytics_service.store.rollups import Touched, compute_touched
from analytics_service.store.schema import TABLES, require_current
from analytics_service.store.shards import require_shards

log = logging.getLogger(__name__)

_STAGED = (LEDGER, OBSERVATIONS, ASSETS)
# The kind of a run that is taken out begins with this in the staging table of the ledger.
_TAKEN_OUT = "-"
# Disk that a staged row needs, with its copy in the table, cells and merges.
_BYTES_OF_ROW = 64
# Readings of the ledger, a second apart, before the schema changes. A writer counts as silent after three seconds.
_LOOKS_BEFORE_CHANGE = 8
# No rewrite takes this long, so older staging tables are abandoned.
_ABANDONED_HOURS = 24


class Staging:
    """The staging tables of a rewrite. That of observations to take out is `removed`."""

    def __init__(self, store: Store, family: str, version: int, correction: Correction | None = None) -> None:
        self.family = family
        self.version = version
        self._queued = correction
        self._store = store
        self._suffix = f"_staging_{version}"
        # Events of the past are shown as soon as they are there.
        self._events = [EVENTS] if family == "loans" else []
        self._added = OBSERVATIONS + self._suffix
        self.removed = f"{self._added}_removed"
        # The tables that they are like.
        self._tables = {table + self._suffix: table for table in (*_STAGED, *self._events)}
        self._tables[self.removed] = OBSERVATIONS
        self._forgotten: list[Run] = []

    def create(self) -> None:
        """Create the tables."""
        for staged, table in self._tables.items():
            self._store.execute(f"CREATE TABLE IF NOT EXISTS {named(staged)}{{on_cluster}} AS {named(table)}")

    def insert(self, table: str, rows: pl.DataFrame) -> None:
        """Write rows into the staging table of a table."""
        self._store.insert(table + self._suffix, rows)
        if self._queued is not None and table != ASSETS:
            self._queued.rows += rows.height

    def has(self, table: str) -> bool:
        """Whether rows of a table can be staged."""
        return table in self._tables.values()

    def remove(self, observations: pl.DataFrame) -> None:
        """Take out observations (columns history, asset_id, observed_at). Those that the rewrite adds stay."""
        self._store.insert(self.removed, observations.select("history", "asset_id", "observed_at"))

    def rename(self, old: str, new: str) -> None:
        """Make the events of an asset those of another."""
        if self._events:
            parts = {"staged": EVENTS + self._suffix}
            self._store.run("rename_in_events", parts, old=old, new=new, version=self.version)

    def undefine(self, asset: Asset) -> None:
        """Take out the definitions of an asset."""
        marked = asset_frame([(EPOCH, asset)]).with_columns(kind=pl.lit(""))
        self.insert(ASSETS, versioned(marked, self.version))

    def forget(self, runs: Sequence[Run]) -> None:
        """Take runs out of the ledger, and so what they wrote into tables of snapshots."""
        self._forgotten += runs

    def list_runs(self, runs: Sequence[Run]) -> None:
        """Stage the changes of the ledger: runs to list, and, if the rewrite does more than that, runs to take out,
        imports that keep only a part of their observations, and the correction itself."""
        changed = self._store.frame("changed_span", added=self._added, removed=self.removed).row(0, named=True)
        listed, taken_out = [*runs], [*self._forgotten]
        if changed["removed"] or taken_out or not runs:
            firsts = [changed["first"]] if changed["added"] or changed["removed"] else []
            first = min([*firsts, *(run.first_observed_at for run in taken_out)], default=0)
            for run in self._imports_since(first) if changed["removed"] else ():
                if (left := self._left_of(run)) != run:
                    taken_out.append(run)
                    listed += [left] if left.rows else []
            listed.append(self._correction(first, changed["last"], changed["added"]))
        marked = [replace(run, kind=_TAKEN_OUT + run.kind) for run in taken_out]
        self._store.insert(LEDGER + self._suffix, ledger_frame([*listed, *marked]))
        if (own := self._queued) is not None:
            spans = [(run.first_observed_at, run.last_observed_at) for run in [*runs, *self._forgotten]]
            spans += [(changed["first"], changed["until"])] if changed["added"] or changed["removed"] else []
            own.first_at = min((first for first, _ in spans), default=0)
            own.last_at = max((last for _, last in spans), default=0)
            own.rows, own.stage = max(own.rows, changed["added"]) + changed["removed"], PUTTING_IN_PLACE
            own.tell(self._store)

    def put_in_place(self, head: Head | None) -> None:
        """Attach the observations, compute the cells that they touch or close, and list the runs. `head` is the
        family's head before. Does nothing when another process has finished that, and dropped the tables."""
        if not self._is_there():
            return
        require_shards(self._store)
        staged_runs = LEDGER + self._suffix
        runs = runs_of(self._store.frame("staged_runs", table=staged_runs))
        first, newest = min(run.first_observed_at for run in runs), max(run.last_observed_at for run in runs)
        before = head.last_observed_at if head else max(first - 1, 0)
        # What takes the place of others is there before they go: a job may read both, but not neither.
        for table in (OBSERVATIONS, *self._events):
            self._add(table)
        removed = self.removed if self._store.frame("row_count", table=self.removed)["rows"].item() else ""
        if removed:
            self._delete(OBSERVATIONS, "take_out_observations", removed, removed=removed)
        self._add_assets()
        touched = Touched(self._added, removed, self.version)
        compute_touched(self._store, names_of(self.family), touched, before, max(newest, before))
        if any(run.kind.startswith(_TAKEN_OUT) for run in runs):
            self._delete(LEDGER, "take_out_runs", staged_runs, staged=staged_runs)
            if self._events:
                self._delete(EVENTS, "take_out_events", staged_runs, staged=staged_runs)
        listed = f"SELECT * FROM {staged_runs} FINAL WHERE NOT startsWith(kind, '{_TAKEN_OUT}')"
        self._store.execute(f"INSERT INTO {LEDGER} {listed}")
        if any(run.kind == CORRECTION for run in runs):
            make_head_anew(self._store, self.family, self.version)
        if any(run.kind == "import" for run in runs):
            show_assets(self._store)

    def _add(self, table: str) -> None:
        staged = table + self._suffix
        if self._store.layout.is_replicated:
            add_in_pieces(self._store, table, staged, self.version)
        else:
            self._store.execute(f"ALTER TABLE {table} ATTACH PARTITION ALL FROM {staged}")

    def drop(self) -> None:
        """Drop the tables, the ledger's first: once it is gone, nobody rolls the rewrite forward."""
        _drop(self._store, list(self._tables))

    def has_been_taken_over(self) -> bool:
        """Whether another process has put the rewrite in place."""
        return not self._is_there() or self.version not in read_ledger(self._store).open.get(self.family, ())

    def _correction(self, first: int, last: int, added: int) -> Run:
        """The row of the ledger for the rewrite itself. It is of the source of the newest run that is left."""
        without = [run.version for run in self._forgotten]
        origin = self._store.frame("newest_origin", family=self.family, without=without)
        source, simulated = origin.row(0) if origin.height else ("", False)
        own = {"source": source, "simulated": simulated, "version": self.version, "files": self.version}
        return Run(self.family, VALUES_ONLY, CORRECTION, first, last, added, **own)

    def _imports_since(self, since: int) -> list[Run]:
        """The imports that may lose observations at or after a second."""
        rows = self._store.frame("overlapping_imports", family=self.family, since=since, version=self.version)
        return [run for run in runs_of(rows) if run not in self._forgotten]

    def _left_of(self, run: Run) -> Run:
        """An import as the rewrite leaves it."""
        left = self._store.frame(
            "left_of_import",
            family=self.family,
            histories=names_of(self.family),
            removed=self.removed,
            first=run.first_observed_at,
            last=run.last_observed_at,
            version=run.version,
        ).row(0, named=True)
        return replace(run, **left, at=run.at if run.at == VALUES_ONLY else left["last_observed_at"])

    def _delete(self, table: str, query: str, staged: str, /, **parts: str) -> None:
        statement = named_query(query, {**parts, "version": f"{self.version}"})
        delete_once(self._store, table, statement, staged)

    def _is_there(self) -> bool:
        return len(self._store.frame("staging_tables", suffix=self._suffix)) == len(self._tables)

    def _add_assets(self) -> None:
        """Add definitions. Definitions written since the run began stay as they are: they have greater versions, but
        those of families other than prices get one above that of all prices that readers have seen, so that answers
        already given do not change (rule 8.2)."""
        staged, columns, where = ASSETS + self._suffix, "*", "kind != ''"
        if self.family != ASSETS_FAMILY:
            columns = f"* REPLACE ({new_version(self._store)} AS version)"
            where += f" AND id NOT IN (SELECT id FROM {ASSETS} WHERE version > {self.version})"
        self._store.execute(f"INSERT INTO {ASSETS} SELECT {columns} FROM {staged} WHERE {where}")
        if self._store.frame("rows_of_asset", table=staged, column="kind", asset_id="")["rows"].item():
            self._delete(ASSETS, "take_out_assets", staged, staged=staged)


def make_head_anew(store: Store, family: str, version: int) -> None:
    """Make a family's head from the ledger, once a rewrite has taken out runs or observations: it may be older, or
    gone."""
    histories = ", ".join(f"'{name}'" for name in names_of(family))
    newest = "max(s.last_observed_at)"
    if not TABLES[family]:
        newest = f"least({newest}, (SELECT max(observed_at) FROM {OBSERVATIONS} WHERE history IN ({histories})))"
    parts = {"family": family, "ends": named_query("family_ends", {"family": family, "newest": newest})}
    head = store.frame("head_exceeds", parts)
    has_runs, exceeds = head.row(0) if head.height else (True, True)
    if not has_runs:
        for table in (LEDGER, HEADS):
            store.execute(named_query("forget_family", {**parts, "table": table, "version": f"{version}"}))
    if exceeds:
        store.execute(named_query("lower_head", parts))
        store.execute(named_query("raise_head", parts))


def define(store: Store, assets: pl.DataFrame, what: str) -> None:
    """Write definitions, a batch without `version`, and make them visible at once: a correction, as `what` says."""
    version = new_version(store)
    with in_turn(store, ASSETS_FAMILY, version, ONCE, what=what, expected=assets.height) as correction:
        store.insert(ASSETS, versioned(assets, version))
        show_assets(store)
        correction.rows = assets.height


def show_assets(store: Store) -> None:
    """Make added definitions visible, including those of assets without prices and those added before there were
    prices: the head of prices, the family that assets are shown with, gets a version above theirs. Nothing else of
    that family changes."""
    store.run("show_assets", family=ASSETS_FAMILY, version=new_version(store))
    store.run("announce_assets", family=ASSETS_FAMILY)


@contextmanager
def staging(
    store: Store,
    family: str,
    version: int | None,
    retry: Retries = ONCE,
    *,
    what: str = "correction",
    expected: int = 0,
) -> Iterator[Staging]:
    """Staging tables for the duration of the block. They stay if the rewrite was announced and has not finished.

    First, others that rewrite history end, interrupted rewrites are rolled forward, and abandoned staging tables are
    dropped. `what` the rewrite does is shown to people, and `expected` are its rows, as far as known: DiskFull without
    room for these. Without a `version`, it gets one then, above those of all rows that are there.
    """
    with in_turn(store, family, version, retry, what=what, expected=expected) as correction:
        Recovery(store).look()
        retry(lambda: drop_abandoned(store))
        staged = Staging(store, family, correction.version, correction)
        try:
            store.require_room(2**20 + expected * _BYTES_OF_ROW)
            retry(staged.create)
            yield staged
        finally:
            try:
                if staged.version not in read_ledger(store).open.get(family, ()):
                    staged.drop()
            except AnalyticsError as error:
                log.warning("Staging tables are left for a later run to drop: %s", error)


def publish(store: Store, staged: Staging, runs: Sequence[Run], retry: Retries = ONCE) -> None:
    """Make everything that is staged visible at once, as completed runs.

    SchemaError, with nothing shown, when the schema is of another version (rule 8.14). StoreUnavailable when ClickHouse
    stays away; other processes then roll an announced rewrite forward.
    """
    retry(lambda: require_current(store))
    retry(lambda: staged.list_runs(runs))
    _put_in_place(store, staged, retry)


def roll_forward(store: Store, family: str, version: int) -> None:
    """Put a rewrite in place whose writer is silent. Other processes, its writer included, may do so concurrently."""
    staged = Staging(store, family, version)
    _put_in_place(store, staged, ONCE)
    staged.drop()


def _put_in_place(store: Store, staged: Staging, retry: Retries) -> None:
    with _announced(store, staged, retry):
        head = retry(lambda: read_state(store, staged.family))
        try:
            retry(lambda: staged.put_in_place(head))
        except AnalyticsError:
            # The tables are gone when another process has put the rewrite in place.
            if not staged.has_been_taken_over():
                raise


@contextmanager
def _announced(store: Store, staged: Staging, retry: Retries) -> Iterator[None]:
    """Announce a rewrite, send heartbeats during the block, and finish it. After an error it stays open."""

    def record(finished: int) -> None:
        record_rewrite(store, [staged.family], staged.version, finished)

    retry(lambda: record(finished=0))
    with beating(lambda: record(finished=0)):
        yield
        retry(lambda: record(finished=1))


class Recovery:
    """Rolls silent rewrites forward, and never raises. Logs each cause of a failure once for each rewrite."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._failures: dict[tuple[str, int], str] = {}

    def look(self) -> Ledger:
        """Read the ledger, and roll silent rewrites forward."""
        try:
            ledger = read_ledger(self._store)
        except AnalyticsError:
            # ClickHouse is away, or has no schema yet. Other callers report that.
            return Ledger({})
        self.roll_forward(ledger.silent)
        return ledger

    def roll_forward(self, silent: Sequence[tuple[str, int]]) -> None:
        """Roll forward rewrites, given by family and version."""
        for family, version in silent:
            try:
                roll_forward(self._store, family, version)
                self._failures.pop((family, version), None)
                log.warning("A rewrite of %s was interrupted, or slow; it is complete now.", family)
            except ANY_FAILURE as error:
                cause = f"{type(error).__name__}: {error}"
                if self._failures.get((family, version)) != cause:
                    self._failures[family, version] = cause
                    unexpected = None if isinstance(error, AnalyticsError) else error
                    what = f"An interrupted rewrite of {family} cannot be completed"
                    log.error("%s: %s", what, error, exc_info=unexpected)


def wait_for_rewrites(store: Store, pause: Callable[[float], None] = time.sleep) -> None:
    """Wait at most some seconds until no rewrite is unfinished, because staged rows fit only the present schema."""
    recovery = Recovery(store)
    for _ in range(_LOOKS_BEFORE_CHANGE):
        if not recovery.look().open:
            return
        pause(HEARTBEAT_SECONDS)


def ledger_without_rewrites(store: Store, pause: Callable[[float], None] = time.sleep) -> Ledger:
    """The ledger once no rewrite is unfinished. BackupFailed if a rewrite is still unfinished after some seconds."""
    wait_for_rewrites(store, pause)
    ledger = read_ledger(store)
    if ledger.open:
        raise BackupFailed(
            f"{', '.join(sorted(ledger.open))}: history is being rewritten. Stop imports and backfills, or wait for "
            "their end, and try again."
        )
    return ledger


def drop_abandoned(store: Store, hours: int = _ABANDONED_HOURS) -> None:
    """Drop the staging tables that rewrites left behind this many hours ago."""
    if names := store.frame("abandoned_staging", hours=hours)["name"].to_list():
        _drop(store, names)


def _drop(store: Store, tables: Sequence[str]) -> None:
    store.execute(f"DROP TABLE IF EXISTS {', '.join(map(named, tables))}{{on_cluster}} SYNC")
