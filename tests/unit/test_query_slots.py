"""The query slots before the store: who has a slot, who waits, and who is refused."""

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
    """A request that has its slot until it may go on."""

    def __init__(self, slots: QuerySlots, seconds: float = TIMEOUT) -> None:
        self.begun, self.go_on = threading.Event(), threading.Event()
        self._slots, self._seconds = slots, seconds

    def __call__(self) -> None:
        with deadline(self._seconds, self._slots), self._slots.acquire():
            self.begun.set()
            assert self.go_on.wait(TIMEOUT)


@contextmanager
def queued(slots: QuerySlots, count: int) -> Iterator[list[tuple[Visitor, Future[None]]]]:
    """So many requests, in the order in which they came; all may go on at the end."""
    visitors = [Visitor(slots) for _ in range(count)]
    with ThreadPoolExecutor(count) as pool:
        try:
            came: list[tuple[Visitor, Future[None]]] = []
            for visitor in visitors:
                waited = len(slots._waiting)
                came.append((visitor, pool.submit(visitor)))
                until(lambda visitor=visitor, waited=waited: visitor.begun.is_set() or len(slots._waiting) > waited)
            yield came
        finally:
            for visitor in visitors:
                visitor.go_on.set()


def test_so_many_have_a_turn_and_others_follow_in_order() -> None:
    with queued(QuerySlots(2), 5) as came:
        for turn in range(2, 5):
            assert [visitor.begun.is_set() for visitor, _ in came] == [True] * turn + [False] * (5 - turn)
            # One of the first leaves, and the next has its slot.
            came[turn - 2][0].go_on.set()
            assert came[turn][0].begun.wait(TIMEOUT)


def test_the_oldest_request_is_next() -> None:
    """A request of many queries would otherwise wait anew behind all others for each of them."""
    slots = QuerySlots(1)
    with queued(slots, 2) as came, ThreadPoolExecutor(1) as pool:
        older = Visitor(slots, TIMEOUT / 2)
        pool.submit(older)
        until(lambda: len(slots._waiting) == 2)
        came[0][0].go_on.set()
        assert older.begun.wait(TIMEOUT)
        assert not came[1][0].begun.is_set()
        older.go_on.set()


def test_a_request_whose_time_is_over_leaves_the_line() -> None:
    slots = QuerySlots(1)
    with queued(slots, 1):
        with deadline(0.01, slots), pytest.raises(Busy, match="busy"), slots.acquire():
            pytest.fail("It had a slot.")
        assert not slots._waiting
    with deadline(0.01, slots), slots.acquire():
        assert slots._free == 0


def test_a_turn_that_comes_as_the_time_ends_goes_to_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    slots = QuerySlots(1)

    def too_late(slot: Future[None]) -> None:
        assert slot.done()
        raise Busy

    monkeypatch.setattr(slots, "result", too_late)
    with deadline(TIMEOUT, slots), pytest.raises(Busy), slots.acquire():
        pytest.fail("It had a slot.")
    assert slots._free == 1


def test_a_closed_line_refuses_all_at_once_until_it_opens() -> None:
    slots = QuerySlots(1)
    with queued(slots, 3) as came:
        slots.cause = "The store does not answer."
        for _, waiting in came[1:]:
            assert isinstance(waiting.exception(TIMEOUT), StoreUnavailable)
        with deadline(TIMEOUT, slots), pytest.raises(StoreUnavailable, match="does not answer"), slots.acquire():
            pytest.fail("It had a slot.")
        came[0][0].go_on.set()
        came[0][1].result(TIMEOUT)
        # Although there is a slot.
        with deadline(TIMEOUT, slots), pytest.raises(StoreUnavailable, match="does not answer"), slots.acquire():
            pytest.fail("It had a slot.")
        assert isinstance(slots.refusal(), StoreUnavailable)
        slots.cause = ""
        assert isinstance(slots.refusal(), Busy)
        with deadline(TIMEOUT, slots), slots.acquire():
            assert slots._free == 0


def test_who_finds_too_many_waiting_is_refused_at_once() -> None:
    slots = QuerySlots(1, 1)
    with queued(slots, 2), deadline(TIMEOUT, slots), pytest.raises(Busy), slots.acquire():
        pytest.fail("It had a slot.")
    # The one that waited has left room for another.
    with queued(slots, 2) as came:
        pass
    for _, visit in came:
        visit.result(TIMEOUT)


@pytest.mark.parametrize("has_budget", [False, True])
def test_threads_that_answer_no_request_do_not_wait(has_budget: bool) -> None:
    slots = QuerySlots(1)
    slots.cause = "away"
    with deadline(1) if has_budget else nullcontext(), slots.acquire():
        assert slots._free == 1
