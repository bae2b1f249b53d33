"""Scheduled runs in the ledger."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from analytics_service.market.instants import DAY, NANOSECONDS
from analytics_service.store.connection import Store


@dataclass(frozen=True, slots=True)
class ScheduledRun:
    """The newest scheduled snapshot of a family.

    `at` is its instant in unix seconds. `lag` is the time from that instant to the start of its run, in seconds.
    `missing` counts the earlier instants without a snapshot.
    """

    family: str
    at: int
    rows: int
    lag: float
    missing: int


def scheduled_runs(store: Store, intervals: Mapping[str, int], now: int) -> Sequence[ScheduledRun]:
    """The newest run of each family within the day before a unix second. `intervals` are in seconds, by family."""
    if not intervals:
        return []
    rows = store.frame("scheduled_runs", families=list(intervals), intervals=list(intervals.values()), since=now - DAY)
    return [
        ScheduledRun(
            family=row["family"],
            at=row["newest"],
            rows=row["newest_rows"],
            lag=row["newest_version"] / NANOSECONDS - row["newest"],
            missing=row["missing"],
        )
        for row in rows.sort("family").iter_rows(named=True)
    ]
