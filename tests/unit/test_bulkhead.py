"""How many requests wait for the store at the same time, and what becomes of the others."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager

import pytest

from analytics_service.errors import StoreUnavailable
from analytics_service.http.answer import Answer, Validators
from analytics_service.http.answers import Answers, CacheKey
from analytics_service.http.coding import IDENTITY
from analytics_service.store.bulkhead import Bulkhead
from analytics_service.store.shared_lock import SharedLock


@contextmanager
def waiting(bulkhead: Bulkhead, count: int) -> Iterator[threading.Event]:
    """So many requests that have their turn until the event, or at most until the end of the block."""
    go_on, begun = threading.Event(), threading.Semaphore(0)

    def wait() -> None:
        with bulkhead.request():
            bulkhead.enter()
            begun.release()
            go_on.wait(30)

    threads = [threading.Thread(target=wait) for _ in range(count)]
    for thread in threads:
        thread.start()
    for _ in threads:
        assert begun.acquire(timeout=30)
    try:
        yield go_on
    finally:
        go_on.set()
        for thread in threads:
            thread.join()


def take(bulkhead: Bulkhead) -> None:
    """A request that needs the store."""
    with bulkhead.request():
        bulkhead.enter()


@pytest.mark.parametrize(("threads", "most"), [(1, 1), (2, 1), (3, 1), (4, 2), (8, 5), (16, 10), (256, 160)])
def test_of_threads_five_eighths_may_wait_for_the_store_and_further_requests_are_refused(
    threads: int, most: int
) -> None:
    bulkhead = Bulkhead(threads)
    with waiting(bulkhead, most), pytest.raises(StoreUnavailable, match="Too many"):
        take(bulkhead)
    take(bulkhead)


def test_requests_wait_for_their_turn_only_while_the_store_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("analytics_service.store.bulkhead._PATIENCE", 30)
    bulkhead = Bulkhead(threads=2)
    with waiting(bulkhead, 1) as go_on:
        threading.Timer(0.1, go_on.set).start()
        take(bulkhead)
    monkeypatch.setattr("analytics_service.store.bulkhead._PATIENCE", 0.01)
    with waiting(bulkhead, 1) as go_on:
        with pytest.raises(StoreUnavailable):
            take(bulkhead)
        monkeypatch.setattr("analytics_service.store.bulkhead._PATIENCE", 30)
        with pytest.raises(StoreUnavailable):
            take(bulkhead)
        bulkhead.answered()
        threading.Timer(0.1, go_on.set).start()
        take(bulkhead)


def test_with_a_quarter_at_large_pages_one_of_three_threads_or_more_is_left() -> None:
    """The settings allow 1 to 256 threads."""
    for threads in range(3, 257):
        most = Bulkhead(threads)._free._value
        assert most + max(threads // 4, 1) < threads


def test_a_request_counts_once_however_often_it_needs_the_store() -> None:
    bulkhead = Bulkhead(threads=2)
    with bulkhead.request():
        bulkhead.enter()
        bulkhead.enter()
    take(bulkhead)


def test_threads_that_answer_no_request_do_not_count() -> None:
    bulkhead = Bulkhead(threads=2)
    with waiting(bulkhead, 1):
        bulkhead.enter()


@pytest.mark.parametrize("needs_store", [True, False])
def test_who_waits_for_an_answer_counts_if_its_rendering_waits_for_the_store(needs_store: bool) -> None:
    """One request renders, another wants the same answer; only one thread may wait."""
    bulkhead = Bulkhead(threads=2)
    answers, rendering, go_on = Answers(10**6, bulkhead), threading.Event(), threading.Event()
    answer = Answer(Validators('"x"', 1), IDENTITY, b"x")

    def render() -> Answer:
        if needs_store:
            bulkhead.enter()
        rendering.set()
        go_on.wait(30)
        return answer

    def get() -> Answer:
        with bulkhead.request():
            key = CacheKey("/", "", IDENTITY)
            with answers.rendering(key):
                return answers.find_for_state(key, 1) or answers.keep(key, render())

    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(get)
        assert rendering.wait(30)
        second: Future[Answer] = pool.submit(get)
        if needs_store:
            with pytest.raises(StoreUnavailable):
                second.result(30)
        go_on.set()
        assert first.result(30) is answer
        if not needs_store:
            assert second.result(30) is answer


class ObservedLock:
    """A lock that reports each thread before it waits."""

    def __init__(self) -> None:
        self.came = threading.Semaphore(0)
        self._lock = threading.Lock()

    def __enter__(self) -> None:
        self.came.release()
        self._lock.acquire()

    def __exit__(self, *error: object) -> None:
        self._lock.release()


def one_works_while_two_wait(shared: SharedLock, work: Callable[[], None]) -> list[Future[None]]:
    """The results of three threads. The first works when the two others wait for it."""
    lock = shared._lock = ObservedLock()  # type: ignore[assignment]
    begun, go_on = threading.Event(), threading.Event()

    def take() -> None:
        with shared.held():
            begun.set()
            assert go_on.wait(30)
            work()

    with ThreadPoolExecutor(3) as pool:
        asked = [pool.submit(take)]
        assert begun.wait(30)
        asked += [pool.submit(take) for _ in range(2)]
        assert all(lock.came.acquire(timeout=30) for _ in asked)
        go_on.set()
    return asked


def test_those_that_wait_while_the_work_fails_get_its_error_and_later_ones_try_again() -> None:
    shared, done = SharedLock(), []

    def fail() -> None:
        done.append("failed")
        raise StoreUnavailable("too slow")

    assert len({id(one.exception()) for one in one_works_while_two_wait(shared, fail)}) == 1
    assert done == ["failed"]
    with shared.held():
        done.append("tried again")
    assert done == ["failed", "tried again"]


def test_those_that_wait_while_the_work_succeeds_do_theirs() -> None:
    shared, done = SharedLock(), []
    with pytest.raises(StoreUnavailable), shared.held():
        raise StoreUnavailable("too slow")
    assert [one.result() for one in one_works_while_two_wait(shared, lambda: done.append("done"))] == [None] * 3
    assert done == ["done"] * 3
