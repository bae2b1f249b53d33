"""Runs of jobs and backfills: what one knows when it begins, and how its rows get into the store.

A run is told by its instant and its version. Its rows in tables with both count once the ledger lists it, which is the
last thing it does. So one that dies half-way shows nothing, and two runs for one instant are never mixed. A run that
another one has overtaken writes nothing more: ClickHouse itself looks at the ledger as it takes rows.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from analytics_service.errors import StoreUnavailable
from analytics_service.store.applied import Applied, lacking, require_none_lacking, shipped
from analytics_service.store.cells import close_cells
from analytics_service.store.columns import versioned
from analytics_service.store.connection import Store
from analytics_service.store.histories import names_of
from analytics_service.store.ledger import LEDGER, Head, Run, ledger_frame, tell_of_rewrite
from analytics_service.store.observations import OBSERVATIONS
from analytics_service.store.sql import named_query

_INSTANTS = "(SELECT toDateTime(arrayJoin({instants:Array(UInt32)}), 'UTC'))"
# Nobody else has completed one of the instants: for rewrites, beside which others may complete later ones.
_NOT_COMPLETED = (
    "(SELECT count() FROM snapshot WHERE family = {family:String} AND kind IN ('job', 'backfill') "
    f"AND at IN {_INSTANTS}) = 0"
)
# No other run of the family has been completed since this one began: what it adds goes on where it knows the end to be.
_NOTHING_COMPLETED = "(SELECT sum(runs) FROM snapshot_head WHERE family = {family:String}) = {runs:UInt64}"
# No later run has begun to write the same snapshot, whose observations would hold in place of this one's.
_NOT_BEGUN = f" AND (SELECT count() FROM %s WHERE observed_at IN {_INSTANTS} AND version > {{version:UInt64}}) = 0"
# No earlier run has written observations before the head since this one began: if it has died, cells would lack them.
_NOTHING_ADDED = " AND (SELECT rows FROM (%s)) <= {left:UInt64}"
# The queries that `run_begins` is made of, and a version after all of those that runs have.
_PARTS = ("family_state", "claim", "applied_migrations", "new_version", "left_behind")
_NO_VERSION = 2**64 - 1


class Overtaken(StoreUnavailable):
    """Another process has completed what a run was to write. Nothing that it wrote is shown."""


@dataclass(frozen=True, slots=True)
class Beginning:
    """What a run of a family knows when it begins: which instants (unix seconds) are complete, the family's newest
    state without its count of rewrites, whose data the store takes (rule 8.7), and the version of the run.

    `left` is the oldest observation, of the day before that state, of a run that has died: cells do not tell of it yet.
    None when there is none. `left_count` is how many there are.
    """

    family: str
    completed: frozenset[int]
    head: Head | None
    side: str | None
    version: int
    left: int | None = None
    left_count: int = 0


def begin(store: Store, family: str, start: int, end: int) -> Beginning:
    """Look what is there before a run of a family for instants in [start, end] (unix seconds).

    SchemaError if the schema is not that of this version (rule 8.14).
    """
    parts = {name: named_query(name, ()) for name in _PARTS}
    asked = {"family": family, "histories": names_of(family), "version": _NO_VERSION}
    row = store.frame("run_begins", parts, start=start, end=end, **asked).row(0, named=True)
    require_none_lacking(lacking([Applied(*one.values()) for one in row["migrations"]], shipped()))
    heads = [Head(family, *one.values()) for one in row["heads"]]
    side = row["sides"][0] if row["sides"] else None
    head = heads[0] if heads else None
    return Beginning(family, frozenset(row["completed"]), head, side, row["version"], *row["left"].values())


class RunWriter:
    """Writes the rows of one run, as long as no other process has overtaken it.

    The run has the version of its `beginning`, and a row of the ledger for each of its instants.
    """

    def __init__(self, store: Store, beginning: Beginning, runs: Sequence[Run], *, is_rewrite: bool) -> None:
        self.store = store
        self.beginning = beginning
        self.runs = runs
        self._condition = _NOT_COMPLETED if is_rewrite else _NOTHING_COMPLETED
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
        """The newest observation of the family before the run, unix seconds; what is after it was shown to nobody."""
        head = self.beginning.head
        return head.last_observed_at if head else max(self.first - 1, 0)

    def insert(self, table: str, rows: pl.DataFrame) -> None:
        """Write rows, without `version`, of a table. Overtaken when the run is."""
        self._insert(table, versioned(rows, self.beginning.version), self._condition)

    def append(self, observations: pl.DataFrame, table: str | None) -> None:
        """Write observations, close the cells that end with them, and list the run. `table` has the other rows of its
        snapshots, if there are any. Overtaken, with nothing shown, when the run is.

        Some may be older than what readers have seen: those of an oracle that lags, or what a run that died has left.
        The cells since then are computed again, and the run counts as a rewrite that has finished.
        """
        self.insert(OBSERVATIONS, observations)
        close_cells(self.store, names_of(self.beginning.family), min(self.reach, self.first - 1), self.newest)
        if self.first <= self.reach:
            tell_of_rewrite(self.store, [self.beginning.family], self.beginning.version, finished=1)
        condition = self._condition + _NOTHING_ADDED % named_query("left_behind", ())
        condition += _NOT_BEGUN % table if table else ""
        self._insert(LEDGER, ledger_frame(self.runs), condition)

    def _insert(self, table: str, rows: pl.DataFrame, condition: str) -> None:
        if not self.store.insert_if(table, rows, condition, **self._bound):
            raise Overtaken(f"Another process took snapshots of {self.beginning.family} at the same time.")
