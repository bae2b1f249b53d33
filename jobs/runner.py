"""Runs a job for an instant, or for all instants of a range that are not complete. What is complete is left alone."""

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import StrEnum

from analytics_service.errors import SnapshotRefused, SourceError, StoreUnavailable
from analytics_service.sources.base import Source
from analytics_service.store.connection import Store
from analytics_service.store.ledger import completed, new_version, read_heads
from jobs.registry import Job
from jobs.snapshot import commit

log = logging.getLogger(__name__)

EPOCH = datetime.fromtimestamp(0, UTC)
# Instants of a backfill that are collected and written together.
_CHUNK = 500
_LONGEST_PAUSE = 30.0


class Outcome(StrEnum):
    """What a run for one instant came to."""

    DONE = "done"
    ALREADY_DONE = "already done"
    SUPERSEDED = "a later snapshot is there already"


@dataclass(frozen=True, slots=True)
class Patience:
    """For how many seconds a run tries again while its source or ClickHouse cannot answer; 0 is once.

    `wait` pauses for seconds and answers whether to stop trying, as `threading.Event.wait` does.
    """

    seconds: float = 0.0
    wait: Callable[[float], bool] = field(default_factory=lambda: threading.Event().wait)
    clock: Callable[[], float] = time.monotonic


def run_once(job: Job, source: Source, store: Store, at: datetime, patience: Patience | None = None) -> Outcome:
    """Take the job's snapshot as of the instant's whole second, unless it is complete.

    Of a job that keeps no history only a newest snapshot is taken: nobody would read an older one.
    Without patience the first StoreUnavailable or SourceError is raised; with it the last one.
    """
    second = at.replace(microsecond=0)

    def attempt() -> Outcome:
        if not job.history and _is_past(store, job.family, second):
            return Outcome.SUPERSEDED
        return Outcome.DONE if _take(job, source, store, [second], "job") else Outcome.ALREADY_DONE

    return _patiently(attempt, patience or Patience())


def backfill(
    job: Job,
    source: Source,
    store: Store,
    start: datetime,
    end: datetime,
    every: timedelta,
    progress: Callable[[int], None],
) -> int:
    """Take the snapshots that are missing at multiples of `every` in [start, end]; answers how many were.

    `progress` hears how many instants were dealt with since it was last called. A broken-off backfill
    goes on where it was when it is run again. SnapshotRefused for a job that keeps no history.
    """
    if not job.history:
        raise SnapshotRefused(
            f"{job.name} cannot be backfilled: only its newest state is asked for. Prices, rates and loans can be."
        )
    wanted = instants(start, end, every)
    written = 0
    for first in range(0, len(wanted), _CHUNK):
        chunk = wanted[first : first + _CHUNK]
        written += _take(job, source, store, chunk, "backfill")
        progress(len(chunk))
    return written


def instants(start: datetime, end: datetime, every: timedelta) -> list[datetime]:
    """Multiples of `every` since the epoch that lie in [start, end], in UTC, oldest first."""
    first, last = -((EPOCH - start) // every), (end - EPOCH) // every
    return [EPOCH + every * number for number in range(first, last + 1)]


def _take(job: Job, source: Source, store: Store, wanted: list[datetime], kind: str) -> int:
    """Collect and commit those of the instants, oldest first, that are not complete; answers how many."""
    done = completed(store, job.family, int(wanted[0].timestamp()), int(wanted[-1].timestamp()))
    missing = [at for at in wanted if int(at.timestamp()) not in done]
    if missing:
        version = new_version()
        snapshots = job.collect(source, store, missing, version)
        commit(store, snapshots, job.family, kind, source.spec, version)
    return len(missing)


def _is_past(store: Store, family: str, at: datetime) -> bool:
    head = read_heads(store).get(family)
    return head is not None and at < head.instant


def _patiently(attempt: Callable[[], Outcome], patience: Patience) -> Outcome:
    deadline = patience.clock() + patience.seconds
    pause = 1.0
    while True:
        try:
            return attempt()
        except (StoreUnavailable, SourceError) as error:
            if patience.clock() + pause > deadline:
                raise
            log.warning("%s Trying again in %d s.", error, pause)
            if patience.wait(pause):
                raise
        pause = min(2 * pause, _LONGEST_PAUSE)
