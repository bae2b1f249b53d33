"""Commits of jobs and backfills: the rows to append, replace or backdate, and how to write them.

Instants and version identify a commit. Its rows become visible with its last step, when the ledger lists them. So a
commit that dies half-way shows nothing, and two commits for one instant never mix. An overtaken commit writes nothing
more: ClickHouse itself checks the ledger as it inserts rows.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import chain
from typing import Any

import polars as pl

from analytics_service.clickhouse.columns import TIMES, SnapshotRows, SnapshotTable, with_version
from analytics_service.clickhouse.connection import Store
from analytics_service.clickhouse.queries import named_query
from analytics_service.errors import StoreUnavailable, UserError
from analytics_service.market.instants import DAY, format_instant, from_unix, unix_second
from analytics_service.store import rewrite
from analytics_service.store.batches import RowBatches, join_batches
from analytics_service.store.datasets.histories import names_of
from analytics_service.store.datasets.observations import (
    KEY,
    NO_OBSERVATIONS,
    OBSERVATIONS,
    read_observed_at,
    with_known_times,
)
from analytics_service.store.ledger import (
    LEDGER,
    MOST_AHEAD,
    Head,
    LedgerRow,
    Origin,
    head_without_future,
    ledger_frame,
    record_rewrite,
    snapshot_versions,
)
from analytics_service.store.ownership import Owner, take_ownership
from analytics_service.store.rollups import close_rollups
from analytics_service.store.schema import (
    Applied,
    require_all_applied,
    require_shards,
    shipped_migrations,
    unapplied_migrations,
)

# The subqueries of `read_commit_base`, and a version greater than any commit's.
_PARTS = ("read_head", "read_owner", "read_migrations", "make_version", "count_orphans")
_NO_VERSION = 2**64 - 1


class Overtaken(StoreUnavailable):
    """Another process completed the same snapshots first. Nothing that this commit wrote is shown."""


@dataclass(frozen=True, slots=True)
class Appended:
    """A snapshot: the state of a dataset as of `at`. Its rows lack `version`.

    `observations` of the dataset's histories have their own instants. `rows` are the snapshot's rows by table, and
    `changes` rows with `observed_at`, possibly millions. `ledger` has fields of LedgerRow that only the dataset knows.
    """

    at: datetime
    observations: pl.DataFrame = field(default_factory=lambda: NO_OBSERVATIONS)
    rows: SnapshotRows = field(default_factory=dict)
    changes: Mapping[str, RowBatches] = field(default_factory=dict)
    ledger: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Replaced:
    """Rows by table, without `version`, that replace stored rows with the same key, whatever their time.

    `removed` has the keys of observations to delete. If it is None, a commit that replaces snapshots deletes all their
    observations that it does not add again. `changes_past`: the rows change answers about the past.
    """

    rows: Mapping[str, pl.DataFrame] = field(default_factory=dict)
    removed: pl.DataFrame | None = None
    changes_past: bool = False


@dataclass(frozen=True, slots=True)
class Backdated:
    """Rows by table, with `version`, that keep later snapshots unchanged when earlier ones are added. They are valid as
    long as `versions`, by instant, are the versions of the complete snapshots in [start, end) (unix seconds)."""

    start: int
    end: int
    versions: Mapping[int, int]
    rows: Mapping[str, pl.DataFrame]


@dataclass(frozen=True, slots=True)
class Commit:
    """Snapshots that become visible together, oldest first, all with the same tables, and other rows."""

    appended: Sequence[Appended]
    replaced: Replaced = field(default_factory=Replaced)
    backdated: Backdated | None = None

    @property
    def observations(self) -> pl.DataFrame:
        """The observations of all snapshots."""
        return pl.concat([snapshot.observations for snapshot in self.appended])

    def tables(self) -> "_Tables":
        """All other rows with their tables; rows of snapshots have their instant. Changes come in batches. All else is
        encoded at once, so that a value that cannot be stored fails before anything is written."""
        snapshots = ((table.name, rows_of(self.appended, table)) for table in self.appended[0].rows)
        return chain([*self.replaced.rows.items(), *snapshots], self._changes())

    def _changes(self) -> "_Tables":
        for name in self.appended[0].changes:
            for rows in join_batches(chain.from_iterable(snapshot.changes[name] for snapshot in self.appended)):
                yield name, rows


_Tables = Iterator[tuple[str, pl.DataFrame]]


def rows_of(snapshots: Sequence[Appended], table: SnapshotTable) -> pl.DataFrame:
    """The rows of snapshots in a table, with `observed_at`."""
    at = [unix_second(snapshot.at) for snapshot in snapshots for _ in snapshot.rows[table]]
    rows = table.to_frame(chain.from_iterable(snapshot.rows[table] for snapshot in snapshots))
    return rows.with_columns(pl.Series("observed_at", at, dtype=pl.UInt32))


@dataclass(frozen=True, slots=True)
class Provenance:
    """How snapshots are taken: the kind of commit (job or backfill), the origin of the data, and the operation that
    replaces complete snapshots: backfill or recompute, empty for new snapshots."""

    kind: str
    origin: Origin
    replaces: str = ""


@dataclass(frozen=True, slots=True)
class CommitBase:
    """The store at the start of a commit of a dataset: the completed instants (unix seconds), the dataset's head
    without its count of rewrites, the store's owner (rule 8.7, one source), and the version of the commit.

    `present` is the head without snapshots from the future (rule 8.16, future snapshots). Dead commits may have left
    orphaned observations in the day before it: `left` is the oldest orphan or None, and `left_count` their number.
    Rollups do not include them yet.
    """

    dataset: str
    completed: frozenset[int]
    head: Head | None
    owner: Owner
    version: int
    present: Head | None
    left: int | None = None
    left_count: int = 0


def begin(store: Store, dataset: str, start: int, end: int) -> CommitBase:
    """Read the store at the start of a commit for instants in [start, end) (unix seconds). SchemaError unless the
    schema is of this version (rule 8.14, schema check). UserError for instants from the future (rule 8.16)."""
    parts = {name: named_query(name, ()) for name in _PARTS}
    parameters = {"dataset": dataset, "histories": names_of(dataset), "version": _NO_VERSION}
    row = store.query("read_commit_base", parts, start=start, end=end, **parameters).row(0, named=True)
    applied = [Applied(*fields.values()) for fields in row["migrations"]]
    require_all_applied(unapplied_migrations(applied, shipped_migrations()))
    require_shards(store)
    if end - 1 > row["now"] + MOST_AHEAD:
        raise UserError(
            f"The snapshot of {dataset} as of {format_instant(from_unix(end - 1))} lies ahead of ClickHouse's clock, "
            f"which shows {format_instant(from_unix(row['now']))}. Correct the clock that is wrong."
        )
    heads = [Head(dataset, *fields.values()) for fields in row["heads"]]
    owner = Owner(*row["owners"][0].values()) if row["owners"] else Owner()
    head = heads[0] if heads else None
    current = head_without_future(store, head, row["now"])[0] if head else None
    return CommitBase(dataset, frozenset(row["completed"]), head, owner, row["version"], current, *row["left"].values())


def commit(store: Store, changes: Commit, provenance: Provenance, base: CommitBase) -> None:
    """Write a commit. It becomes visible at once, or not at all if it dies half-way (rules 8.1 to 8.5).

    Snapshots that replace others replace all their observations, except imported observations. SourceMismatch, with
    nothing written, if the data must not join the store (rule 8.7). Overtaken, with nothing shown, if another process
    was faster.
    """
    runs = _ledger_rows(changes, provenance, base)
    is_removing = changes.replaced.removed is not None and changes.replaced.removed.height > 0
    is_rewrite = changes.backdated is not None or is_removing or _is_rewrite(runs, provenance, base.present)
    if not is_rewrite and base.left is not None:
        runs[0] = replace(runs[0], first_observed_at=min(runs[0].first_observed_at, base.left))
    condition = (
        "check_instants_complete"
        if provenance.replaces
        else "check_instants_free"
        if is_rewrite
        else "check_runs_unchanged"
    )
    writer, tables = _Writer(store, base, runs, condition), changes.tables()
    if provenance.replaces != "recompute":
        take_ownership(store, base.owner, provenance.origin)
    if is_rewrite:
        _rewrite(writer, changes, tables, provenance)
    else:
        _append(writer, changes, tables)


def _is_rewrite(runs: Sequence[LedgerRow], provenance: Provenance, head: Head | None) -> bool:
    """Whether a commit changes more of the past than a lagging oracle does: a backfill of the past, a snapshot with
    observations a day or more before the head, or a snapshot that replaces another."""
    if provenance.replaces or head is None:
        return bool(provenance.replaces)
    limit = head.last_observed_at if provenance.kind == "backfill" else head.last_observed_at - DAY
    return min(run.first_observed_at for run in runs) <= limit


def _append(writer: "_Writer", changes: Commit, tables: _Tables) -> None:
    """Write in place, the ledger last.

    If the oracle lags, or a dead commit has left orphans, observations may be older than the head. Then rollups from
    these observations on are recomputed, and the commit counts as a finished rewrite.
    """
    store, dataset = writer.store, writer.base.dataset
    first = min(run.first_observed_at for run in writer.runs)
    # Just after the head's newest observation: no reader has seen later rows.
    shown_until = writer.base.head.last_observed_at + 1 if writer.base.head else first
    end = max(shown_until, *(run.last_observed_at + 1 for run in writer.runs))
    with store.together(f"a commit of {dataset}"):
        # Observations come first: they identify the orphans of a commit that dies.
        writer.insert(OBSERVATIONS, with_known_times(changes.observations))
        close_rollups(store, names_of(dataset), min(shown_until, first), end)
        for table, rows in tables:
            writer.insert(table, rows)
        if first < shown_until or changes.replaced.changes_past:
            record_rewrite(store, [dataset], writer.base.version, finished=1)
    writer.complete(next((table.name for table in changes.appended[0].rows), None))


def _rewrite(writer: "_Writer", changes: Commit, tables: _Tables, provenance: Provenance) -> None:
    """Write as a rewrite (rule 8.3, atomic rewrites). Backdated rows take the write lock even in a job: their inputs
    must not change meanwhile."""
    store, dataset, version = writer.store, writer.base.dataset, writer.base.version
    observations, removed = changes.observations, changes.replaced.removed
    what = provenance.replaces or ("backfill" if changes.backdated else provenance.kind)
    with rewrite.staging(store, dataset, version, what=what, expected=observations.height) as staged:
        writer.require()
        with store.together(f"a rewrite of {dataset}"):
            for table, rows in tables:
                if staged.has(table):
                    staged.insert(table, with_version(rows, version))
                else:
                    writer.insert(table, rows)
            staged.insert(OBSERVATIONS, with_version(with_known_times(observations), version))
        if removed is None and provenance.replaces:
            removed = unobserved_keys(store, dataset, [run.at for run in writer.runs], observations)
        if removed is not None:
            staged.remove(removed)
        if changes.backdated:
            _backdate(store, dataset, changes.backdated)
        rewrite.publish(store, staged, writer.runs)


def unobserved_keys(store: Store, dataset: str, seconds: Sequence[int], observations: pl.DataFrame) -> pl.DataFrame:
    """The keys of observations that snapshots (unix seconds) have stored and that `observations` lack, without imported
    observations."""
    observed = read_observed_at(store, dataset, seconds).filter(~pl.col("imported"))
    return observed.join(observations, on=KEY, how="anti").select(KEY)


def _backdate(store: Store, dataset: str, backdated: Backdated) -> None:
    """Write backdated rows. Overtaken if they may be stale by now; rows that are already written do no harm."""
    for table, rows in backdated.rows.items():
        store.insert(table, rows)
    if snapshot_versions(store, dataset, backdated.start, backdated.end) != backdated.versions:
        raise Overtaken(f"Another process took or removed snapshots of {dataset} at the same time.")


def _ledger_rows(changes: Commit, provenance: Provenance, base: CommitBase) -> list[LedgerRow]:
    """The ledger rows of the snapshots. The last snapshot counts replaced rows with a time."""
    timed = [rows for rows in changes.replaced.rows.values() if any(name in rows.columns for name in TIMES)]
    frames = [[snapshot.observations] for snapshot in changes.appended]
    frames[-1] += timed
    return [_ledger_row(*each, provenance, base) for each in zip(changes.appended, frames, strict=True)]


def _ledger_row(
    snapshot: Appended, frames: Sequence[pl.DataFrame], provenance: Provenance, base: CommitBase
) -> LedgerRow:
    at = unix_second(snapshot.at)
    counts = {table.name: table.count(rows) for table, rows in snapshot.rows.items()}
    counts |= {name: pieces.height for name, pieces in snapshot.changes.items()}
    times = [frame[name] for frame in frames for name in TIMES if name in frame.columns]
    observed = [second for column in times for second in (column.min(), column.max()) if isinstance(second, int)]
    observed += [at] if any(counts.values()) else []
    fields = {
        "dataset": base.dataset,
        "at": at,
        "kind": provenance.kind,
        "first_observed_at": min(observed, default=at),
        "last_observed_at": max([*observed, at]),
        "rows": sum(counts.values()) + sum(frame.height for frame in frames),
        "source": provenance.origin.spec,
        "version": base.version,
        "simulated": provenance.origin.simulated,
        "tables": [*counts],
        "table_rows": [*counts.values()],
    }
    return LedgerRow(**{**fields, **snapshot.ledger})


class _Writer:
    """Writes the rows of a commit, with the version of its base, unless another process has overtaken it."""

    def __init__(self, store: Store, base: CommitBase, runs: Sequence[LedgerRow], condition: str) -> None:
        """`condition` is the query that checks this: check_runs_unchanged for a commit that appends,
        check_instants_free if it adds to the past, check_instants_complete if it replaces snapshots."""
        self.store = store
        self.base = base
        self.runs = runs
        self._condition = condition
        self._bound: Mapping[str, Any] = {
            "dataset": base.dataset,
            "instants": [run.at for run in runs],
            "runs": base.head.runs if base.head else 0,
            "version": base.version,
            "histories": names_of(base.dataset),
            "left": base.left_count,
        }

    def insert(self, table: str, rows: pl.DataFrame) -> None:
        """Write rows, without `version`. Overtaken if another process was faster."""
        self._insert(table, with_version(rows, self.base.version))

    def require(self) -> None:
        """Overtaken if another process was faster."""
        if not self.store.query(self._condition, **self._bound)[0, 0]:
            raise self._overtaken()

    def complete(self, table: str | None) -> None:
        """List the snapshots in the ledger. `table`, if any, has rows of these snapshots. Overtaken, with nothing
        shown, if another process was faster; OtherShards if the cluster's shards are not the store's."""
        require_shards(self.store)
        conditions = ["check_nothing_added", *(["check_no_later_run"] if table else [])]
        self._insert(LEDGER, ledger_frame(self.runs), *conditions, state=table or "")

    def _insert(self, table: str, rows: pl.DataFrame, *conditions: str, **bound: str) -> None:
        parts = {"count_orphans": named_query("count_orphans", ())}
        condition = " AND ".join(f"({named_query(name, parts)})" for name in (self._condition, *conditions))
        if not self.store.insert_if(table, rows, condition, **self._bound, **bound):
            raise self._overtaken()

    def _overtaken(self) -> Overtaken:
        return Overtaken(f"Another process took snapshots of {self.base.dataset} at the same time.")
