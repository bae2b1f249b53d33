"""The past that `up` fills in, of a source that has one: the histories before it serves, the rest while it does."""

import logging
import threading
from contextlib import closing
from datetime import UTC, datetime, timedelta
from functools import partial
from types import TracebackType

import click

from analytics_service.config.settings import Settings
from analytics_service.errors import AnalyticsError
from analytics_service.logs import is_json
from analytics_service.market.instants import multiples
from analytics_service.sources.base import Source
from analytics_service.store.connection import Store
from analytics_service.store.histories import names_of
from analytics_service.store.retries import ANY_FAILURE, Retries
from jobs.registry import JOBS, Job
from jobs.runner import backfill

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


class FillingPast:
    """Fills in the past of positions in a thread, beside the scheduler. What is left at the end of this context comes
    with the next start."""

    def __init__(self, settings: Settings, source: Source | None) -> None:
        self._settings, self._source = settings, source
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="past", daemon=True)

    def __enter__(self) -> "FillingPast":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._stop.set()
        if self._thread.is_alive() and self._source:
            self._source.hurry()
            self._thread.join(_LAST_SECONDS)

    def begin(self) -> None:
        """Begin, if the source has a past."""
        if self._source is not None:
            self._thread.start()

    def _run(self) -> None:
        assert self._source
        source, now = self._source, datetime.now(UTC)
        try:
            with closing(Store(self._settings)) as store:
                # All days come first: single hours of the whole past take minutes.
                for each_hour in (False, True):
                    take = partial(fill, source, store, JOBS[LATER], now, self._stop, each_hour=each_hour)
                    Retries(_PATIENCE, wait=self._stop.wait)(take)
        except ANY_FAILURE as error:
            if not self._stop.is_set():
                log.debug("%s: no past", LATER, exc_info=error)
                log.error("%s: its history could not be filled. %s", LATER, reason_of(error))


def reason_of(error: BaseException) -> str:
    """Why a source's data could not be taken, in words for operators."""
    return str(error) if isinstance(error, AnalyticsError) else f"{type(error).__name__}: {error}."
