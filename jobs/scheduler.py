"""Runs every job at the multiples of its interval since the epoch, until it is told to stop."""

import logging
import threading
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

from apscheduler.events import (
    EVENT_JOB_ERROR,
    EVENT_JOB_MAX_INSTANCES,
    EVENT_JOB_MISSED,
    JobEvent,
)
from apscheduler.executors.pool import ThreadPoolExecutor
from apscheduler.job import Job as ScheduledJob
from apscheduler.schedulers.background import BackgroundScheduler
from apscheduler.triggers.interval import IntervalTrigger

from analytics_service.config import Settings
from analytics_service.errors import AnalyticsError
from analytics_service.sources.base import Source
from analytics_service.store.connection import Store
from jobs.registry import JOBS, Job
from jobs.runner import EPOCH, Outcome, Patience, run_once

log = logging.getLogger(__name__)


def run(
    settings: Settings,
    source: Source,
    store: Store,
    stop: threading.Event,
    jobs: Iterable[Job] = tuple(JOBS.values()),
) -> None:
    """Run the jobs until `stop` is set: each at once for the instant that is current, then at every further one.

    Instants that passed while nothing ran are not made up for; `jobs backfill` does that. Once stopped, runs
    under way finish what they are at, but try nothing again.
    """
    scheduler = build(settings, source, store, stop, datetime.now(UTC), jobs)
    scheduler.start()
    log.info("The scheduler is running; snapshots come from %s.", source.spec)
    try:
        stop.wait()
    finally:
        stop.set()
        scheduler.shutdown(wait=True)
    log.info("The scheduler has stopped.")


def build(
    settings: Settings,
    source: Source,
    store: Store,
    stop: threading.Event,
    now: datetime,
    jobs: Iterable[Job] = tuple(JOBS.values()),
) -> BackgroundScheduler:
    """A scheduler of the jobs, not yet started; each job's first instant is the last one up to `now`."""
    # What APScheduler says of runs is said by `report`, in our words.
    logging.getLogger("apscheduler.scheduler").setLevel(logging.ERROR)
    logging.getLogger("apscheduler.executors").setLevel(logging.CRITICAL)
    scheduler = BackgroundScheduler(timezone=UTC, executors={"default": InstantExecutor()})
    for job in jobs:
        every = job.every(settings)
        step = timedelta(seconds=every)
        first = EPOCH + (now - EPOCH) // step * step
        scheduler.add_job(
            Tick(job, source, store, step, Patience(every, stop.wait)),
            IntervalTrigger(seconds=every, start_date=EPOCH, timezone=UTC),
            args=(first,),
            id=job.name,
            name=job.name,
            next_run_time=first,
            # A run may begin as late as the next is due.
            misfire_grace_time=every,
            coalesce=True,
            max_instances=1,
        )
    scheduler.add_listener(report, EVENT_JOB_ERROR | EVENT_JOB_MAX_INSTANCES | EVENT_JOB_MISSED)
    return scheduler


class InstantExecutor(ThreadPoolExecutor):  # type: ignore[misc]
    """Gives a run its scheduled instant as argument, which APScheduler 3 keeps to itself."""

    def _do_submit_job(self, job: ScheduledJob, run_times: list[datetime]) -> None:
        # Called only when no run of the job is under way; coalesced, there is one instant.
        job.args = tuple(run_times)
        super()._do_submit_job(job, run_times)


class Tick:
    """One job's runs at its instants, one at a time."""

    def __init__(self, job: Job, source: Source, store: Store, every: timedelta, patience: Patience) -> None:
        self._job = job
        self._source = source
        self._store = store
        self._every = every
        self._patience = patience
        self._last: datetime | None = None

    def __call__(self, at: datetime) -> None:
        """Run the job for the instant, and say so where instants before it were passed over."""
        name, last, self._last = self._job.name, self._last, at
        if last and at - last > self._every:
            remedy = f"; `analytics-service jobs backfill {name}` adds them" if self._job.history else ""
            log.warning("%s: no snapshots between %s and %s%s.", name, shown(last), shown(at), remedy)
        if run_once(self._job, self._source, self._store, at, self._patience) is Outcome.DONE:
            log.info("%s: snapshot of %s is complete.", name, shown(at))


def report(event: JobEvent) -> None:
    """Log a run that failed, was skipped or came too late, in plain words."""
    if event.code == EVENT_JOB_MAX_INSTANCES:
        for at in event.scheduled_run_times:
            log.warning("%s: skipped the run for %s, because the one before is not done yet.", event.job_id, shown(at))
        return
    at = shown(event.scheduled_run_time)
    if event.code == EVENT_JOB_MISSED:
        log.warning("%s: skipped the run for %s, because it could not begin in time.", event.job_id, at)
        return
    expected = isinstance(event.exception, AnalyticsError)
    reason = str(event.exception) if expected else "an unexpected error."
    log.error("%s: no snapshot of %s: %s", event.job_id, at, reason, exc_info=None if expected else event.exception)


def shown(at: datetime) -> str:
    """The instant as logs show it."""
    return f"{at:%Y-%m-%dT%H:%M:%SZ}"
