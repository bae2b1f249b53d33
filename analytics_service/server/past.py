"""What `up` takes from a source: before it serves, a first snapshot and histories; the past of positions meanwhile."""

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
# A dataset that nothing waits for, and whose past takes long.
LATER = "positions"
# Days of which state is known by the hour: for positions, the range that the page shows at first.
_RECENT = {LATER: 7}
# Seconds for which the end waits for that.
_LAST_SECONDS = 5.0
# Seconds until what another correction has kept from being filled is tried again.
_PAUSE_SECONDS = 10.0
# Errors that the next dataset would meet, too. A full disk keeps nobody from data that is there.
_FATAL = (StoreUnavailable, AccessDenied, SchemaError, SourceMismatch)


def past_instants(source: Source, job: Job, now: datetime) -> list[datetime]:
    """The instants, oldest first, whose snapshots `up` takes: each hour of the source's history.

    For prices also each midnight before, since the source's beginning. For positions, the protocol token and routes
    each midnight of that history, and each hour of its last days: seven for positions, two for the others.
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
    """Take the snapshots of the past that are not there."""
    instants = past_instants(source, job, now)
    with click.progressbar(
        length=len(instants), label=f"History of {job.name}", hidden=is_json() or not instants
    ) as bar:
        backfill(job, source, store, instants, progress=bar.update)


@contextmanager
def fill_past_beside(settings: Settings, source: Source) -> Iterator[None]:
    """Fill in the past of positions in a thread, for the duration of the block. What is left at its end comes with the
    next start."""

    def fill_positions(stop: threading.Event) -> None:
        while not stop.is_set():
            try:
                with closing(Store(settings, author="analytics-service up")) as store:
                    fill_past(source, store, JOBS[LATER], datetime.now(UTC))
                return
            except CorrectionInProgress as error:
                log.info("%s: its history is filled later. %s", LATER, error)
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
    """Why a source's data could not be taken, in words for operators."""
    return str(error) if isinstance(error, AnalyticsError) else f"{type(error).__name__}: {error}."


def take_first_snapshots(settings: Settings, source: Source, store: Store) -> None:
    """Take a first snapshot of every dataset, and fill in history if it is cheap for the source, but that of positions.

    If the source cannot provide a dataset now, the scheduler tries again, and the other datasets are served.
    SourceError if no dataset can be served. A source that may hang keeps nobody from data that is there, unless its
    history is said to be cheap: the scheduler begins with snapshots of now, too.
    """
    if source.may_hang and source.history is None and read_heads(store):
        return
    failed: list[tuple[str, Exception]] = []

    def take_now(job: Job, now: datetime) -> None:
        take_snapshot(job, source, store, floor_to(now, timedelta(seconds=job.interval(settings))))

    # All history comes first. The scheduler then continues soon after the current snapshots, and misses no instant.
    for failure, act, jobs in (
        ("its history could not be filled", partial(fill_past, source, store), JOBS.keys() - {LATER}),
        ("there is no snapshot of now; the scheduler goes on trying", take_now, JOBS.keys()),
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
