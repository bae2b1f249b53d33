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

from analytics_service.clickhouse.connection import Store
from analytics_service.clickhouse.retries import ANY_FAILURE, Retries
from analytics_service.config.settings import Settings
from analytics_service.errors import AnalyticsError
from analytics_service.market.instants import EPOCH, MILLISECONDS, floored, shown, unix_second
from analytics_service.sources.base import Source
from analytics_service.store.commits import begin
from analytics_service.store.job_runs import JobRun, forget_future, record, scheduler_name
from analytics_service.store.rewrite import keep_complete
from jobs.left_out import LeftOut, Told
from jobs.losses import LossWatch
from jobs.registry import JOBS, Job
from jobs.runner import Outcome, run_once

log = logging.getLogger(__name__)

# Seconds between checks of the clock.
_CLOCK_SECONDS = 1.0
# A clock that is set back by less delays runs by less, so this is ignored.
_SLACK = timedelta(seconds=1)
# Seconds from a run until it is reported, with others that end meanwhile.
_REPORT_SECONDS = 5
# What a scheduler leaves to another one on the same store: a part of the interval, and at most so many seconds.
_HEAD_START, _LONGEST_HEAD_START = 0.5, 10.0
# Called with the name of a job, the outcome of a run, and its seconds; None if the run did not begin.
Measure = Callable[[str, str, float | None], None]


def _unmeasured(job: str, outcome: str, seconds: float | None) -> None:
    """Measures nothing."""


def run(
    settings: Settings,
    source: Source,
    store: Store,
    stop: threading.Event,
    *,
    jobs: Sequence[Job] = tuple(JOBS.values()),
    measure: Measure = _unmeasured,
    clock: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> None:
    """Run the jobs until `stop` is set: each immediately for the current instant, then at every later instant.

    Instants that passed while no scheduler ran are left to `jobs backfill`. Once stopped, runs in progress finish their
    attempt without a retry. They wait only some seconds for a source that hangs.
    """
    scheduler = build(settings, source, store, stop, clock(), jobs=jobs, measure=measure)
    scheduler.start()
    ticks: list[Tick] = [job.func for job in scheduler.get_jobs()]
    write_reports(store, scheduler)
    log.info("The scheduler is running; snapshots come from %s.", source.spec)
    threading.Thread(target=keep_complete, args=(store, stop), name="rewrites", daemon=True).start()
    losses, unreported_for = LossWatch(store), 0
    try:
        while not stop.wait(_CLOCK_SECONDS):
            follow_clock(scheduler, store, clock)
            losses.follow(clock())
            unreported_for = unreported_for + 1 if any(tick.is_unreported for tick in ticks) else 0
            if unreported_for > _REPORT_SECONDS:
                write_reports(store, scheduler)
    finally:
        stop.set()
        source.hurry()
        scheduler.shutdown(wait=True)
        write_status(store, [tick.status(None) for tick in ticks])
    log.info("The scheduler has stopped.")


def follow_clock(scheduler: BackgroundScheduler, store: Store, clock: Callable[[], datetime]) -> None:
    """Bring forward the next runs of jobs after the clock was set back.

    APScheduler waits until the clock shows the instant of the next run. That instant is more than an interval ahead
    only if the clock was set back.
    """
    moved: list[tuple[ScheduledJob, datetime, datetime]] = []
    for job in scheduler.get_jobs():
        # The clock is read last: if a run began after the clock was read, its next run would seem too far ahead.
        due, interval, now = job.next_run_time, job.trigger.interval, clock()
        if due - now > interval + _SLACK:
            moved.append((job, due, floored(now, interval) + interval))
    if not moved:
        return
    for job, _, at in moved:
        job.modify(next_run_time=at)
    log.warning(
        "The clock of this machine was set back. Jobs go on at multiples of their intervals: %s.",
        ", ".join(f"{job.id} at {shown(at)} instead of {shown(due)}" for job, due, at in moved),
    )
    write_reports(store, scheduler, after_future=True)


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
    """A scheduler of the jobs, not started yet. The first run of each job is for its last instant up to `now`."""
    # `report` logs the outcome of runs instead of APScheduler.
    logging.getLogger("apscheduler.scheduler").setLevel(logging.ERROR)
    logging.getLogger("apscheduler.executors").setLevel(logging.CRITICAL)
    scheduler = BackgroundScheduler(timezone=UTC, executors={"default": InstantExecutor()})
    ticks: dict[str, Tick] = {}
    told: Told = {}
    for job in jobs:
        seconds = job.interval(settings)
        interval = timedelta(seconds=seconds)
        first = floored(now, interval)
        retries = Retries(seconds, wait=stop.wait)
        ticks[job.name] = Tick(job, source, store, interval, retries, told=told, measure=measure)
        scheduler.add_job(
            ticks[job.name],
            IntervalTrigger(seconds=seconds, start_date=EPOCH, timezone=UTC),
            args=(first,),
            id=job.name,
            name=job.name,
            next_run_time=first,
            # A run may begin until the next run is due.
            misfire_grace_time=seconds,
            coalesce=True,
            max_instances=1,
        )
    scheduler.add_listener(report, EVENT_JOB_ERROR | EVENT_JOB_MAX_INSTANCES | EVENT_JOB_MISSED)
    scheduler.add_listener(lambda event: ticks[event.job_id].count_unstarted("skipped"), EVENT_JOB_MAX_INSTANCES)
    scheduler.add_listener(lambda event: ticks[event.job_id].count_unstarted("missed"), EVENT_JOB_MISSED)
    return scheduler


class InstantExecutor(ThreadPoolExecutor):  # type: ignore[misc]
    """Passes the scheduled instant to a run as its argument, which APScheduler 3 does not."""

    def _do_submit_job(self, job: ScheduledJob, run_times: list[datetime]) -> None:
        # Called only when no run of the job is in progress. Runs are coalesced, so there is a single instant.
        job.args = tuple(run_times)
        super()._do_submit_job(job, run_times)


class Tick:
    """One job's runs at its instants, one at a time."""

    def __init__(
        self,
        job: Job,
        source: Source,
        store: Store,
        interval: timedelta,
        retries: Retries,
        *,
        told: Told | None = None,
        measure: Measure = _unmeasured,
    ) -> None:
        self._job = job
        self._source = source
        self._store = store
        self._interval = interval
        self._retries = retries
        self._measure = measure
        self._last: datetime | None = None
        # Whether another scheduler had completed the last instant first. Then it may do so with the next one, too.
        self._comes_second = False
        # Instants since the last run that were already counted as skipped or missed.
        self._unstarted = 0
        self.is_unreported = False
        self._left_out = LeftOut(told)
        self._status = JobRun(job.family, scheduler_name(), int(interval.total_seconds()), next_at=None)

    def __call__(self, at: datetime) -> None:
        """Run the job for the instant, and log and count the missed instants before it."""
        name, last, self._last = self._job.name, self._last, at
        counted, self._unstarted = self._unstarted, 0
        if last and at - last > self._interval:
            # While the process stood still, APScheduler coalesces all due runs into a single run, and reports nothing.
            missing = self._missing(last, at)
            for _ in range(missing - counted):
                self._measure(name, "missed", None)
            span = f"--start {shown(last)} --end {shown(at)} --every {self._interval.total_seconds():.0f}s"
            remedy = f"`analytics-service jobs backfill {name} {span}` adds them"
            if missing:
                log.warning(
                    "%s: missing snapshots between %s and %s: %d; %s.", name, shown(last), shown(at), missing, remedy
                )
        if self._comes_second:
            self._retries.wait(min(_HEAD_START * self._interval.total_seconds(), _LONGEST_HEAD_START))
        try:
            if self._measured(at) is Outcome.DONE:
                log.info("%s: snapshot of %s is complete.", name, shown(at))
        except ANY_FAILURE as error:
            self._status = replace(self._status, failed_at=unix_second(at), error=reason_of(error))
            raise
        finally:
            self.is_unreported = True

    def _missing(self, last: datetime, at: datetime) -> int:
        """How many instants between two have no snapshot; of those that have one, another scheduler took it."""
        between = range(unix_second(last), unix_second(at), int(self._interval.total_seconds()))[1:]
        try:
            completed = begin(self._store, self._job.family, between[0], between[-1]).completed
        except AnalyticsError:
            completed = frozenset()
        return len(set(between) - completed)

    def count_unstarted(self, outcome: str) -> None:
        """Count an instant whose run never began: `skipped` or `missed`."""
        self._unstarted += 1
        self._measure(self._job.name, outcome, None)

    def status(self, next_at: int | None) -> JobRun:
        """The report about the job's runs. `next_at` is the unix second of the next run, None if there is none."""
        return replace(self._status, next_at=next_at)

    def _measured(self, at: datetime) -> Outcome:
        begun, outcome = time.monotonic(), "failed"
        try:
            reached = run_once(self._job, self._source, self._store, at, self._retries, left_out=self._left_out)
            outcome = reached.name.lower()
            self._comes_second = reached is not Outcome.DONE
            return reached
        finally:
            seconds = time.monotonic() - begun
            self._measure(self._job.name, outcome, seconds)
            self._status = replace(
                self._status, ran_at=unix_second(at), outcome=outcome, took_ms=round(seconds * MILLISECONDS)
            )


def write_reports(store: Store, scheduler: BackgroundScheduler, *, after_future: bool = False) -> None:
    """Record the runs of all jobs of a scheduler, as `write_status`."""
    jobs = scheduler.get_jobs()
    for job in jobs:
        job.func.is_unreported = False
    runs = [job.func.status(unix_second(job.next_run_time)) for job in jobs]
    write_status(store, runs, after_future=after_future)


def write_status(store: Store, runs: list[JobRun], *, after_future: bool = False) -> None:
    """Record runs for operators; with `after_future`, in place of reports from the future. A failure costs these
    reports only: the ledger says what is complete."""
    try:
        if after_future:
            forget_future(store)
        record(store, runs)
    except AnalyticsError as error:
        log.warning("The status of jobs cannot be recorded, so `status` shows an older one. %s", error)


def reason_of(error: BaseException) -> str:
    """Why a run failed, in words for operators."""
    return str(error) if isinstance(error, AnalyticsError) else "an unexpected error."


def report(event: JobEvent) -> None:
    """Log a run that failed, was skipped, or was missed because it came too late."""
    name = event.job_id
    if event.code == EVENT_JOB_MAX_INSTANCES:
        for at in event.scheduled_run_times:
            log.warning("%s: skipped the run for %s, because the one before is not done yet.", name, shown(at))
        return
    at = shown(event.scheduled_run_time)
    if event.code == EVENT_JOB_MISSED:
        log.warning("%s: skipped the run for %s, because it could not begin in time.", name, at)
        return
    unexpected = None if isinstance(event.exception, AnalyticsError) else event.exception
    log.error("%s: no snapshot of %s: %s", name, at, reason_of(event.exception), exc_info=unexpected)
