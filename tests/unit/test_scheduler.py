"""The scheduler, without ClickHouse. Where real time must pass, tests wait for an event, for at most two seconds."""

import logging
import threading
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from datetime import UTC, datetime, timedelta
from typing import Any

import polars as pl
import pytest
from apscheduler.events import (
    EVENT_JOB_ERROR,
    EVENT_JOB_MAX_INSTANCES,
    JobExecutionEvent,
    JobSubmissionEvent,
)

from analytics_service.clickhouse.connection import Store
from analytics_service.clickhouse.retries import Retries
from analytics_service.config.settings import Settings
from analytics_service.config.values import Intervals
from analytics_service.errors import SourceError, StoreUnavailable
from analytics_service.market.prices import Price
from analytics_service.sources.base import Source
from analytics_service.sources.bounded import BoundedSource, Calls
from analytics_service.sources.simulated.source import SimulatedSource
from analytics_service.store.job_runs import JOB_RUNS
from jobs.registry import JOBS
from jobs.scheduler import (
    InstantExecutor,
    Tick,
    build,
    follow_clock,
    report,
    run,
    write_reports,
    write_status,
)
from tests.doubles import FakeStore
from tests.processes import PATIENCE

NOON = datetime(2025, 3, 1, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
EVERY_SECOND = Settings(every=Intervals(prices=1))
PRICES = [JOBS["prices"]]


class WatchedSource(SimulatedSource):
    """Calls `watch` with the instant of each snapshot before it answers."""

    def __init__(self, watch: Callable[[datetime], object]) -> None:
        super().__init__("1")
        self.watch = watch

    def prices(self, at: datetime) -> Sequence[Price]:
        self.watch(at)
        return super().prices(at)


def tick_of(store: Store, watch: Callable[[datetime], object] = lambda at: None, **options: Any) -> Tick:
    """Runs of prices each minute."""
    retries = Retries(wait=options.pop("wait", lambda seconds: None))
    return Tick(JOBS["prices"], WatchedSource(watch), store, MINUTE, retries, **options)


def run_until_stopped(
    source: Source,
    store: Store,
    stop: threading.Event,
    settings: Settings,
    clock: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> None:
    """Run the scheduler in a thread; fail when it is not stopped."""
    options = {"jobs": PRICES, "clock": clock}
    thread = threading.Thread(target=run, args=(settings, source, store, stop), kwargs=options, daemon=True)
    thread.start()
    thread.join(timeout=PATIENCE)
    ended = not thread.is_alive()
    stop.set()
    assert ended


def fire_times(now: datetime, settings: Settings, count: int) -> list[datetime]:
    """The first instants at which prices are taken; the second is also the first of the trigger by itself."""
    scheduler = build(settings, SimulatedSource("1"), FakeStore(), threading.Event(), now)
    scheduler.start(paused=True)
    job = scheduler.get_job("prices")
    times = [job.next_run_time]
    while len(times) < count:
        times.append(job.trigger.get_next_fire_time(times[-1], now))
    scheduler.shutdown()
    assert job.trigger.get_next_fire_time(None, now) == times[1]
    # Late runs are neither dropped silently nor doubled.
    assert (job.misfire_grace_time, job.coalesce) == (settings.every.prices, True)
    return times


def test_instants_are_whole_minutes_beginning_with_the_current_one() -> None:
    times = fire_times(NOON + timedelta(seconds=59, microseconds=5), Settings(), 3)
    assert times == [NOON, NOON + MINUTE, NOON + 2 * MINUTE]
    assert times[0].utcoffset() == timedelta()


def test_instants_are_multiples_of_the_interval_since_the_epoch() -> None:
    """NOON is 1,740,830,400 = 248,690,057 * 7 + 1."""
    times = fire_times(NOON, Settings(every=Intervals(prices=7)), 2)
    assert [time.timestamp() for time in times] == [1_740_830_399, 1_740_830_406]


def test_a_failing_run_is_logged_and_the_next_instant_is_run(caplog: pytest.LogCaptureFixture) -> None:
    stop = threading.Event()
    store = FakeStore()
    asked: list[datetime] = []

    def watch(at: datetime) -> None:
        asked.append(at)
        if len(asked) == 1:
            raise pl.exceptions.PanicException("secret")
        stop.set()

    run_until_stopped(WatchedSource(watch), store, stop, EVERY_SECOND)
    first, second = asked
    assert second > first
    assert store.instants == [second.timestamp()]
    (failure,) = [record for record in caplog.records if record.levelno == logging.ERROR]
    assert failure.getMessage() == f"prices: no snapshot of {first:%Y-%m-%dT%H:%M:%SZ}: an unexpected error."
    assert failure.exc_info
    assert failure.exc_info[0] is pl.exceptions.PanicException
    told = said(store)[-1]
    assert (told["failed_at"], told["error"]) == (first.timestamp(), "an unexpected error.")


def test_a_run_that_lasts_beyond_the_next_instant_is_the_only_one(
    caplog: pytest.LogCaptureFixture,
) -> None:
    stop = threading.Event()
    store = FakeStore()
    skipped = threading.Event()
    asked: list[datetime] = []

    class Listener(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if "the one before is not done yet" in record.getMessage():
                skipped.set()

    def watch(at: datetime) -> None:
        asked.append(at)
        if len(asked) == 1:
            assert skipped.wait(timeout=PATIENCE)
        else:
            stop.set()

    logger, listener = logging.getLogger("jobs.scheduler"), Listener()
    logger.addHandler(listener)
    try:
        run_until_stopped(WatchedSource(watch), store, stop, EVERY_SECOND)
    finally:
        logger.removeHandler(listener)
    first, second = asked
    assert second - first >= timedelta(seconds=2)
    assert store.instants == [first.timestamp(), second.timestamp()]
    assert "missing snapshots between" in caplog.text
    assert "set back" not in caplog.text


def test_stopping_ends_the_pause_before_another_attempt(caplog: pytest.LogCaptureFixture) -> None:
    stop = threading.Event()
    asked: list[datetime] = []

    def watch(at: datetime) -> None:
        asked.append(at)
        stop.set()
        raise SourceError("The source is gone.")

    run_until_stopped(WatchedSource(watch), FakeStore(), stop, Settings(every=Intervals(prices=86_400)))
    assert len(asked) == 1
    assert "The source is gone." in caplog.text


def test_stopping_waits_some_seconds_only_for_a_source_that_hangs(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("analytics_service.sources.bounded._LAST_SECONDS", 0.05)
    stop, go_on = threading.Event(), threading.Event()

    def watch(at: datetime) -> None:
        stop.set()
        go_on.wait(30)

    source = BoundedSource(WatchedSource(watch), Calls("simulated:1", 300))
    run_until_stopped(source, FakeStore(), stop, Settings(every=Intervals(prices=86_400)))
    go_on.set()
    assert "simulated:1 has taken more than 0.05 s for prices." in caplog.text


def test_every_run_is_measured() -> None:
    outcomes: list[str] = []

    def measure(job: str, outcome: str, seconds: float | None) -> None:
        assert (job, seconds is not None) == ("prices", True)
        outcomes.append(outcome)

    fails = False

    def watch(at: datetime) -> None:
        if fails:
            raise ZeroDivisionError

    tick = tick_of(FakeStore(), watch, measure=measure)
    tick(NOON)
    tick(NOON)
    fails = True
    with pytest.raises(ZeroDivisionError):
        tick(NOON + MINUTE)
    assert outcomes == ["done", "already_done", "failed"]


def test_instants_that_pass_while_the_process_stands_still_are_counted_once_and_named(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Nobody tells of them but the next run; of those that APScheduler tells, the run does not tell again."""
    counted: list[str] = []
    tick = tick_of(FakeStore(), measure=lambda job, outcome, seconds: counted.append(outcome))
    tick(NOON)
    assert [record for record in caplog.records if record.levelno > logging.INFO] == []
    tick(NOON + 4 * MINUTE)
    assert counted == ["done", "missed", "missed", "missed", "done"]
    assert [record.message for record in caplog.records if record.levelno > logging.INFO] == [
        "prices: missing snapshots between 2025-03-01T12:00:00Z and 2025-03-01T12:04:00Z: 3; "
        "`analytics-service jobs backfill prices --start 2025-03-01T12:00:00Z --end 2025-03-01T12:04:00Z --every 60s` "
        "adds them."
    ]
    tick.count_unstarted("skipped")
    tick(NOON + 7 * MINUTE)
    tick(NOON + 8 * MINUTE)
    assert counted[5:] == ["skipped", "missed", "done", "done"]


def test_a_scheduler_gives_one_that_was_faster_a_head_start_until_that_one_stops() -> None:
    """The other one takes the first two instants, and the second one only during the head start."""
    store, asked, waited = FakeStore(), list[datetime](), list[float]()
    store.completed = {int(NOON.timestamp())}

    def wait(seconds: float) -> None:
        waited.append(seconds)
        if len(waited) == 1:
            store.completed.add(int(NOON.timestamp()) + 60)

    tick = tick_of(store, asked.append, wait=wait)
    for minute in range(4):
        tick(NOON + minute * MINUTE)
    assert (asked, waited) == ([NOON + 2 * MINUTE, NOON + 3 * MINUTE], [10, 10])


def test_gaps_that_another_scheduler_has_filled_are_none(caplog: pytest.LogCaptureFixture) -> None:
    counted: list[str] = []
    store = FakeStore()
    tick = tick_of(store, measure=lambda job, outcome, seconds: counted.append(outcome))
    tick(NOON)
    store.completed |= {int(NOON.timestamp()) + 60 * minute for minute in (1, 2, 3, 6)}
    tick(NOON + 4 * MINUTE)
    assert [record for record in caplog.records if record.levelno > logging.INFO] == []
    tick(NOON + 7 * MINUTE)
    assert "prices: missing snapshots between 2025-03-01T12:04:00Z and 2025-03-01T12:07:00Z: 1;" in caplog.text
    assert counted == ["done", "done", "missed", "done"]


def test_runs_that_never_began_are_logged_and_counted(caplog: pytest.LogCaptureFixture) -> None:
    counted: list[tuple[str, str, float | None]] = []
    store, executor = FakeStore(), InstantExecutor()
    source, stop = SimulatedSource("1"), threading.Event()
    scheduler = build(Settings(), source, store, stop, NOON, measure=lambda *run: counted.append(run))
    scheduler.add_executor(executor, "late")
    scheduler.start(paused=True)
    executor.submit_job(scheduler.get_job("prices"), [NOON])
    # The thread of the executor tells of it.
    executor.shutdown()
    scheduler._dispatch_event(JobSubmissionEvent(EVENT_JOB_MAX_INSTANCES, "prices", "default", [NOON]))
    scheduler.shutdown()
    assert store.instants == []
    skipped = "prices: skipped the run for 2025-03-01T12:00:00Z, because"
    assert caplog.messages == [f"{skipped} it could not begin in time.", f"{skipped} the one before is not done yet."]
    assert counted == [("prices", "missed", None), ("prices", "skipped", None)]


def test_an_expected_failure_is_logged_with_its_message_and_without_a_stack(
    caplog: pytest.LogCaptureFixture,
) -> None:
    error = StoreUnavailable("ClickHouse cannot be reached.")
    report(JobExecutionEvent(EVENT_JOB_ERROR, "prices", "default", NOON, exception=error))
    assert caplog.messages == ["prices: no snapshot of 2025-03-01T12:00:00Z: ClickHouse cannot be reached."]
    assert caplog.records[0].exc_info is None


def followed(clock: datetime, **due: datetime) -> tuple[dict[str, datetime], list[dict[str, Any]]]:
    """When jobs run next, and what operators are told, after a look at a clock; `due` is when they would have run."""
    store = FakeStore()
    settings = Settings(every=Intervals(prices=60, rates=3600, markets=86_400))
    jobs = [JOBS[name] for name in due]
    scheduler = build(settings, SimulatedSource("1"), store, threading.Event(), NOON, jobs=jobs)
    scheduler.start(paused=True)
    for name, at in due.items():
        scheduler.modify_job(name, next_run_time=at)
    follow_clock(scheduler, store, lambda: clock)
    times = {job.id: job.next_run_time for job in scheduler.get_jobs()}
    scheduler.shutdown()
    return times, said(store)


@pytest.mark.parametrize("seconds", [-1, 59.999, 60, 86_400])
def test_nothing_is_rescheduled_while_the_clock_goes_on(caplog: pytest.LogCaptureFixture, seconds: float) -> None:
    """Nor is it where a clock is corrected by a second or less. A run that is late is APScheduler's to begin."""
    times, told = followed(NOON + timedelta(seconds=seconds), prices=NOON + MINUTE)
    assert times == {"prices": NOON + MINUTE}
    assert (told, caplog.messages) == ([], [])


def test_jobs_go_on_when_the_clock_is_set_back(caplog: pytest.LogCaptureFixture) -> None:
    """From a moment after noon to one after 11:50. The next run of markets is further ahead than ten minutes anyway."""
    midnight = NOON + timedelta(hours=12)
    due = {"prices": NOON + MINUTE, "rates": NOON + timedelta(hours=1), "markets": midnight}
    times, told = followed(NOON - timedelta(minutes=9, seconds=59.5), **due)
    assert times == {"prices": NOON - 9 * MINUTE, "rates": NOON, "markets": midnight}
    noon = int(NOON.timestamp())
    assert [(row["family"], row["next_at"]) for row in told] == [
        ("prices", noon - 540),
        ("rates", noon),
        ("markets", noon + 43_200),
    ]
    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    assert record.message == (
        "The clock of this machine was set back. Jobs go on at multiples of their intervals: "
        "prices at 2025-03-01T11:51:00Z instead of 2025-03-01T12:01:00Z, "
        "rates at 2025-03-01T12:00:00Z instead of 2025-03-01T13:00:00Z."
    )


def test_a_clock_that_is_set_back_by_a_moment_repeats_the_instant_that_it_shows_again() -> None:
    """The instant at the clock itself is not a later one."""
    assert followed(NOON - timedelta(seconds=2), prices=NOON + MINUTE)[0] == {"prices": NOON}
    assert followed(NOON - MINUTE, prices=NOON + MINUTE)[0] == {"prices": NOON}


def test_a_clock_that_is_set_back_stops_no_running_scheduler(caplog: pytest.LogCaptureFixture) -> None:
    """The scheduler begins while the clock is ten minutes ahead."""
    stop, store, asked = threading.Event(), FakeStore(), list[datetime]()
    ahead = [timedelta(minutes=10)]

    def clock() -> datetime:
        return datetime.now(UTC) + (ahead.pop() if ahead else timedelta())

    def watch(at: datetime) -> None:
        asked.append(at)
        if len(asked) == 2:
            stop.set()

    began = datetime.now(UTC)
    run_until_stopped(WatchedSource(watch), store, stop, EVERY_SECOND, clock)
    assert began < asked[0] < asked[1] <= datetime.now(UTC)
    assert len([message for message in caplog.messages if "set back" in message]) == 1


def test_a_run_during_which_the_clock_is_set_back_passes_nothing_over(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Runs for later instants than the last one's are counted as ever."""
    store, counted = FakeStore(), list[str]()

    def watch(at: datetime) -> None:
        if at == NOON:
            follow_clock(scheduler, store, lambda: NOON - timedelta(minutes=9, seconds=59))

    scheduler = build(
        Settings(),
        WatchedSource(watch),
        store,
        threading.Event(),
        NOON,
        jobs=PRICES,
        measure=lambda job, outcome, seconds: counted.append(outcome),
    )
    scheduler.start(paused=True)
    tick = scheduler.get_job("prices").func
    scheduler.modify_job("prices", next_run_time=NOON + MINUTE)

    tick(NOON)
    assert [row["next_at"] for row in said(store)] == [int(NOON.timestamp()) - 540]
    tick(NOON - 9 * MINUTE)
    assert counted == ["done", "done"]
    (warning,) = [record.message for record in caplog.records if record.levelno > logging.INFO]
    assert "set back" in warning
    tick(NOON - 6 * MINUTE)
    assert counted[2:] == ["missed", "missed", "done"]
    scheduler.shutdown()


def said(store: FakeStore) -> list[dict[str, Any]]:
    return [row for table, rows in store.inserts if table == JOB_RUNS for row in rows.to_dicts()]


def test_operators_are_told_of_failures_and_of_the_next_run() -> None:
    """The failure is still told after the next run has succeeded."""
    failing = [True]

    def fail_once(at: datetime) -> None:
        if failing.pop() if failing else False:
            raise SourceError("The source is away.")

    store, stop, noon = FakeStore(), threading.Event(), int(NOON.timestamp())
    stop.set()
    scheduler = build(Settings(), WatchedSource(fail_once), store, stop, NOON, jobs=PRICES)
    scheduler.start(paused=True)
    tick = scheduler.get_job("prices").func
    for minute in range(2):
        assert not tick.is_unreported
        with pytest.raises(SourceError) if minute == 0 else nullcontext():
            tick(NOON + minute * MINUTE)
        assert tick.is_unreported
        scheduler.modify_job("prices", next_run_time=NOON + (minute + 1) * MINUTE)
        write_reports(store, scheduler)
    scheduler.shutdown()
    facts = [(row["family"], row["every"], row["next_at"], row["failed_at"], row["error"]) for row in said(store)]
    assert facts == [
        ("prices", 60, noon + 60, noon, "The source is away."),
        ("prices", 60, noon + 120, noon, "The source is away."),
    ]
    assert [(row["ran_at"], row["outcome"]) for row in said(store)] == [(noon, "failed"), (noon + 60, "done")]
    assert all(0 <= row["took_ms"] < 60_000 for row in said(store))


def test_operators_are_told_when_a_scheduler_begins_and_ends() -> None:
    store, stop = FakeStore(), threading.Event()
    stop.set()
    run_until_stopped(WatchedSource(lambda at: None), store, stop, Settings())
    first, *_, last = said(store)
    assert (first["family"], first["every"], last["next_at"]) == ("prices", 60, None)
    assert first["next_at"] is not None


def test_a_status_that_cannot_be_recorded_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    class Full(FakeStore):
        def insert(self, *_: object, **__: object) -> None:
            raise StoreUnavailable("The disk is full.")

    write_status(Full(), [])
    assert caplog.messages == [
        "The status of jobs cannot be recorded, so `status` shows an older one. The disk is full."
    ]
