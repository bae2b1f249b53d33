"""The schedulers' reports for operators about each job, and scheduled runs in the ledger."""

import os
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from analytics_service.clickhouse.connection import Store

JOB_RUNS = "job_run"
# In the order of the fields of JobRun.
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
# Seconds that a scheduler's report may be late before it counts as gone.
_LATE = 60
# The end of a message about a scheduler that has to be stopped.
FORGOTTEN = "One that was killed counts as running for some minutes."


@dataclass(frozen=True, slots=True)
class JobRun:
    """A scheduler's report about a dataset. Instants are unix seconds.

    `interval` is the time between snapshots in seconds. `next_at` is None once the scheduler has stopped. `failed_at`
    is the instant of the last snapshot that could not be taken, and `error` says why. `ran_at` is the instant of the
    last run's snapshot, `outcome` a word for its result, and `duration_ms` its duration in milliseconds.
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
    """A scheduler that was running within the last week. Its name has the host and the process id."""

    name: str
    heard_seconds_ago: int
    alive: bool

    def __str__(self) -> str:
        return f"The scheduler {self.name} writes to the store; it last reported {self.heard_seconds_ago} s ago."


def scheduler_name() -> str:
    """The name of a scheduler in this process."""
    return f"{socket.gethostname()}:{os.getpid()}"


def record_job_run(store: Store, runs: Sequence[JobRun]) -> None:
    """Write reports of a scheduler."""
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
    """Seconds between snapshots of each dataset, from the result of `read_runs`. If there are several schedulers, a
    running scheduler counts, or else the last one that ran."""
    alive = {scheduler.name for scheduler in schedulers if scheduler.alive}
    running = [run for run in runs if run.scheduler in alive]
    # Runs are sorted newest first, and the last entry of a dataset wins.
    return {run.dataset: run.interval for run in reversed([*running, *runs])}


def running_scheduler(store: Store) -> Scheduler | None:
    """A scheduler that writes to the store, if any. A killed scheduler still counts for some minutes."""
    return next((scheduler for scheduler in read_runs(store)[1] if scheduler.alive), None)


def _scheduler(name: str, reports: list[dict[str, int | None]]) -> Scheduler:
    """A scheduler is alive if it has a next run, and its last report is not older than two intervals of its most
    frequent job plus _LATE."""
    age = min(row["age"] or 0 for row in reports)
    shortest_interval = min(row["interval_seconds"] or 0 for row in reports)
    is_stopped = all(row["next_at"] is None for row in reports)
    return Scheduler(name, age, not is_stopped and age <= 2 * shortest_interval + _LATE)


def missing_runs(store: Store, intervals: Mapping[str, int], start: int) -> Mapping[str, int]:
    """The number of scheduled instants since a unix second, up to the newest, without a snapshot, by dataset.

    `intervals` are in seconds, by dataset.
    """
    if not intervals:
        return {}
    rows = store.query("count_missing_runs", datasets=list(intervals), intervals=list(intervals.values()), start=start)
    return dict(rows.iter_rows())
