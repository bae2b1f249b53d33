"""Takes a job's snapshot of an instant, or the missing snapshots of a range."""

import logging
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial

from analytics_service.clickhouse.connection import Store
from analytics_service.clickhouse.errors import Retries
from analytics_service.errors import AnalyticsError, SourceError, UserError
from analytics_service.market.instants import multiples_between, unix_second
from analytics_service.sources.base import Source
from analytics_service.sources.registry import origin_of
from analytics_service.store.commits import Commit, Overtaken, Provenance, begin, commit
from jobs.registry import Job
from jobs.rejections import Rejections
from jobs.snapshot import JobContext

log = logging.getLogger(__name__)

# Collects missing snapshots again while other schedulers complete some of them. After a pause they are usually done.
IF_OVERTAKEN = Retries(30, first_pause=0.5, errors=(Overtaken,))
# Instants of a backfill that are collected and written together.
_CHUNK = 500
# Give up a backfill after this many consecutive failures of the source.
_GIVE_UP = 3
# Instants of a backfill: almost four years of minutes. They are listed before it begins, in about 100 MB.
_MAX_INSTANTS = 2_000_000


def take_snapshot(
    job: Job,
    source: Source,
    store: Store,
    at: datetime,
    retries: Retries = IF_OVERTAKEN,
    *,
    rejections: Rejections | None = None,
) -> bool:
    """Take the job's snapshot of the instant's whole second, unless it is complete. Returns whether it was taken.

    The last error of `retries` is raised. `rejections` may be shared by snapshots.
    """
    context = JobContext(job.dataset, source, store, [at.replace(microsecond=0)], rejections=rejections or Rejections())

    causes: set[str] = set()

    def log_once(error: AnalyticsError) -> None:
        if str(error) not in causes and not isinstance(error, Overtaken):
            log.warning("%s: %s Trying again.", job.name, error)
        causes.add(str(error))

    return replace(retries, on_retry=log_once)(lambda: _take_batch(job, context, "job")) > 0


def backfill(
    job: Job,
    source: Source,
    store: Store,
    instants: Sequence[datetime],
    progress: Callable[[int], None] = lambda done: None,
) -> int:
    """Take the missing snapshots of instants (whole seconds, oldest first). Returns their number.

    `progress` is called with the number of instants done since its last call. An interrupted backfill continues where
    it stopped when it is run again. If the source fails for single instants, the others are taken before SourceError is
    raised; after three failures in a row, it is raised at once.
    """
    written, reported, failures, rejections = 0, 0, 0, Rejections()
    chunks = deque((first, min(first + _CHUNK, len(instants))) for first in range(0, len(instants), _CHUNK))
    failed: list[SourceError] = []
    while chunks and failures < _GIVE_UP:
        start, end = chunks.popleft()
        context = JobContext(job.dataset, source, store, instants[start:end], rejections=rejections)
        try:
            while taken := IF_OVERTAKEN(partial(_take_batch, job, context, "backfill")):
                written, reported = written + taken, reported + taken
                progress(taken)
            failures = 0
        except SourceError as error:
            if end - start > 1:
                middle = (start + end) // 2
                chunks.extendleft([(middle, end), (start, middle)])
                continue
            failed.append(error)
            failures += 1
        if end > reported and failures < _GIVE_UP:
            progress(end - reported)
            reported = end
    if failed:
        rest = "; the rest was not tried" if failures == _GIVE_UP else ""
        count = f"{len(failed)} of {len(instants)} snapshots cannot be taken"
        raise SourceError(f"{failed[0]} {count}{rest}.")
    return written


def instants_to_fill(start: datetime, end: datetime, interval: timedelta, *, at_ends: bool = False) -> list[datetime]:
    """The instants of a backfill, oldest first: the multiples of `interval` in [start, end), or with `at_ends` the
    seconds before the multiples.

    UserError for more than two million instants.
    """
    count = (end - start) // interval
    if count > _MAX_INSTANTS:
        raise UserError(
            f"From --start to --end there are about {count:,} snapshots {interval} apart; a backfill takes at most "
            f"{_MAX_INSTANTS:,}. Choose a longer interval with --every, or split the range."
        )
    early = timedelta(seconds=at_ends)
    return [at - early for at in multiples_between(start + early, end + early, interval)]


def _take_batch(job: Job, context: JobContext, kind: str) -> int:
    """Collect and commit missing snapshots of a batch, oldest first, as many as the job takes together. Returns their
    number.

    Overtaken, with nothing shown, if another process has meanwhile completed snapshots of the dataset.
    """
    start, end = unix_second(context.instants[0]), unix_second(context.instants[-1]) + 1
    base = begin(context.store, job.dataset, start, end)
    missing = [at for at in context.instants if unix_second(at) not in base.completed]
    if not missing:
        return 0
    changes = collected(job, replace(context, instants=missing, head=base.present, left=base.left))
    commit(context.store, changes, Provenance(kind, origin_of(context.source)), base)
    return len(changes.appended)


def collected(job: Job, context: JobContext) -> Commit:
    """The commit that a job collects for a batch. Assets have the store's ids (rule 3.4, canonical ids)."""
    with context.rejections:
        return job.collect(context.with_canonical_ids())
