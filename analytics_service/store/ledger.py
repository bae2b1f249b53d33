"""The snapshot ledger: which runs are complete, and so what readers may see."""

import time
from dataclasses import dataclass, field
from datetime import UTC, datetime

import polars as pl

from analytics_service.store.connection import Store

_SCHEMA = {
    "family": pl.String,
    "at": pl.UInt32,
    "kind": pl.String,
    "first_observed_at": pl.UInt32,
    "last_observed_at": pl.UInt32,
    "rows": pl.UInt64,
    "source": pl.String,
    "version": pl.UInt64,
}


@dataclass(frozen=True, slots=True)
class Run:
    """A completed run of a job, a backfill or an import. Instants are unix seconds."""

    family: str
    at: int
    kind: str
    first_observed_at: int
    last_observed_at: int
    rows: int
    source: str
    version: int


@dataclass(frozen=True, slots=True)
class Head:
    """The newest state of a family that readers may see. Instants are unix seconds.

    Equal heads mean equal data: `version` is the greatest of all completed runs, `runs` counts them, and `broken_at` is
    when a run was last heard of that died while it was changing what lies behind `last_observed_at`; 0 without one.
    While a run is doing that, and lives, the head is `rewriting`, and still the same.
    """

    family: str
    at: int
    last_observed_at: int
    version: int
    runs: int
    broken_at: int = 0
    rewriting: bool = field(default=False, compare=False, repr=False)

    @property
    def instant(self) -> datetime:
        """The newest snapshot's instant, aware."""
        return datetime.fromtimestamp(self.at, UTC)


def new_version() -> int:
    """Version of a run that begins to write now: unix milliseconds, which fit the 42 bits that ranks keep for it."""
    return time.time_ns() // 1_000_000


def complete(store: Store, runs: list[Run]) -> None:
    """Make the runs' data visible. Called last, when all their rows are written."""
    columns = {name: [getattr(run, name) for run in runs] for name in _SCHEMA}
    store.insert("snapshot", pl.DataFrame(columns, schema=_SCHEMA))


def completed(store: Store, family: str, start: int, end: int) -> set[int]:
    """Instants in [start, end] whose snapshot a job or a backfill has completed."""
    return set(store.frame("snapshots_between", family=family, start=start, end=end)["at"].to_list())


def completed_before(store: Store, family: str, before: int) -> int | None:
    """The last instant before another whose snapshot a job or a backfill has completed, if there is one."""
    rows = store.frame("snapshot_before", family=family, before=before)
    return int(rows["at"][0]) if rows.height else None


def read_heads(store: Store) -> dict[str, Head]:
    """The newest state of each family, by family.

    Announcements are read first: a run ends in the ledger before its announcement does, so that one which is not
    seen here any more is in the heads.
    """
    broken_at: dict[str, int] = {}
    rewriting: set[str] = set()
    for family, heard_at, dead in store.frame("publications").iter_rows():
        if dead:
            broken_at[family] = max(heard_at, broken_at.get(family, 0))
        else:
            rewriting.add(family)
    return {
        row["family"]: Head(**row, broken_at=broken_at.get(row["family"], 0), rewriting=row["family"] in rewriting)
        for row in store.frame("snapshot_heads").iter_rows(named=True)
    }


def oldest_change(store: Store, since: Head, head: Head) -> int:
    """The oldest instant (unix second) whose observations may differ between two heads of a family; 0 when unsure.

    Runs that came since a head have greater versions, but for one that began to write before another and ended after
    it: then the count of them is another, and what it wrote is not known.
    """
    runs, oldest = store.frame("runs_since", family=head.family, after=since.version, until=head.version).row(0)
    return int(oldest) if runs == head.runs - since.runs else 0
