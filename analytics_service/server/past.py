"""The snapshots that `up` takes from a source: the newest and a backfill before it serves, past positions meanwhile."""

import logging
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from functools import partial

import click

from analytics_service.clickhouse.connection import Store
from analytics_service.clickhouse.errors import ANY_FAILURE
from analytics_service.concurrency import beside
from analytics_service.config.settings import Settings
from analytics_service.errors import (
    AccessDenied,
    AnalyticsError,
    CorrectionInProgress,
    DiskFull,
    SchemaError,
    SourceError,
    SourceMismatch,
    StoreUnavailable,
)
from analytics_service.logs import is_json
from analytics_service.market.instants import floor_to, multiples_between
from analytics_service.sources.base import Source
from analytics_service.store.datasets.histories import names_of
from analytics_service.store.ledger import read_heads
from jobs.registry import JOBS, Job
from jobs.runner import backfill, take_snapshot

log = logging.getLogger(__name__)

_HOUR, _DAY = timedelta(hours=1), timedelta(days=1)
# The dataset whose past is filled in the background, because that takes long.
LATER = "positions"
# Days with hourly state: for positions, the range that the page shows at first.
_RECENT = {LATER: 7}
# Seconds that the end waits for the background thread.
_LAST_SECONDS = 5.0
# Seconds before the next attempt while another correction holds the write lock.
_PAUSE_SECONDS = 10.0
# Errors that the next dataset would meet, too. On a full disk, stored data is still served.
_FATAL = (StoreUnavailable, AccessDenied, SchemaError, SourceMismatch)


def past_instants(source: Source, job: Job, now: datetime) -> list[datetime]:
    """The instants whose snapshots `up` takes, oldest first: each hour of the source's history.

    Prices also have each earlier midnight since the source began. Positions, the protocol token and routes have each
    midnight of the history, and each hour of its last days: seven for positions, two for the others.
    """
    if source.history is None:
        return []
    start, end = now - source.history, now + timedelta.resolution
    if job.name == LATER or not names_of(job.dataset):
        recent = now - _RECENT.get(job.name, 2) * _DAY
        return sorted({*multiples_between(start, end, _DAY), *multiples_between(max(start, recent), end, _HOUR)})
    hours = multiples_between(start, end, _HOUR)
    if job.name != "prices" or source.since is None:
        return hours
    return sorted({*multiples_between(source.since, start, _DAY), *hours})


def fill_past(source: Source, store: Store, job: Job, now: datetime) -> None:
    """Take the missing snapshots of the past."""
    instants = past_instants(source, job, now)
    with click.progressbar(
        length=len(instants), label=f"History of {job.name}", hidden=is_json() or not instants
    ) as bar:
        backfill(job, source, store, instants, progress=bar.update)


@contextmanager
def fill_past_beside(settings: Settings, source: Source) -> Iterator[None]:
    """Fill in past positions in a thread during the block. The next start takes the rest."""

    def fill_positions(stop: threading.Event) -> None:
        while not stop.is_set():
            try:
                with closing(Store(settings, author="analytics-service up")) as store:
                    fill_past(source, store, JOBS[LATER], datetime.now(UTC))
                return
            except CorrectionInProgress as error:
                log.info("%s: its history will be filled later. %s", LATER, error)
                stop.wait(_PAUSE_SECONDS)
            except ANY_FAILURE as error:
                if not stop.is_set():
                    log.error("%s: its history could not be filled. %s", LATER, _reason_of(error))
                return

    with beside("past", fill_positions, _LAST_SECONDS) as stop:
        try:
            yield
        finally:
            stop.set()
            source.hurry()


def _reason_of(error: BaseException) -> str:
    """The reason for a failure, in words for operators."""
    return str(error) if isinstance(error, AnalyticsError) else f"{type(error).__name__}: {error}."


def take_first_snapshots(settings: Settings, source: Source, store: Store) -> None:
    """Backfill the source's history, except for positions, and take a current snapshot of every dataset.

    If the source cannot provide a dataset now, the scheduler tries again, and the other datasets are served.
    SourceError if no dataset can be served. If the source may hang, has no cheap history and the store has data,
    nothing is taken here, so that serving does not wait; the scheduler begins with current snapshots, too.
    """
    if source.may_hang and source.history is None and read_heads(store):
        return
    failed: list[tuple[str, Exception]] = []

    def take_now(job: Job, now: datetime) -> None:
        take_snapshot(job, source, store, floor_to(now, timedelta(seconds=job.interval(settings))))

    # History comes first, so that the scheduler continues soon after the current snapshots and misses no instant.
    for failure, act, jobs in (
        ("its history could not be filled", partial(fill_past, source, store), JOBS.keys() - {LATER}),
        ("there is no current snapshot; the scheduler keeps trying", take_now, JOBS.keys()),
    ):
        now = datetime.now(UTC)
        for job in [job for job in JOBS.values() if job.name in jobs]:
            try:
                act(job, now)
            except Exception as error:
                if isinstance(error, _FATAL) and not (isinstance(error, DiskFull) and read_heads(store)):
                    raise
                log.debug("%s: %s", job.name, failure, exc_info=error)
                failed.append((f"{job.name}: {failure}.", error))
    is_served = not failed or read_heads(store)
    for failure, cause in failed:
        if not is_served:
            raise SourceError(f"{failure} {_reason_of(cause)}") from cause
        log.error("%s %s", failure, _reason_of(cause))
