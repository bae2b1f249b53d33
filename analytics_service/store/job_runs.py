"""Reports of schedulers about each job, for operators, and a count of missed snapshots."""

import os
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from analytics_service.clickhouse.connection import Store

JOB_RUNS = "job_run"
# In the order of JobRun's fields.
_SCHEMA = {
    "dataset": pl.String,
    "scheduler": pl.String,
    "interval_seconds": pl.UInt32,
    "next_at": pl.UInt32,
    "failed_at": pl.UInt32,
    "error": pl.String,
    "ran_at": pl.UInt32,
    "outcome": pl.String,
    "duration_ms": pl.UInt32,
}
# A scheduler counts as gone when its report is this many seconds late.
_LATE = 60
# The end of a message about a scheduler that has to be stopped.
FORGOTTEN = "A scheduler that was killed counts as running for some minutes."


@dataclass(frozen=True, slots=True)
class JobRun:
    """A scheduler's report about a dataset. Instants are unix seconds.

    `interval` is in seconds. `next_at` is None once the scheduler has stopped. `failed_at` is the instant of the last
    snapshot that failed, and `error` says why. `ran_at` is the instant of the last snapshot that was attempted,
    `outcome` a word for its result, and `duration_ms` its duration.
    """

    dataset: str
    scheduler: str
    interval: int
    next_at: int | None
    failed_at: int | None = None
    error: str = ""
    ran_at: int | None = None
    outcome: str = ""
    duration_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Scheduler:
    """A scheduler that ran within the last week. Its name is host:pid."""

    name: str
    heard_seconds_ago: int
    alive: bool

    def __str__(self) -> str:
        return f"The scheduler {self.name} writes to the store; it last reported {self.heard_seconds_ago} s ago."


def scheduler_name() -> str:
    """host:pid of this process."""
    return f"{socket.gethostname()}:{os.getpid()}"


def record_job_run(store: Store, runs: Sequence[JobRun]) -> None:
    store.insert(JOB_RUNS, pl.DataFrame(runs, schema=_SCHEMA))


def read_runs(store: Store) -> tuple[list[JobRun], list[Scheduler]]:
    """The last reports of all schedulers of the last week, newest first, and the schedulers themselves."""
    rows = list(store.query("read_job_runs").iter_rows(named=True))
    runs = [JobRun(*(row[name] for name in _SCHEMA)) for row in rows]
    by_scheduler: dict[str, list[dict[str, int | None]]] = {}
    for row in rows:
        by_scheduler.setdefault(row["scheduler"], []).append(row)
    return runs, [_scheduler(name, reports) for name, reports in by_scheduler.items()]


def recorded_intervals(runs: Sequence[JobRun], schedulers: Sequence[Scheduler]) -> Mapping[str, int]:
    """Seconds between snapshots of each dataset, from the result of `read_runs`. A running scheduler
    wins, else the last that ran."""
    alive = {scheduler.name for scheduler in schedulers if scheduler.alive}
    running = [run for run in runs if run.scheduler in alive]
    # Reports are newest first, and the last entry of a dict wins.
    return {run.dataset: run.interval for run in reversed([*running, *runs])}


def running_scheduler(store: Store) -> Scheduler | None:
    """A scheduler that writes to the store, if any. A killed scheduler counts for some minutes."""
    return next((scheduler for scheduler in read_runs(store)[1] if scheduler.alive), None)


def _scheduler(name: str, reports: list[dict[str, int | None]]) -> Scheduler:
    """A scheduler is alive if it has a next job, and its last report is at most two intervals of its most frequent job
    plus _LATE old."""
    age = min(row["age"] or 0 for row in reports)
    shortest_interval = min(row["interval_seconds"] or 0 for row in reports)
    is_stopped = all(row["next_at"] is None for row in reports)
    return Scheduler(name, age, not is_stopped and age <= 2 * shortest_interval + _LATE)


def missing_runs(store: Store, intervals: Mapping[str, int], start: int) -> Mapping[str, int]:
    """The number of missed snapshots by dataset, from `start` (unix second) to the newest snapshot. `intervals` are in
    seconds, by dataset."""
    if not intervals:
        return {}
    rows = store.query("count_missing_runs", datasets=list(intervals), intervals=list(intervals.values()), start=start)
    return dict(rows.iter_rows())
