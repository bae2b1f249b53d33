"""The scheduler, without ClickHouse. Where real time must pass, tests wait for an event, for at most two seconds."""

import threading
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import polars as pl
import pytest

from analytics_service.clickhouse.connection import Store
from analytics_service.clickhouse.errors import Retries
from analytics_service.config.parsers import Intervals
from analytics_service.config.settings import Settings
from analytics_service.errors import SourceError
from analytics_service.market.prices import Price
from analytics_service.sources.base import Source
from analytics_service.sources.calls import Calls, OpenSource
from analytics_service.sources.simulated.source import SimulatedSource
from analytics_service.store.job_runs import JOB_RUNS, JobRun
from jobs.registry import JOBS
from jobs.rejections import Rejections
from jobs.scheduler import Measure, ScheduledJob, build, run, write_reports
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


def scheduled(store: Store, watch: Callable[[datetime], object], measure: Measure) -> ScheduledJob:
    """Runs of prices each minute."""
    source, retries = WatchedSource(watch), Retries(wait=lambda seconds: None)
    report = JobRun("prices", "host:1", 60, next_at=None)
    return ScheduledJob(JOBS["prices"], source, store, retries, Rejections(), measure, report)


def run_until_stopped(
    source: Source,
    store: Store,
    stop: threading.Event,
    settings: Settings,
    **options: Any,
) -> None:
    """Run the scheduler in a thread; fail when it is not stopped."""
    options["jobs"] = PRICES
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
    (failure,) = [record for record in caplog.records if record.levelname == "ERROR" and "prices" in record.message]
    assert failure.getMessage() == f"prices: no snapshot of {first:%Y-%m-%dT%H:%M:%SZ}: an unexpected error."
    assert failure.exc_info
    assert failure.exc_info[0] is pl.exceptions.PanicException
    told = said(store)[-1]
    assert (told["failed_at"], told["error"]) == (first.timestamp(), "an unexpected error.")


def test_a_run_that_lasts_beyond_the_next_instant_is_the_only_one(caplog: pytest.LogCaptureFixture) -> None:
    """The instants that it costs are counted."""
    stop, skipped, store = threading.Event(), threading.Event(), FakeStore()
    asked: list[datetime] = []

    def measure(job: str, outcome: str, seconds: float | None) -> None:
        if (outcome, seconds) == ("skipped", None):
            skipped.set()

    def watch(at: datetime) -> None:
        asked.append(at)
        if len(asked) == 1:
            assert skipped.wait(timeout=PATIENCE)
        else:
            stop.set()

    run_until_stopped(WatchedSource(watch), store, stop, EVERY_SECOND, measure=measure)
    first, second = asked
    assert second - first >= timedelta(seconds=2)
    assert store.instants == [first.timestamp(), second.timestamp()]
    assert "set back" not in caplog.text


def test_jobs_continue_from_a_clock_that_was_set_back(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("jobs.scheduler._REPORT_SECONDS", 0.01)
    stop, ahead = threading.Event(), iter([timedelta(hours=1)])
    run_until_stopped(
        WatchedSource(lambda at: stop.set()),
        FakeStore(),
        stop,
        EVERY_SECOND,
        clock=lambda: datetime.now(UTC) + next(ahead, timedelta()),
    )
    assert "The clock of this machine was set back" in caplog.text


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
    monkeypatch.setattr("analytics_service.sources.calls._LAST_SECONDS", 0.05)
    stop, go_on = threading.Event(), threading.Event()

    def watch(at: datetime) -> None:
        stop.set()
        go_on.wait(30)

    source = OpenSource(WatchedSource(watch), Calls("simulated:1", 300))
    run_until_stopped(source, FakeStore(), stop, Settings(every=Intervals(prices=86_400)))
    go_on.set()
    assert "simulated:1 has taken more than 0.05 s for prices as of " in caplog.text


def said(store: FakeStore) -> list[dict[str, Any]]:
    return [row for table, rows in store.inserts if table == JOB_RUNS for row in rows.to_dicts()]


def test_operators_are_told_of_failures_and_of_the_next_run() -> None:
    """The failure is still told after the next run has succeeded."""
    store, noon = FakeStore(), int(NOON.timestamp())

    def watch(at: datetime) -> None:
        if at == NOON:
            raise SourceError("The source is away.")

    job = scheduled(store, watch, lambda *run: None)
    for minute in range(2):
        assert not job.is_unreported
        job(NOON + minute * MINUTE)
        assert job.is_unreported
        write_reports(store, [(job, NOON + (minute + 1) * MINUTE)])
    facts = [
        (row["dataset"], row["interval_seconds"], row["next_at"], row["failed_at"], row["error"]) for row in said(store)
    ]
    why = "The source is away. It was asked for prices as of 2025-03-01T12:00:00Z."
    assert facts == [("prices", 60, noon + 60, noon, why), ("prices", 60, noon + 120, noon, why)]
    assert [(row["ran_at"], row["outcome"]) for row in said(store)] == [(noon, "failed"), (noon + 60, "done")]
    assert all(0 <= row["duration_ms"] < 60_000 for row in said(store))
