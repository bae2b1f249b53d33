"""Values that threads flight: who makes them, who waits, and for how long."""

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

import pytest
from cachetools import LRUCache

from analytics_service.concurrency import (
    DetachedSingleFlight,
    QuerySlots,
    SingleFlight,
    cap_timeout,
    deadline,
    locked_cached_property,
    remaining,
)
from analytics_service.errors import Busy, StoreUnavailable
from tests.processes import until

TIMEOUT = 30


class Maker:
    """Makes a value when it may, and counts how often."""

    def __init__(self, *errors: Exception) -> None:
        self.begun, self.go_on = threading.Event(), threading.Event()
        self.count = 0
        self._errors = [*errors]

    def __call__(self) -> int:
        self.count += 1
        self.begun.set()
        assert self.go_on.wait(TIMEOUT)
        if self._errors:
            raise self._errors.pop()
        return 7


def results_of_three(get: Callable[[], int], maker: Maker) -> list[Future[int]]:
    """What three threads get; two of them ask while the first makes it."""
    asking = threading.Barrier(3)

    def ask() -> int:
        asking.wait(TIMEOUT)
        return get()

    with ThreadPoolExecutor(3) as pool:
        first = pool.submit(get)
        assert maker.begun.wait(TIMEOUT)
        others = [pool.submit(ask) for _ in range(2)]
        asking.wait(TIMEOUT)
        maker.go_on.set()
    return [first, *others]


@pytest.mark.parametrize("kept", [{}, LRUCache(1)])
def test_a_kept_value_is_made_once_for_each_key(kept: dict[str, int]) -> None:
    flight, maker = SingleFlight(kept), Maker()
    assert [one.result() for one in results_of_three(lambda: flight.get("a", maker), maker)] == [7, 7, 7]
    assert flight.get("a", maker) == 7
    assert maker.count == 1
    assert flight.get("b", maker) == 7
    assert maker.count == 2


def test_other_keys_do_not_wait() -> None:
    flight, slow, quick = SingleFlight[int](), Maker(), Maker()
    quick.go_on.set()
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(flight.get, "a", slow)
        assert slow.begun.wait(TIMEOUT)
        assert flight.get("b", quick) == 7
        assert not first.done()
        slow.go_on.set()


class ObservedFuture(Future[int]):
    """A value that tells when a thread waits for it."""

    waiting = threading.Event()

    def result(self, timeout: float | None = None) -> int:
        self.waiting.set()
        return super().result(timeout)


def test_those_that_wait_share_a_failure_and_the_next_tries_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise they would try one after the other, and the last would wait for all of them."""
    monkeypatch.setattr("analytics_service.concurrency.Future", ObservedFuture)
    flight, maker = SingleFlight[int]({}), Maker(StoreUnavailable("away"))
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(flight.get, "a", maker)
        assert maker.begun.wait(TIMEOUT)
        second = pool.submit(flight.get, "a", maker)
        assert ObservedFuture.waiting.wait(TIMEOUT)
        maker.go_on.set()
        assert isinstance(first.exception(TIMEOUT), StoreUnavailable)
        assert second.exception(TIMEOUT) is first.exception()
    assert maker.count == 1
    assert flight.get("a", maker) == 7


def test_a_thread_waits_no_longer_than_its_time() -> None:
    flight, maker = SingleFlight[int](), Maker()
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(flight.get, "a", maker)
        assert maker.begun.wait(TIMEOUT)
        with deadline(0.01), pytest.raises(Busy):
            flight.get("a", maker)
        maker.go_on.set()
        assert first.result(TIMEOUT) == 7


def test_a_thread_waits_for_no_other_behind_a_closed_gate() -> None:
    """Whoever makes the value waits for a store that hangs."""
    flight, maker, slots = SingleFlight[int](), Maker(), QuerySlots(1)
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(flight.get, "a", maker)
        assert maker.begun.wait(TIMEOUT)
        slots.cause = "The store hangs."
        with deadline(TIMEOUT, slots), pytest.raises(StoreUnavailable, match="hangs"):
            flight.get("a", maker)
        maker.go_on.set()
        assert first.result(TIMEOUT) == 7


def test_who_would_take_the_last_threads_for_waiting_is_refused_at_once() -> None:
    flight, maker, slots = SingleFlight[int](), Maker(), QuerySlots(1, most_waiting=1)

    def waiting() -> int:
        with deadline(TIMEOUT, slots):
            return flight.get("a", maker)

    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(flight.get, "a", maker)
        assert maker.begun.wait(TIMEOUT)
        second = pool.submit(waiting)
        until(lambda: slots._places._value == 0)
        with pytest.raises(Busy):
            waiting()
        maker.go_on.set()
        assert (first.result(TIMEOUT), second.result(TIMEOUT), waiting()) == (7, 7, 7)


def test_what_is_made_apart_is_found_by_who_comes_later() -> None:
    """Its time is not that of who needs it first; and another value waits until it is made."""
    flight, maker = DetachedSingleFlight[int]({}), Maker()
    with deadline(0.01), pytest.raises(Busy):
        flight.get("a", lambda: maker() if remaining() is None else 0)
    assert maker.begun.wait(TIMEOUT)
    with deadline(0.01), pytest.raises(Busy):
        flight.get("b", lambda: 0)
    maker.go_on.set()
    assert (flight.get("a", maker), flight.get("c", lambda: 8), maker.count) == (7, 8, 1)


def test_a_budget_ends_with_its_block_and_belongs_to_its_thread() -> None:
    assert remaining() is None
    with deadline(60), ThreadPoolExecutor(1) as pool:
        assert 59 < (remaining() or 0) <= 60
        assert pool.submit(remaining).result(TIMEOUT) is None
        assert (cap_timeout(1), 59 < cap_timeout(90) <= 60) == (1, True)
        with deadline(0):
            assert remaining() == 0
            assert 0 < cap_timeout(1) < 0.01
    assert remaining() is None


class Whole:
    def __init__(self) -> None:
        self.make = Maker()

    @locked_cached_property
    def part(self) -> int:
        return self.make()


def test_a_part_is_made_once_for_each_instance() -> None:
    whole, other = Whole(), Whole()
    other.make.go_on.set()
    assert [one.result() for one in results_of_three(lambda: whole.part, whole.make)] == [7, 7, 7]
    assert (whole.part, other.part, whole.make.count, other.make.count) == (7, 7, 1, 1)
