"""Attributes that are made when they are first used."""

import threading
from concurrent.futures import ThreadPoolExecutor

from analytics_service.market.part import Part


class Whole:
    """It has a part, and makes it as it is told to."""

    def __init__(self) -> None:
        self.made: list[str] = []
        self.begun, self.go_on = threading.Event(), threading.Event()

    @Part
    def part(self) -> int:
        """How often it was made."""
        self.made.append(threading.current_thread().name)
        if len(self.made) == 1:
            self.begun.set()
            self.go_on.wait(30)
        return 7


def test_a_part_is_made_once() -> None:
    whole = Whole()
    whole.go_on.set()
    assert [whole.part, whole.part] == [7, 7]
    assert len(whole.made) == 1


def test_no_thread_waits_for_another_that_makes_the_same_part() -> None:
    whole, other = Whole(), Whole()
    other.go_on.set()
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(lambda: whole.part)
        assert whole.begun.wait(30)
        assert (whole.part, other.part) == (7, 7)
        assert not first.done()
        whole.go_on.set()
        assert first.result(30) == 7
