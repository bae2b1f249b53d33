"""Runs every job at the multiples of its interval since the epoch, until told to stop."""

import logging
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
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

from analytics_service import logs
from analytics_service.config.settings import Settings
from analytics_service.errors import AnalyticsError
from analytics_service.market.instants import EPOCH, MILLISECONDS, floored, shown, unix_second
from analytics_service.sources.base import Source
from analytics_service.store.connection import Store
from analytics_service.store.failures import ANY_FAILURE
from analytics_service.store.job_runs import JobRun, forget_future, record, scheduler_name
from analytics_service.store.retries import Retries
from jobs.registry import JOBS, Job
from jobs.runner import Outcome, run_once

log = logging.getLogger(__name__)

# Seconds between looks at the clock.
_CLOCK_SECONDS = 1.0
# A clock that is set back by less than this delays no run by more, so nothing is done about it.
_SLACK = timedelta(seconds=1)
Clock = Callable[[], datetime]
# Takes the name of a job, the outcome of a run, and the seconds it took; None if it did not begin.
Measure = Callable[[str, str, float | None], None]


def _utc_now() -> datetime:
    return datetime.now(UTC)


def _unmeasured(job: str, outcome: str, seconds: float | None) -> None:
    """Measure nothing."""


def run(
    settings: Settings,
    source: Source,
    store: Store,
    stop: threading.Event,
    *,
    jobs: Sequence[Job] = tuple(JOBS.values()),
    measure: Measure = _unmeasured,
    clock: Clock = _utc_now,
) -> None:
    """Run the jobs until `stop` is set: each immediately for the current instant, then at every further one.

    Instants that passed while nothing ran are not made up for; `jobs backfill` does that. Once stopped, runs in
    progress finish their attempt, but retry nothing, and wait some seconds only for a source that hangs.
    """
    scheduler = build(settings, source, store, stop, clock(), jobs=jobs, measure=measure)
    scheduler.start()
    scheduled = [scheduler.get_job(job.name) for job in jobs]
    write_status(store, [one.func.status(unix_second(one.next_run_time)) for one in scheduled])
    log.info("The scheduler is running; snapshots come from %s.", source.spec)
    try:
        while not stop.wait(_CLOCK_SECONDS):
            follow_clock(scheduler, store, clock)
    finally:
        stop.set()
        source.hurry()
        scheduler.shutdown(wait=True)
        write_status(store, [one.func.status(None) for one in scheduled])
    log.info("The scheduler has stopped.")


def follow_clock(scheduler: BackgroundScheduler, store: Store, clock: Clock) -> None:
    """Bring forward the runs of jobs that a clock which was set back would keep from running.

    APScheduler waits until the clock shows the instant of the next run, which is never further ahead than one interval
    unless the clock was set back.
    """
    moved: list[tuple[ScheduledJob, datetime, datetime]] = []
    for job in scheduler.get_jobs():
        # The clock is read last. A run that begins after that would make the next one seem too far ahead.
        due, every, now = job.next_run_time, job.trigger.interval, clock()
        if due - now > every + _SLACK:
            moved.append((job, due, floored(now, every) + every))
    if not moved:
        return
    for job, _, at in moved:
        # The job is told first, since it may begin its next run as soon as that is moved.
        job.func.bring_forward(at)
        job.modify(next_run_time=at)
    log.warning(
        "The clock of this machine was set back. Jobs go on at multiples of their intervals: %s.",
        ", ".join(f"{job.id} at {shown(at)} instead of {shown(due)}" for job, due, at in moved),
    )
    told = [job.func.status(unix_second(job.next_run_time)) for job in scheduler.get_jobs()]
    write_status(store, told, after_future=True)


def build(
    settings: Settings,
    source: Source,
    store: Store,
    stop: threading.Event,
    now: datetime,
    *,
    jobs: Sequence[Job] = tuple(JOBS.values()),
    measure: Measure = _unmeasured,
) -> BackgroundScheduler:
    """A scheduler of the jobs, not started yet. The first instant of each job is the last one up to `now`."""
    # `report` logs what happens to runs, in our words instead of APScheduler's.
    logging.getLogger("apscheduler.scheduler").setLevel(logging.ERROR)
    logging.getLogger("apscheduler.executors").setLevel(logging.CRITICAL)
    scheduler = BackgroundScheduler(timezone=UTC, executors={"default": InstantExecutor()})
    ticks: dict[str, Tick] = {}
    for job in jobs:
        every = job.every(settings)
        step = timedelta(seconds=every)
        first = floored(now, step)
        ticks[job.name] = Tick(job, source, store, step, Retries(every, wait=stop.wait), measure=measure)
        scheduler.add_job(
            ticks[job.name],
            IntervalTrigger(seconds=every, start_date=EPOCH, timezone=UTC),
            args=(first,),
            id=job.name,
            name=job.name,
            next_run_time=first,
            # A run may begin as late as the next one is due.
            misfire_grace_time=every,
            coalesce=True,
            max_instances=1,
        )
    scheduler.add_listener(report, EVENT_JOB_ERROR | EVENT_JOB_MAX_INSTANCES | EVENT_JOB_MISSED)
    scheduler.add_listener(lambda event: ticks[event.job_id].left_out("skipped"), EVENT_JOB_MAX_INSTANCES)
    scheduler.add_listener(lambda event: ticks[event.job_id].left_out("missed"), EVENT_JOB_MISSED)
    return scheduler


class InstantExecutor(ThreadPoolExecutor):  # type: ignore[misc]
    """Passes a run its scheduled instant as argument, which APScheduler 3 does not."""

    def _do_submit_job(self, job: ScheduledJob, run_times: list[datetime]) -> None:
        # Called only when no run of the job is in progress. Coalesced, there is one instant.
        job.args = tuple(run_times)
        super()._do_submit_job(job, run_times)


class Tick:
    """One job's runs at its instants, one at a time."""

    def __init__(
        self,
        job: Job,
        source: Source,
        store: Store,
        every: timedelta,
        retries: Retries,
        *,
        measure: Measure = _unmeasured,
    ) -> None:
        self._job = job
        self._source = source
        self._store = store
        self._every = every
        self._retries = retries
        self._measure = measure
        self._last: datetime | None = None
        # Instants since the last run that are already counted as left out.
        self._left_out = 0
        # The instant of the next run, where the clock was set back since the last one began.
        self._brought_forward: datetime | None = None
        self._status = JobRun(job.family, scheduler_name(), int(every.total_seconds()), next_at=None)

    def __call__(self, at: datetime) -> None:
        """Run the job for the instant, log and count which instants before it were passed over, and tell operators."""
        name, last, self._last = self._job.name, self._last, at
        counted, self._left_out = self._left_out, 0
        self._brought_forward = None
        if last and at - last > self._every:
            # APScheduler makes one run of all that were due while the whole process stood still, and tells nobody.
            for _ in range((at - last) // self._every - 1 - counted):
                self._measure(name, "missed", None)
            remedy = f"; `analytics-service jobs backfill {name}` adds them" if self._job.history else ""
            log.warning(
                "%s: no snapshots between %s and %s%s.", name, shown(last), shown(at), remedy, extra={logs.ABOUT: name}
            )
        try:
            if self._measured(at) is Outcome.DONE:
                log.info("%s: snapshot of %s is complete.", name, shown(at))
        except ANY_FAILURE as error:
            self._status = replace(self._status, failed_at=unix_second(at), error=reason_of(error))
            raise
        finally:
            write_status(self._store, [self.status(unix_second(self._brought_forward or at + self._every))])

    def left_out(self, outcome: str) -> None:
        """Count an instant whose run never began: `skipped` or `missed`."""
        self._left_out += 1
        self._measure(self._job.name, outcome, None)

    def bring_forward(self, at: datetime) -> None:
        """Take note of an earlier instant of the next run; a run that is in progress will tell operators of it."""
        self._brought_forward = at

    def status(self, next_at: int | None) -> JobRun:
        """The report about its runs; `next_at` is the unix second of the next one, None if there is none."""
        return replace(self._status, next_at=next_at)

    def _measured(self, at: datetime) -> Outcome:
        begun, outcome = time.monotonic(), "failed"
        try:
            reached = run_once(self._job, self._source, self._store, at, self._retries)
            outcome = reached.name.lower()
            return reached
        finally:
            seconds = time.monotonic() - begun
            self._measure(self._job.name, outcome, seconds)
            self._status = replace(
                self._status, ran_at=unix_second(at), outcome=outcome, took_ms=round(seconds * MILLISECONDS)
            )


def write_status(store: Store, runs: list[JobRun], *, after_future: bool = False) -> None:
    """Record runs for operators, perhaps in place of reports from the future. Failing to do so does no harm, because
    the ledger says what is complete."""
    try:
        if after_future:
            forget_future(store)
        record(store, runs)
    except AnalyticsError as error:
        log.debug("The status of jobs cannot be recorded: %s", error)


def reason_of(error: BaseException) -> str:
    """Why a run failed, in words for operators."""
    return str(error) if isinstance(error, AnalyticsError) else "an unexpected error."


def report(event: JobEvent) -> None:
    """Log a run that failed, was skipped or came too late."""
    about = {logs.ABOUT: event.job_id}
    if event.code == EVENT_JOB_MAX_INSTANCES:
        for at in event.scheduled_run_times:
            log.warning(
                "%s: skipped the run for %s, because the one before is not done yet.",
                event.job_id,
                shown(at),
                extra=about,
            )
        return
    at = shown(event.scheduled_run_time)
    if event.code == EVENT_JOB_MISSED:
        log.warning("%s: skipped the run for %s, because it could not begin in time.", event.job_id, at, extra=about)
        return
    unexpected = None if isinstance(event.exception, AnalyticsError) else event.exception
    reason = reason_of(event.exception)
    log.error("%s: no snapshot of %s: %s", event.job_id, at, reason, exc_info=unexpected, extra=about)
