"""The past of the source, which `up` fills in beside the running service: newest first."""

import logging
import math
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import chain, zip_longest
from pathlib import Path

import click

from analytics_service.clickhouse.connection import Store
from analytics_service.clickhouse.errors import ANY_FAILURE, Retries
from analytics_service.concurrency import beside
from analytics_service.config.settings import Settings
from analytics_service.errors import AnalyticsError, CorrectionInProgress, StoreUnavailable, WriteLockLost
from analytics_service.logs import is_json
from analytics_service.market.instants import multiples_between
from analytics_service.sources.base import Source
from analytics_service.store.datasets.histories import names_of
from analytics_service.store.ledger import read_heads
from jobs.registry import JOBS, Job
from jobs.runner import backfill

log = logging.getLogger(__name__)

_HOUR, _DAY = timedelta(hours=1), timedelta(days=1)
# Days with a snapshot each hour, two for other datasets of state: positions have what the page shows at first.
_RECENT = {"positions": 7}
# Instants that are filled in together, some three weeks of hours. Each batch is a rewrite of its dataset.
_BATCH = 500
# Seconds to wait for the scheduler's first snapshots; filling begins after them.
_FIRST_SECONDS = 30
# Seconds that the end waits for the background thread.
_LAST_SECONDS = 5.0

Batch = tuple[Job, Sequence[datetime]]


def past_instants(source: Source, job: Job, now: datetime) -> list[datetime]:
    """The instants whose snapshots `up` takes, oldest first: each hour of the source's history.

    Prices also have each earlier midnight since the source began. Positions, the protocol token and routes have each
    midnight of the history, and each hour of its last days: seven for positions, two for the others.
    """
    if source.history is None:
        return []
    start, end = now - source.history, now + timedelta.resolution
    if job.name in _RECENT or not names_of(job.dataset):
        recent = now - _RECENT.get(job.name, 2) * _DAY
        return sorted({*multiples_between(start, end, _DAY), *multiples_between(max(start, recent), end, _HOUR)})
    hours = multiples_between(start, end, _HOUR)
    if job.name != "prices" or source.since is None:
        return hours
    return sorted({*multiples_between(source.since, start, _DAY), *hours})


def past_batches(source: Source, now: datetime) -> list[Batch]:
    """The past of all datasets in batches: the newest batch of each dataset, in the order of the jobs, then the batches
    before."""
    by_job = (_newest_first(job, past_instants(source, job, now)) for job in JOBS.values())
    return [batch for batch in chain.from_iterable(zip_longest(*by_job)) if batch]


def _newest_first(job: Job, instants: Sequence[datetime]) -> Iterator[Batch]:
    for end in range(len(instants), 0, -_BATCH):
        yield job, instants[max(end - _BATCH, 0) : end]


def fill_past(source: Source, store: Store, batches: Sequence[Batch], stop: threading.Event) -> None:
    """Take the missing snapshots of batches until `stop` is set. What a source cannot provide is logged, and costs the
    earlier past of that dataset. Waits for ClickHouse, and for other corrections, as long as it takes."""
    retries = Retries(
        math.inf,
        errors=(StoreUnavailable, CorrectionInProgress, WriteLockLost),
        wait=stop.wait,
        on_retry=lambda error: log.info("The past will be filled in later. %s", error),
    )
    failed: set[str] = set()
    length = sum(len(instants) for _, instants in batches)
    if length:
        log.info("Filling in the past.")
    is_hidden = is_json() or not length or not sys.stdout.isatty()
    with click.progressbar(length=length, label="Filling in the past", hidden=is_hidden) as bar:
        for job, instants in batches:
            if stop.is_set():
                return
            if job.name not in failed:
                try:
                    retries(partial(backfill, job, source, store, instants))
                except ANY_FAILURE as error:
                    failed.add(job.name)
                    if not stop.is_set():
                        log.error("%s: its past could not be filled in. %s", job.name, _reason_of(error))
            bar.update(len(instants))


@contextmanager
def fill_past_beside(settings: Settings, source: Source, filling: Path) -> Iterator[None]:
    """Fill in the past in a thread during the block. The next start takes the rest. Removes the file `filling` at the
    end."""

    def fill(stop: threading.Event) -> None:
        try:
            with closing(Store(settings, author="analytics-service up")) as store:
                _wait_for_first_snapshots(store, stop)
                fill_past(source, store, past_batches(source, datetime.now(UTC)), stop)
                if not stop.is_set():
                    log.info("Filling in the past has ended.")
        finally:
            filling.unlink(missing_ok=True)

    with beside("past", fill, _LAST_SECONDS) as stop:
        try:
            yield
        finally:
            stop.set()
            source.hurry()


def _wait_for_first_snapshots(store: Store, stop: threading.Event) -> None:
    for _ in range(_FIRST_SECONDS):
        with suppress(AnalyticsError):
            if read_heads(store).keys() >= JOBS.keys():
                return
        if stop.wait(1.0):
            return


def _reason_of(error: BaseException) -> str:
    """The reason for a failure, in words for operators."""
    return str(error) if isinstance(error, AnalyticsError) else f"{type(error).__name__}: {error}."
