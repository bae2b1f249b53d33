"""What `up` takes from a source: before it serves, a first snapshot and histories; the rest of the past meanwhile."""

import logging
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from functools import partial

import click

from analytics_service.config.settings import Settings
from analytics_service.errors import (
    AccessRefused,
    AnalyticsError,
    DiskFull,
    SchemaError,
    SourceError,
    SourceRefused,
    StoreUnavailable,
)
from analytics_service.logs import is_json
from analytics_service.market.instants import floored, multiples
from analytics_service.sources.base import Source
from analytics_service.store.connection import Store
from analytics_service.store.histories import names_of
from analytics_service.store.ledger import read_heads
from analytics_service.store.retries import ANY_FAILURE, Retries
from jobs.registry import JOBS, Job
from jobs.runner import backfill, run_once

log = logging.getLogger(__name__)

_HOUR, _DAY = timedelta(hours=1), timedelta(days=1)
# Of state, how far back there is a snapshot of each hour.
_HOURLY = 2 * _DAY
# A family that nothing waits for, and whose past takes long.
LATER = "positions"
# Snapshots of one rewrite, for which readers wait a moment. In between it is seen whether the service ends, which waits
# for some seconds.
_AT_ONCE = 46
_LAST_SECONDS = 10.0
# Seconds for which ClickHouse may be away.
_PATIENCE = 600.0


def past_instants(source: Source, job: Job, now: datetime, *, each_hour: bool = True) -> list[datetime]:
    """The instants, oldest first, whose snapshots `up` takes: each hour of the source's history.

    For prices also each midnight before, since the source's beginning. Of the protocol token and routes, and of all
    unless it is to be `each_hour`, each midnight of that history, and each hour of its last two days.
    """
    if source.history is None:
        return []
    start = now - source.history
    if not each_hour or not names_of(job.family):
        hours = multiples(max(start, now - _HOURLY), now, _HOUR)
        return sorted({*multiples(start, now, _DAY), *hours})
    hours = multiples(start, now, _HOUR)
    if job.name != "prices" or source.since is None:
        return hours
    return sorted({*multiples(source.since, start, _DAY), *hours})


def fill(
    source: Source,
    store: Store,
    job: Job,
    now: datetime,
    stop: threading.Event | None = None,
    *,
    each_hour: bool = True,
) -> None:
    """Take those snapshots that are not there, or until told to stop; then the newest first, as most people look at
    these."""
    if not (instants := past_instants(source, job, now, each_hour=each_hour)):
        return
    step = _AT_ONCE if stop else len(instants)
    with click.progressbar(length=len(instants), label=f"History of {job.name}", hidden=is_json()) as bar:
        for first in reversed(range(0, len(instants), step)):
            if stop and stop.is_set():
                return
            backfill(job, source, store, instants[first : first + step], progress=bar.update)


@contextmanager
def filling_past(settings: Settings, source: Source | None) -> Iterator[None]:
    """Fill in the past of positions in a thread, for the duration of the block. What is left at its end comes with the
    next start."""
    if source is None:
        yield
        return
    stop = threading.Event()
    thread = threading.Thread(target=_fill_positions, args=(settings, source, stop), name="past", daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        source.hurry()
        thread.join(_LAST_SECONDS)


def _fill_positions(settings: Settings, source: Source, stop: threading.Event) -> None:
    now = datetime.now(UTC)
    try:
        with closing(Store(settings)) as store:
            # All days come first: single hours of the whole past take minutes.
            for each_hour in (False, True):
                take = partial(fill, source, store, JOBS[LATER], now, stop, each_hour=each_hour)
                Retries(_PATIENCE, wait=stop.wait)(take)
    except ANY_FAILURE as error:
        if not stop.is_set():
            log.debug("%s: no past", LATER, exc_info=error)
            log.error("%s: its history could not be filled. %s", LATER, reason_of(error))


def reason_of(error: BaseException) -> str:
    """Why a source's data could not be taken, in words for operators."""
    return str(error) if isinstance(error, AnalyticsError) else f"{type(error).__name__}: {error}."


def take_first_snapshots(settings: Settings, source: Source, store: Store) -> None:
    """Take a first snapshot of every family, and fill in history if it is cheap for the source, but that of positions.

    If the source cannot provide a family now, the scheduler tries again, and the other families are served. SourceError
    if no family can be served. A source that may hang keeps nobody from data that is there, unless its history is said
    to be cheap: the scheduler begins with snapshots of now, too.
    """
    if source.may_hang and source.history is None and read_heads(store):
        return
    failed: list[tuple[str, Exception]] = []
    # All history comes first. The scheduler then continues soon after the current snapshots, and misses no instant.
    for failure, act in (
        ("its history could not be filled", partial(_fill, source, store)),
        ("there is no snapshot of now; the scheduler goes on trying", partial(_take_now, settings, source, store)),
    ):
        now = datetime.now(UTC)
        for job in JOBS.values():
            try:
                act(job, now)
            except DiskFull as error:
                if not read_heads(store):
                    raise
                log.error("There are no first snapshots; the scheduler goes on trying. %s", error)
                return
            except (StoreUnavailable, AccessRefused, SchemaError, SourceRefused):
                raise
            except Exception as error:
                log.debug("%s: %s", job.name, failure, exc_info=error)
                failed.append((f"{job.name}: {failure}.", error))
    served = read_heads(store) if failed else {}
    for failure, cause in failed:
        if not served:
            raise SourceError(f"{failure} {reason_of(cause)}") from cause
        log.error("%s %s", failure, reason_of(cause))


def _take_now(settings: Settings, source: Source, store: Store, job: Job, now: datetime) -> None:
    run_once(job, source, store, floored(now, timedelta(seconds=job.interval(settings))))


def _fill(source: Source, store: Store, job: Job, now: datetime) -> None:
    if job.name != LATER:
        fill(source, store, job, now)
