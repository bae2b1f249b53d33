"""Which heads readers are shown, how long they hold, and what is accepted of what was read."""

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from time import monotonic

import polars as pl
import pytest

from analytics_service.clickhouse.queries import Placeholders
from analytics_service.concurrency import deadline
from analytics_service.errors import BeingCorrected, Busy, StoreUnavailable, Superseded
from analytics_service.state.health import Monitor
from analytics_service.state.view import Views
from analytics_service.state.watcher import HeadWatcher
from analytics_service.store.job_runs import JobRun
from analytics_service.store.ledger import NONE, Head, PastHead, change_counts, require_unchanged
from tests.doubles import NOON, LedgerStore
from tests.processes import PATIENCE, slack, until

RUNNING = [JobRun(dataset, "host:1", interval, NOON) for dataset, interval in (("prices", 60), ("rates", 120))]


class Time:
    """Seconds that pass only when somebody pauses."""

    def __init__(self) -> None:
        self.now = 100.0
        self.pauses = 0

    def __call__(self) -> float:
        return self.now

    def pause(self, seconds: float) -> None:
        self.now += seconds
        self.pauses += 1


@pytest.fixture
def store() -> LedgerStore:
    return LedgerStore("prices", "rates")


@pytest.fixture
def time() -> Time:
    return Time()


@pytest.fixture
def heads(store: LedgerStore, time: Time) -> HeadWatcher:
    return HeadWatcher(store, interval=None, clock=time, pause=time.pause)


def fault_of(heads: HeadWatcher) -> str:
    """What is wrong at the last look; empty if nothing is."""
    try:
        return heads.last_look().outdated
    except StoreUnavailable as error:
        return str(error)


def test_heads_stay_the_same_object_until_a_look_sees_a_change(heads: HeadWatcher, store: LedgerStore) -> None:
    first = heads.shown()
    heads.look()
    assert heads.shown() is first
    store.change("prices", version=2)
    assert heads.shown() is first
    heads.look()
    assert heads.shown().head("prices").version == 2
    assert store.queries["read_ledger"] == 3


def test_known_heads_hold_for_five_minutes_without_the_store(
    heads: HeadWatcher, store: LedgerStore, time: Time
) -> None:
    heads.shown()
    store.away = True
    time.now += 300
    heads.look()
    assert heads.shown().head("prices").version == 1
    time.now += 0.1
    with pytest.raises(StoreUnavailable):
        heads.shown()
    store.away = False
    store.change("prices", version=3)
    heads.look()
    assert heads.shown().head("prices").version == 3


def test_what_schedulers_tell_is_read_every_half_minute_and_holds_while_it_cannot_be_read(time: Time) -> None:
    class Broken(LedgerStore):
        is_broken = False

        def query(self, query: str, parts: Placeholders = (), **parameters: object) -> pl.DataFrame:
            if self.is_broken and query == "read_job_runs":
                raise StoreUnavailable("it takes too long")
            return super().query(query, parts, **parameters)

    store = Broken("prices")
    heads = HeadWatcher(store, interval=None, clock=time, pause=time.pause)
    assert heads.intervals({"prices": 1}) == {"prices": 1}
    seen = []
    for every in (60, 120, 240, 480):
        store.job_runs = [JobRun("prices", "host:1", every, NOON)]
        store.is_broken = every == 480
        store.change("prices", version=every)
        heads.look()
        assert heads.shown().head("prices").version == every
        seen.append(heads.intervals({"prices": 1}))
        time.now += 15
    assert seen == [{"prices": 60}, {"prices": 60}, {"prices": 240}, {"prices": 240}]
    time.now += 30
    heads.look()
    assert (heads.intervals({"prices": 1}), fault_of(heads)) == ({"prices": 240}, "")


def test_anomalies_are_counted_every_five_minutes(time: Time) -> None:
    class Counting(LedgerStore):
        counts = 0

        def query(self, query: str, parts: Placeholders = (), **parameters: object) -> pl.DataFrame:
            self.counts += query == "count_anomalies"
            return super().query(query, parts, **parameters)

    store = Counting("prices")
    heads = HeadWatcher(store, interval=None, clock=time, pause=time.pause)
    seen = []
    for _ in range(602):
        heads.look()
        seen.append(store.counts)
        time.now += 1
    assert seen == [1] * 300 + [2] * 300 + [3] * 2


def test_a_question_fails_at_once_when_the_store_is_away_and_the_next_has_another_look_taken(
    store: LedgerStore,
) -> None:
    """The thread itself would look again in an hour."""
    heads = HeadWatcher(store, interval=3600)
    store.away = True
    with pytest.raises(StoreUnavailable, match="away"):
        heads.shown()
    store.away = False

    def knows() -> bool:
        with suppress(StoreUnavailable):
            return bool(heads.shown().heads)
        return False

    until(knows)


def test_the_last_look_says_why_the_store_cannot_be_read(heads: HeadWatcher, store: LedgerStore) -> None:
    assert fault_of(heads) == ""
    store.away = True
    heads.look()
    assert fault_of(heads) == "away"
    store.away, store.migrations = False, store.migrations[:-1]
    heads.look()
    assert fault_of(heads) == "the schema is not current"


def test_heads_are_as_old_as_the_question_to_a_slow_ledger(heads: HeadWatcher, store: LedgerStore, time: Time) -> None:
    def take_ten_seconds() -> None:
        time.now += 10

    store.on_look = take_ten_seconds
    heads.shown()
    time.now += 290
    heads.shown()
    time.now += 0.1
    with pytest.raises(StoreUnavailable):
        heads.shown()


def test_a_question_waits_for_another_look_when_the_first_takes_too_long(store: LedgerStore) -> None:
    """As it does in a new worker on a busy machine."""
    late = [Busy(), Busy(), Busy()]

    def look() -> None:
        if late:
            raise late.pop()

    store.on_look = look
    assert HeadWatcher(store, interval=0.01).shown().head("prices").version == 1


def test_a_probe_waits_a_moment_only_for_a_first_look_that_hangs() -> None:
    go_on, store = threading.Event(), LedgerStore("prices")
    store.on_look = lambda: bool(go_on.wait(30))  # type: ignore[assignment]
    heads, begun = HeadWatcher(store), monotonic()
    assert fault_of(heads) == "The ledger has not been read yet."
    assert monotonic() - begun < 2 * slack()
    go_on.set()
    until(lambda: fault_of(heads) == "")


def test_one_thread_looks_and_hurries_however_many_wait(store: LedgerStore) -> None:
    """So no look can overwrite what a later one has found. By itself it would look again in an hour."""
    lookers: set[str] = set()
    store.on_look = lambda: lookers.add(threading.current_thread().name)
    heads = HeadWatcher(store, interval=3600)
    assert heads.shown().head("prices").version == 1
    store.change("prices", version=2)

    def wait() -> None:
        while heads.shown().head("prices").version == 1:
            heads.wait()

    with ThreadPoolExecutor(4) as pool:
        for waiting in [pool.submit(wait) for _ in range(4)]:
            waiting.result(PATIENCE)
    assert lookers == {"heads"}


def test_requests_never_wait_for_a_look(store: LedgerStore) -> None:
    looking, go_on = threading.Event(), threading.Event()
    heads = HeadWatcher(store, interval=0.01)
    heads.shown()

    def hang() -> None:
        looking.set()
        go_on.wait(30)

    store.on_look = hang
    assert looking.wait(30)
    assert heads.shown().head("prices").version == 1
    go_on.set()


def test_a_dataset_that_is_being_rewritten_keeps_its_head(heads: HeadWatcher, store: LedgerStore) -> None:
    before = heads.shown().head("prices")
    store.rewrite("prices")
    # A tick may end while a rewrite is under way; it is shown afterwards.
    store.change("prices", version=5, runs=2).change("rates", version=7)
    heads.look()
    assert heads.shown().head("prices") == before
    assert heads.shown().head("rates").version == 7
    store.open.clear()
    heads.look()
    assert heads.shown().head("prices") == Head("prices", NOON, NOON, 5, 2, 1)


def test_a_dataset_that_is_being_rewritten_as_the_process_starts_is_not_shown_which_is_a_fault(
    heads: HeadWatcher, store: LedgerStore
) -> None:
    """Rule 1.3."""
    store.job_runs = RUNNING
    store.rewrite("prices")
    with pytest.raises(Superseded):
        heads.shown().head("prices")
    assert heads.shown().head("rates").version == 1
    noon = datetime.fromtimestamp(NOON, UTC)
    monitor = Monitor(heads, lambda: {"prices": 60, "rates": 60}, lambda: noon, is_configured=True)
    assert monitor.check().faults == ["prices cannot be shown"]
    store.open.clear()
    heads.look()
    assert monitor.check().faults == []


def test_a_host_answers_from_memory_for_five_minutes_after_its_last_look(
    heads: HeadWatcher, store: LedgerStore, time: Time
) -> None:
    """Rule 1.3. Until then, the rest of its health is as it was last."""
    noon = datetime.fromtimestamp(NOON, UTC)
    monitor = Monitor(heads, lambda: {"prices": 60}, lambda: noon, is_configured=True, is_filling=lambda: True)
    heads.look()
    store.away = True
    time.now += 300
    heads.look()
    status = monitor.check()
    assert (status.faults, monitor.obstacles()) == (["the store cannot be reached"], [])
    assert (status.schema_current, [one.dataset for one in status.datasets]) == (True, ["prices", "rates"])
    time.now += 1
    assert monitor.obstacles() == ["the store cannot be reached"]
    status = monitor.check()
    # The past may still be filled in, whatever the store says.
    assert (status.datasets, status.filling) == ((), True)


def test_late_snapshots_are_a_fault_and_keep_a_host_from_answering_from_an_age_on_if_that_is_set(
    heads: HeadWatcher, store: LedgerStore
) -> None:
    """Prices of a minute are late from 301 s on, rates of two minutes from 601 s on."""
    store.job_runs = RUNNING
    heads.look()

    def obstacles(age: int, ready_max_age: int | None) -> list[str]:
        monitor = Monitor(
            heads,
            lambda: {"prices": 60, "rates": 120},
            lambda: datetime.fromtimestamp(NOON + age, UTC),
            is_configured=True,
            ready_max_age=ready_max_age,
        )
        assert monitor.check().faults == [f"snapshots of {dataset} are not fresh" for dataset in late]
        return monitor.obstacles()

    late = ["prices"]
    assert obstacles(301, None) == obstacles(301, 301) == []
    assert obstacles(301, 60) == ["snapshots of prices are not fresh"]
    late = ["prices", "rates"]
    assert obstacles(601, 60) == [f"snapshots of {dataset} are not fresh" for dataset in late]


# What was read as of a head is accepted unless a rewrite of the dataset was announced since.


def test_what_was_read_stands_when_nothing_intervened(store: LedgerStore) -> None:
    head = store.heads["prices"]
    require_unchanged(store, head)
    # Runs that add to the end of history are none of its business, and neither are other datasets.
    store.change("prices", version=2, runs=2, at=NOON + 60, last_observed_at=NOON + 60)
    store.rewrite("rates")
    require_unchanged(store, head)


def test_what_was_read_is_refused_when_a_rewrite_intervened(store: LedgerStore) -> None:
    before = store.heads["prices"]
    store.rewrite("prices")
    for head in (before, store.heads["prices"]):
        with pytest.raises(Superseded):
            require_unchanged(store, head)
    store.open.clear()
    with pytest.raises(Superseded):
        require_unchanged(store, before)


# Requests that need the store wait for a rewrite to finish, and no longer than they have time.


def read(views: Views, store: LedgerStore) -> int:
    """The version that a request shows which must read from the store."""

    while True:
        try:
            head = views.newest().head("prices")
            require_unchanged(store, head)
        except Superseded:
            views.wait_for_rewrite()
        else:
            return head.version


def test_a_request_waits_until_a_rewrite_has_finished(heads: HeadWatcher, store: LedgerStore, time: Time) -> None:
    views = Views(store, heads)
    assert read(views, store) == 1
    store.rewrite("prices")

    def finish_at_104() -> None:
        if time.now >= 104:
            store.open.clear()
            store.change("prices", version=2, runs=2)

    store.on_look = finish_at_104
    assert read(views, store) == 2
    assert 104 <= time.now < 104.5


def test_a_request_gives_up_when_its_time_is_over(heads: HeadWatcher, store: LedgerStore) -> None:
    views = Views(store, heads)
    store.rewrite("prices")
    with deadline(0), pytest.raises(BeingCorrected):
        read(views, store)


def test_what_later_snapshots_have_followed_is_changed_by_rewrites_and_losses_only() -> None:
    """As long as jobs may be late for it, any snapshot may change it."""
    newest = Head("prices", NOON, NOON, version=5, runs=7, rewrites=2)
    closed = PastHead("prices", NOON - 60, NOON - 60, version=3, runs=0, rewrites=2)
    later = replace(newest, at=NOON + 60, runs=8)
    seen = (newest, later, replace(later, rewrites=3), replace(later, losses=9), None)
    assert [closed.is_current(head) for head in seen] == [True, True, False, False, False]
    assert [replace(closed, open_with=newest).is_current(head) for head in seen] == [True, *[False] * 4]
    nothing = PastHead("prices", 0, 0, 0, 0, *change_counts(None))
    assert (nothing.is_current(None), nothing.is_current(newest)) == (True, False)


def test_a_moment_is_settled_once_a_later_observation_has_followed_it_and_assets_are_described_as_of_it() -> None:
    """A later snapshot alone may be one that had nothing new to observe."""
    newest = Head("prices", NOON, NOON - 30, version=5, runs=7)
    past = PastHead("prices", NOON - 90, NOON - 90, version=3, runs=0, open_with=newest)
    assert [past.awaits_jobs_only(NOON - seconds) for seconds in (31, 30, 29)] == [True, False, False]
    assert replace(past, open_with=None).awaits_jobs_only(NOON - 29)
    assert not replace(past, at=NONE).awaits_jobs_only(NOON - 31)


def test_of_two_states_a_rewrite_a_version_a_run_or_a_loss_more_is_the_later_one() -> None:
    """A backup of an older version may be restored, which is a rewrite."""
    head = Head("prices", NOON, NOON, version=5, runs=7, rewrites=2)
    later = [replace(head, runs=8), replace(head, version=6), replace(head, version=4, runs=1, rewrites=3)]
    later.append(replace(head, losses=9))
    assert [one.follows(head) for one in [*later, head]] == [*[True] * 4, False]
    assert not any(head.follows(one) for one in later)
