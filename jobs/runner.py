"""Runs a job for an instant, or for all instants of a range that are not complete.

Complete snapshots are left alone, unless an earlier version stored less of them.
"""

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from enum import StrEnum
from functools import partial
from typing import TypeVar

from analytics_service.errors import SnapshotRefused, SourceError, StoreUnavailable
from analytics_service.market.instants import instant, multiples, unix_second
from analytics_service.sources.base import Source
from analytics_service.sources.choice import origin_of
from analytics_service.store.connection import Store
from analytics_service.store.ledger import completed, new_version, read_state
from analytics_service.store.retries import ONCE, Retries
from analytics_service.store.rewrite import complete_appends
from jobs.registry import JOBS, Job
from jobs.snapshot import Batch, Taking, commit

log = logging.getLogger(__name__)

_T = TypeVar("_T")

# How often snapshots are collected, at most, while other schedulers complete some of them.
_ATTEMPTS = 5
# Instants of a backfill that are collected and written together.
_CHUNK = 500
# Instants of one backfill, which are listed before it begins: almost four years of minutes, in some hundred MB.
_MOST_INSTANTS = 2_000_000


class Outcome(StrEnum):
    """The outcome of a run for one instant."""

    DONE = "done"
    ALREADY_DONE = "already done"
    SUPERSEDED = "not taken, because there is a later snapshot, and earlier ones cannot be added"


def run_once(job: Job, source: Source, store: Store, at: datetime, retries: Retries = ONCE) -> Outcome:
    """Take the job's snapshot of the instant's whole second, unless it is complete.

    A job that keeps no history takes no snapshot older than the newest one, which no reader would see. StoreUnavailable
    and SourceError are retried; the last one is raised.
    """
    second = at.replace(microsecond=0)

    def attempt() -> Outcome:
        if not job.history and _is_past(store, job.family, second):
            return Outcome.SUPERSEDED
        return Outcome.DONE if _take(job, source, store, [second], "job") else Outcome.ALREADY_DONE

    policy = replace(retries, errors=(StoreUnavailable, SourceError), on_retry=_log_retry)
    return policy(lambda: _until_alone(attempt))


def backfill(
    job: Job,
    source: Source,
    store: Store,
    instants: Sequence[datetime],
    progress: Callable[[int], None] = lambda done: None,
) -> int:
    """Take the snapshots that are missing or outdated of instants (whole seconds, oldest first); return how many were.

    `progress` is called with the number of instants done since its last call. A backfill that was interrupted continues
    where it stopped when it is run again. SnapshotRefused for a job that keeps no history.
    """
    require_history(job)
    written = 0
    for first in range(0, len(instants), _CHUNK):
        chunk = instants[first : first + _CHUNK]
        written += _until_alone(partial(_take, job, source, store, chunk, "backfill"))
        progress(len(chunk))
    return written


def instants_to_fill(job: Job, store: Store, start: datetime, end: datetime, every: timedelta) -> list[datetime]:
    """The instants of a backfill, oldest first: the multiples of `every` in [start, end], and outdated snapshots.

    SnapshotRefused for more than two million.
    """
    count = (end - start) // every
    if count > _MOST_INSTANTS:
        raise SnapshotRefused(
            f"From --start to --end there are about {count:,} snapshots {every} apart, and one backfill takes at most "
            f"{_MOST_INSTANTS:,}. Choose a greater distance with --every, or fill a part of the range at a time."
        )
    outdated = job.outdated(store, unix_second(start), unix_second(end))
    return sorted({*multiples(start, end, every), *map(instant, outdated)})


def require_history(job: Job) -> None:
    """SnapshotRefused for a job that keeps no history."""
    if not job.history:
        raise SnapshotRefused(
            f"{job.name} cannot be backfilled: they are stored as changes from one snapshot to the next, so no "
            f"snapshot can be added before the newest. {_with_history()} can be."
        )


class _Overtaken(StoreUnavailable):
    """Another scheduler has completed snapshots since these were collected."""


def _until_alone(act: Callable[[], _T]) -> _T:
    """The result of taking snapshots. When another scheduler is faster, what is left to take is collected again."""
    for _ in range(_ATTEMPTS - 1):
        try:
            return act()
        except _Overtaken as overtaken:
            log.debug("%s", overtaken)
    return act()


def _take(job: Job, source: Source, store: Store, instants: Sequence[datetime], kind: str) -> int:
    """Collect and commit those of the instants, oldest first, that are missing or outdated, and return how many.

    _Overtaken, with nothing written, when another scheduler has completed some of them meanwhile; for a job that stores
    changes, also when it has completed any other snapshot.
    """
    complete_appends(store, job.family)
    start, end = unix_second(instants[0]), unix_second(instants[-1])
    known = completed(store, job.family, start, end)
    done = known - job.outdated(store, start, end) if known else known
    missing = [at for at in instants if unix_second(at) not in done]
    if not missing:
        return 0
    head = None if job.history else read_state(store, job.family)

    def require_alone() -> None:
        taken = completed(store, job.family, start, end) - known
        is_changed = not job.history and read_state(store, job.family) != head
        if is_changed or not taken.isdisjoint(map(unix_second, missing)):
            raise _Overtaken(f"Another scheduler took snapshots of {job.family} at the same time.")

    snapshots = job.collect(Batch(job.family, source, store, missing))
    commit(store, snapshots, Taking(job.family, kind, origin_of(source)), new_version(store), require_alone)
    return len(missing)


def _is_past(store: Store, family: str, at: datetime) -> bool:
    head = read_state(store, family)
    return head is not None and at < head.instant


def _with_history() -> str:
    """The jobs that can be backfilled, as the beginning of a sentence."""
    *names, last = [job.name for job in JOBS.values() if job.history]
    return f"{', '.join(names)} and {last}".capitalize()


def _log_retry(error: BaseException, pause: float) -> None:
    log.warning("%s Trying again in %d s.", error, pause)
