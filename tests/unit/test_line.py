"""The line before the store: who has a turn, who waits, and who is refused."""

import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, nullcontext

import pytest

from analytics_service.concurrency import QuerySlots, deadline
from analytics_service.errors import Busy, StoreUnavailable
from tests.processes import until

TIMEOUT = 30


class Visitor:
    """A request that has its turn until it may go on."""

    def __init__(self, line: QuerySlots, seconds: float = TIMEOUT) -> None:
        self.begun, self.go_on = threading.Event(), threading.Event()
        self._line, self._seconds = line, seconds

    def __call__(self) -> None:
        with deadline(self._seconds, self._line), self._line.acquire():
            self.begun.set()
            assert self.go_on.wait(TIMEOUT)


@contextmanager
def queued(line: QuerySlots, count: int) -> Iterator[list[tuple[Visitor, Future[None]]]]:
    """So many requests, in the order in which they came; all may go on at the end."""
    visitors = [Visitor(line) for _ in range(count)]
    with ThreadPoolExecutor(count) as pool:
        try:
            came: list[tuple[Visitor, Future[None]]] = []
            for visitor in visitors:
                waited = len(line._waiting)
                came.append((visitor, pool.submit(visitor)))
                until(lambda visitor=visitor, waited=waited: visitor.begun.is_set() or len(line._waiting) > waited)
            yield came
        finally:
            for visitor in visitors:
                visitor.go_on.set()


def test_so_many_have_a_turn_and_others_follow_in_order() -> None:
    with queued(QuerySlots(2), 5) as came:
        for turn in range(2, 5):
            assert [visitor.begun.is_set() for visitor, _ in came] == [True] * turn + [False] * (5 - turn)
            # One of the first leaves, and the next has its turn.
            came[turn - 2][0].go_on.set()
            assert came[turn][0].begun.wait(TIMEOUT)


def test_the_oldest_request_is_next() -> None:
    """A request of many queries would otherwise wait anew behind all others for each of them."""
    line = QuerySlots(1)
    with queued(line, 2) as came, ThreadPoolExecutor(1) as pool:
        older = Visitor(line, TIMEOUT / 2)
        pool.submit(older)
        until(lambda: len(line._waiting) == 2)
        came[0][0].go_on.set()
        assert older.begun.wait(TIMEOUT)
        assert not came[1][0].begun.is_set()
        older.go_on.set()


def test_a_request_whose_time_is_over_leaves_the_line() -> None:
    line = QuerySlots(1)
    with queued(line, 1):
        with deadline(0.01, line), pytest.raises(Busy, match="busy"), line.acquire():
            pytest.fail("It had a turn.")
        assert not line._waiting
    with deadline(0.01, line), line.acquire():
        assert line._free == 0


def test_a_turn_that_comes_as_the_time_ends_goes_to_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    line = QuerySlots(1)

    def too_late(turn: Future[None]) -> None:
        assert turn.done()
        raise Busy

    monkeypatch.setattr(line, "result", too_late)
    with deadline(TIMEOUT, line), pytest.raises(Busy), line.acquire():
        pytest.fail("It had a turn.")
    assert line._free == 1


def test_a_closed_line_refuses_all_at_once_until_it_opens() -> None:
    line = QuerySlots(1)
    with queued(line, 3) as came:
        line.cause = "The store does not answer."
        for _, waiting in came[1:]:
            assert isinstance(waiting.exception(TIMEOUT), StoreUnavailable)
        with deadline(TIMEOUT, line), pytest.raises(StoreUnavailable, match="does not answer"), line.acquire():
            pytest.fail("It had a turn.")
        came[0][0].go_on.set()
        came[0][1].result(TIMEOUT)
        # Although there is a turn.
        with deadline(TIMEOUT, line), pytest.raises(StoreUnavailable, match="does not answer"), line.acquire():
            pytest.fail("It had a turn.")
        assert isinstance(line.refusal(), StoreUnavailable)
        line.cause = ""
        assert isinstance(line.refusal(), Busy)
        with deadline(TIMEOUT, line), line.acquire():
            assert line._free == 0


def test_who_finds_too_many_waiting_is_refused_at_once() -> None:
    line = QuerySlots(1, 1)
    with queued(line, 2), deadline(TIMEOUT, line), pytest.raises(Busy), line.acquire():
        pytest.fail("It had a turn.")
    # The one that waited has left room for another.
    with queued(line, 2) as came:
        pass
    for _, visit in came:
        visit.result(TIMEOUT)


@pytest.mark.parametrize("has_budget", [False, True])
def test_threads_that_answer_no_request_do_not_wait(has_budget: bool) -> None:
    line = QuerySlots(1)
    line.cause = "away"
    with deadline(1) if has_budget else nullcontext(), line.acquire():
        assert line._free == 1
