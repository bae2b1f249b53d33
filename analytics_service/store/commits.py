"""Runs of jobs and backfills: their start, and how their rows get into the store.

A run is identified by its instant and its version. Its rows in tables with both count once the ledger lists the run,
which is its last step. So a run that dies half-way shows nothing, and two runs for the same instant are never mixed. A
run that has been overtaken writes nothing more: ClickHouse itself checks the ledger as it inserts rows.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from analytics_service.clickhouse.columns import versioned
from analytics_service.clickhouse.connection import Store
from analytics_service.clickhouse.queries import named_query
from analytics_service.errors import SnapshotRefused, StoreUnavailable
from analytics_service.market.instants import instant, shown
from analytics_service.store.datasets.histories import names_of
from analytics_service.store.datasets.observations import OBSERVATIONS, with_known
from analytics_service.store.ledger import (
    LEDGER,
    MOST_AHEAD,
    Head,
    Run,
    ledger_frame,
    present,
    record_rewrite,
)
from analytics_service.store.ownership import Claim
from analytics_service.store.rollups import close_cells
from analytics_service.store.schema import Applied, require_all_applied, shipped, unapplied
from analytics_service.store.shards import require_shards

# The queries that `run_begins` is made of, and a version greater than that of any run.
_PARTS = ("family_state", "claim", "applied_migrations", "new_version", "left_behind")
_NO_VERSION = 2**64 - 1


class Overtaken(StoreUnavailable):
    """Another process has completed the snapshots that a run was to write. Nothing that the run wrote is shown."""


@dataclass(frozen=True, slots=True)
class Beginning:
    """The store at the start of a run of a family: the completed instants (unix seconds), the family's newest state
    without its count of rewrites, whose data the store accepts (rule 8.7), and the version of the run.

    `present` is that state without snapshots from the future (rule 8.16), and `ahead` the first of these, 0 if there is
    none; ClickHouse's clock shows `now`.
    `left` is the oldest observation that a run which died has left in the day before that state, None if there is none.
    `left_count` counts these observations. Cells do not include them yet.
    """

    family: str
    completed: frozenset[int]
    head: Head | None
    claimed: Claim
    version: int
    now: int
    present: Head | None
    ahead: int
    left: int | None = None
    left_count: int = 0


def begin(store: Store, family: str, start: int, end: int) -> Beginning:
    """Read the store at the start of a run for instants in [start, end] (unix seconds). SchemaError as by rule 8.14.
    SnapshotRefused for instants from the future (rule 8.16)."""
    parts = {name: named_query(name, ()) for name in _PARTS}
    parameters = {"family": family, "histories": names_of(family), "version": _NO_VERSION}
    row = store.frame("run_begins", parts, start=start, end=end, **parameters).row(0, named=True)
    applied = [Applied(*fields.values()) for fields in row["migrations"]]
    require_all_applied(unapplied(applied, shipped()))
    require_shards(store)
    if end > row["now"] + MOST_AHEAD:
        raise SnapshotRefused(
            f"The snapshot of {family} as of {shown(instant(end))} lies ahead of ClickHouse's clock, which shows "
            f"{shown(instant(row['now']))}. Set right the clock that is wrong."
        )
    heads = [Head(family, *fields.values()) for fields in row["heads"]]
    claimed = Claim(*row["claims"][0].values()) if row["claims"] else Claim()
    head, now = heads[0] if heads else None, row["now"]
    now_shown = present(store, head, now) if head else (None, 0)
    completed = frozenset(row["completed"])
    return Beginning(family, completed, head, claimed, row["version"], now, *now_shown, *row["left"].values())


class RunWriter:
    """Writes the rows of a run, with the version of its `beginning`, as long as no other process has overtaken it."""

    def __init__(self, store: Store, beginning: Beginning, runs: Sequence[Run], condition: str) -> None:
        """`condition` is the query that tells whether no other process has: runs_unchanged for a run that appends,
        instants_free for one that adds to the past, instants_taken for one that replaces snapshots."""
        self.store = store
        self.beginning = beginning
        self.runs = runs
        self._condition = condition
        self._bound: Mapping[str, Any] = {
            "family": beginning.family,
            "instants": [run.at for run in runs],
            "runs": beginning.head.runs if beginning.head else 0,
            "version": beginning.version,
            "histories": names_of(beginning.family),
            "left": beginning.left_count,
        }

    @property
    def first(self) -> int:
        """The oldest observation of the run, unix seconds."""
        return min(run.first_observed_at for run in self.runs)

    @property
    def newest(self) -> int:
        """The newest observation of the family once the run is complete, unix seconds."""
        return max(self.reach, *(run.last_observed_at for run in self.runs))

    @property
    def reach(self) -> int:
        """The newest observation of the family before the run, unix seconds. Nobody has been shown later rows."""
        head = self.beginning.head
        return head.last_observed_at if head else max(self.first - 1, 0)

    def insert(self, table: str, rows: pl.DataFrame) -> None:
        """Write rows, without `version`, into a table. Overtaken when another process was faster."""
        self._insert(table, versioned(rows, self.beginning.version))

    def require(self) -> None:
        """Overtaken when another process was faster."""
        if not self.store.frame(self._condition, **self._bound)[0, 0]:
            raise self._overtaken()

    def add(self, observations: pl.DataFrame) -> None:
        """Write observations, and close the cells that end with them. Overtaken when another process was faster.

        Observations may be older than what readers have seen, if the oracle lags or if a run that died has left them.
        Then the cells since are computed again, and the run counts as a finished rewrite.
        """
        self.insert(OBSERVATIONS, with_known(observations))
        close_cells(self.store, names_of(self.beginning.family), min(self.reach, self.first - 1), self.newest)
        if self.first <= self.reach:
            record_rewrite(self.store, [self.beginning.family], self.beginning.version, finished=1)

    def complete(self, table: str | None) -> None:
        """List the run. `table` has the other rows of its snapshots, if there are any. Overtaken, with nothing shown,
        when another process was faster; OtherShards when the cluster's are not those of the store."""
        require_shards(self.store)
        conditions = ["nothing_added", *(["not_begun_later"] if table else [])]
        self._insert(LEDGER, ledger_frame(self.runs), *conditions, state=table or "")

    def _insert(self, table: str, rows: pl.DataFrame, *conditions: str, **bound: str) -> None:
        parts = {"left_behind": named_query("left_behind", ())}
        condition = " AND ".join(f"({named_query(name, parts)})" for name in (self._condition, *conditions))
        if not self.store.insert_if(table, rows, condition, **self._bound, **bound):
            raise self._overtaken()

    def _overtaken(self) -> Overtaken:
        return Overtaken(f"Another process took snapshots of {self.beginning.family} at the same time.")
