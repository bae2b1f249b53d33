"""Runs every job at the multiples of its interval since the epoch, until stopped."""

import logging
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from apscheduler.events import EVENT_JOB_MAX_INSTANCES, EVENT_JOB_MISSED
from apscheduler.executors.pool import ThreadPoolExecutor
from apscheduler.job import Job as APSchedulerJob
from apscheduler.schedulers.background import BackgroundScheduler
from apscheduler.triggers.interval import IntervalTrigger

from analytics_service.clickhouse.connection import Store
from analytics_service.clickhouse.errors import ANY_FAILURE, Retries
from analytics_service.config.settings import Settings
from analytics_service.errors import AnalyticsError, SourceError, StoreUnavailable
from analytics_service.market.instants import DAY, EPOCH, MILLISECONDS, MINUTE, floor_to, format_instant, unix_second
from analytics_service.sources.base import Source
from analytics_service.store.job_runs import JobRun, record_job_run, scheduler_name
from analytics_service.store.loss_check import check
from analytics_service.store.rewrite import keep_complete
from jobs.registry import JOBS, Job
from jobs.rejections import LastLogged, Rejections
from jobs.runner import take_snapshot

log = logging.getLogger(__name__)

# Seconds between checks of the clock, and between reports about jobs, which are written together.
_REPORT_SECONDS = 5.0
# Outcomes of instants at which a job did not start.
_UNSTARTED = {EVENT_JOB_MAX_INSTANCES: "skipped", EVENT_JOB_MISSED: "missed"}
# Called with a job's name, its outcome and its seconds, which are None if the job did not start.
Measure = Callable[[str, str, float | None], None]


def run(
    settings: Settings,
    source: Source,
    store: Store,
    stop: threading.Event,
    *,
    jobs: Sequence[Job] = tuple(JOBS.values()),
    measure: Measure = lambda *run: None,
    clock: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> None:
    """Run the jobs until `stop` is set: each immediately for the current instant, then at every later instant.

    `jobs backfill` takes the instants that passed while no scheduler ran. When stopped, snapshots in progress finish
    their attempt without a retry, and wait only some seconds for a source that hangs.
    """
    before = clock()
    scheduler = build(settings, source, store, stop, before, jobs=jobs, measure=measure)
    scheduler.start()
    threading.Thread(target=watch_losses, args=(store, stop), name="losses", daemon=True).start()
    write_reports(store, [(job.func, job.next_run_time) for job in scheduler.get_jobs()])
    log.info("The scheduler is running; snapshots come from %s.", source.spec)
    threading.Thread(target=keep_complete, args=(store, stop), name="rewrites", daemon=True).start()
    try:
        while not stop.wait(_REPORT_SECONDS):
            if (now := clock()) < before:
                log.warning(
                    "The clock of this machine was set back to %s. All jobs continue from there.", format_instant(now)
                )
                for job in scheduler.get_jobs():
                    job.reschedule(job.trigger)
            before = now
            if any(job.func.is_unreported for job in scheduler.get_jobs()):
                write_reports(store, [(job.func, job.next_run_time) for job in scheduler.get_jobs()])
    finally:
        stop.set()
        source.hurry()
        stopped = [(job.func, None) for job in scheduler.get_jobs()]
        scheduler.shutdown(wait=True)
        write_reports(store, stopped)
    log.info("The scheduler has stopped.")


def build(
    settings: Settings,
    source: Source,
    store: Store,
    stop: threading.Event,
    now: datetime,
    *,
    jobs: Sequence[Job] = tuple(JOBS.values()),
    measure: Measure = lambda *run: None,
) -> BackgroundScheduler:
    """A scheduler of the jobs, not started yet. Each job first runs for its last instant up to `now`."""
    # Jobs log their outcomes and gaps themselves.
    logging.getLogger("apscheduler").setLevel(logging.CRITICAL)
    scheduler = BackgroundScheduler(timezone=UTC, executors={"default": InstantExecutor()})
    last_logged: LastLogged = {}
    for job in jobs:
        seconds = job.interval(settings)
        first = floor_to(now, timedelta(seconds=seconds))
        report = JobRun(job.dataset, scheduler_name(), seconds, next_at=None)
        retries = Retries(seconds, errors=(StoreUnavailable, SourceError), wait=stop.wait)
        scheduler.add_job(
            ScheduledJob(job, source, store, retries, Rejections(last_logged), measure, report),
            IntervalTrigger(seconds=seconds, start_date=EPOCH, timezone=UTC),
            args=(first,),
            id=job.name,
            name=job.name,
            next_run_time=first,
            # A job may start late, until its next instant is due.
            misfire_grace_time=seconds,
            coalesce=True,
            max_instances=1,
        )
    scheduler.add_listener(
        lambda event: measure(event.job_id, _UNSTARTED[event.code], None), EVENT_JOB_MAX_INSTANCES | EVENT_JOB_MISSED
    )
    return scheduler


class InstantExecutor(ThreadPoolExecutor):  # type: ignore[misc]
    """Passes the scheduled instant to a job as its argument, which APScheduler 3 does not."""

    def _do_submit_job(self, job: APSchedulerJob, run_times: list[datetime]) -> None:
        # Called only while the job is not running. Instants are coalesced, so there is only one.
        job.args = tuple(run_times)
        super()._do_submit_job(job, run_times)


@dataclass(slots=True, eq=False)
class ScheduledJob:
    """Runs a job at its instants, one at a time, with a report about the last snapshot."""

    job: Job
    source: Source
    store: Store
    retries: Retries
    rejections: Rejections
    measure: Measure
    report: JobRun
    is_unreported: bool = False

    def __call__(self, at: datetime) -> None:
        """Take the job's snapshot of an instant, and log the outcome."""
        name, started, outcome = self.job.name, time.monotonic(), "failed"
        try:
            taken = take_snapshot(self.job, self.source, self.store, at, self.retries, rejections=self.rejections)
            outcome = "done" if taken else "already_done"
            log.info("%s: snapshot of %s is complete.", name, format_instant(at))
        except ANY_FAILURE as error:
            is_expected = isinstance(error, AnalyticsError)
            reason = str(error) if is_expected else "an unexpected error."
            log.error(
                "%s: no snapshot of %s: %s", name, format_instant(at), reason, exc_info=None if is_expected else error
            )
            self.report = replace(self.report, failed_at=unix_second(at), error=reason)
        seconds = time.monotonic() - started
        self.measure(name, outcome, seconds)
        took = round(seconds * MILLISECONDS)
        self.report = replace(self.report, ran_at=unix_second(at), outcome=outcome, duration_ms=took)
        self.is_unreported = True


def write_reports(store: Store, jobs: Sequence[tuple[ScheduledJob, datetime | None]]) -> None:
    """Record the last outcome of each job and its next instant, None when stopped. A failure loses only these reports:
    the ledger lists complete snapshots."""
    for job, _ in jobs:
        job.is_unreported = False
    runs = [replace(job.report, next_at=None if next_at is None else unix_second(next_at)) for job, next_at in jobs]
    try:
        record_job_run(store, runs)
    except AnalyticsError as error:
        log.warning("The status of jobs cannot be recorded, so `status` shows an older one. %s", error)


def watch_losses(store: Store, stop: threading.Event, find: Callable[[Store], bool] = check) -> None:
    """Look for lost rows until `stop` is set (rule 8.19): at once, daily, and each minute while some are lost. `find`
    records what is lost, and returns whether to look again soon. Runs in a thread, because a large store takes minutes.
    """
    pause, cause = 0, ""
    while not stop.wait(pause):
        pause = MINUTE
        try:
            if not find(store):
                pause = DAY
            cause = ""
        except ANY_FAILURE as error:
            if str(error) != cause:
                unexpected = None if isinstance(error, AnalyticsError) else error
                what = "What the store has lost cannot be found out; it is tried again each minute."
                log.error("%s %s", what, error, exc_info=unexpected)
            cause = str(error)
