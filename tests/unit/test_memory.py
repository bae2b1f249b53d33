"""Frames in memory: no more than fit, the least recently used ones make room, and what loads them in the background."""

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import polars as pl
import pytest
from polars.exceptions import PanicException

from analytics_service.errors import StoreUnavailable, Superseded
from analytics_service.history.memory import Memory
from analytics_service.history.segments import ROW_BYTES, PinnedHistory, Segment
from analytics_service.market.instants import next_month
from analytics_service.store.datasets.histories import LOANS, PRICES
from analytics_service.store.ledger import Head

# Months of 2025, the oldest first; the newest observation is in the last one.
MONTHS = [1735689600, 1738368000, 1740787200, 1743465600]
NOTHING: Any = None


def frame(begin: int, end: int = 0) -> Segment:
    rows = pl.DataFrame({"key": [1], "count": [1]}, schema={"key": pl.Int64, "count": pl.UInt32})
    return Segment(["token;a"], begin, end or next_month(begin), rows)


SIZE = frame(0).size


@dataclass(frozen=True)
class Made(PinnedHistory):
    """A history whose frames are made up."""

    made: list[int] = field(default_factory=list, compare=False)
    errors: dict[int, BaseException] = field(default_factory=dict, compare=False)
    counts: dict[int, int] = field(default_factory=dict, compare=False)
    begun: threading.Event = field(default_factory=threading.Event, compare=False)
    go_on: threading.Event = field(default_factory=threading.Event, compare=False)

    def segment(self, ids: Sequence[str], bounds: Sequence[int], end: int, *, whole: bool = True) -> Segment:
        self.begun.set()
        assert self.go_on.wait(30)
        self.made.append(bounds[0])
        if error := self.errors.get(bounds[0]):
            raise error
        return frame(bounds[0])

    def count_rollups(self, start: int, end: int, most: int) -> int:
        return min(self.counts.get(start, 0), most)


def pinned(generation: int = 1, *, held: bool = False) -> Made:
    """A history of prices; it makes frames when told to, or at once."""
    head = Head("prices", MONTHS[3] + 5000, MONTHS[3] + 5000, version=1, runs=1)
    made = Made(NOTHING, PRICES, head, {"token;a": MONTHS[0] + 60}, generation)
    if not held:
        made.go_on.set()
    return made


def memory_of(limit: int, *months: int) -> tuple[Memory, Made]:
    memory, own = Memory(limit), pinned()
    memory.renew(own, 0)
    for month in months:
        memory.put(own, month, frame(month))
    return memory, own


def there(memory: Memory, own: PinnedHistory) -> list[int]:
    """The months that are there. Looking counts as use."""
    return sorted(memory.find(own, MONTHS))


def test_the_least_recently_used_months_make_room() -> None:
    memory, own = memory_of(3 * SIZE, *MONTHS[:3])
    memory.find(own, MONTHS[:1])
    memory.put(own, MONTHS[3], frame(MONTHS[3]))
    assert there(memory, own) == [MONTHS[0], MONTHS[2], MONTHS[3]]


def test_a_frame_larger_than_all_memory_is_not_kept() -> None:
    memory, own = memory_of(SIZE - 1, MONTHS[0])
    assert there(memory, own) == []


def test_histories_are_told_apart() -> None:
    memory, own = memory_of(10 * SIZE, MONTHS[0])
    other = replace(own, history=LOANS)
    memory.renew(other, 0)
    assert (there(memory, own), there(memory, other)) == ([MONTHS[0]], [])


def test_a_later_generation_keeps_what_ends_before_the_change_and_takes_no_older_frames() -> None:
    memory, own = memory_of(10 * SIZE, *MONTHS[:3])
    later = pinned(2)
    memory.renew(later, MONTHS[1] + 100)
    memory.put(own, MONTHS[3], frame(MONTHS[3]))
    assert there(memory, later) == [MONTHS[0]]
    with pytest.raises(Superseded):
        memory.find(own, MONTHS)


def test_all_months_are_loaded_the_newest_first_as_long_as_there_is_room() -> None:
    for room, kept in ((10, [3, 2, 1, 0]), (2, [3, 2])):
        memory, own = memory_of(room * SIZE)
        memory.fill(own)
        memory.wait()
        assert own.made == [MONTHS[number] for number in kept]
        assert there(memory, own) == sorted(own.made)


def test_what_a_page_lacked_is_loaded_before_the_rest_and_once() -> None:
    memory, own = memory_of(10 * SIZE)
    held = replace(own, go_on=threading.Event())
    memory.fill(held)
    assert held.begun.wait(30)
    for _ in range(3):
        memory.load(held, [MONTHS[0], MONTHS[3]], 0)
    held.go_on.set()
    memory.wait()
    assert held.made == [MONTHS[3], MONTHS[0], MONTHS[2], MONTHS[1]]


def test_what_a_page_lacked_makes_others_give_way_unless_its_months_do_not_fit_together() -> None:
    memory, own = memory_of(2 * SIZE, *MONTHS[:2])
    memory.load(own, MONTHS[2:], 1)
    memory.wait()
    assert (own.made, there(memory, own)) == ([], MONTHS[:2])
    memory.load(own, MONTHS[2:], 0)
    memory.wait()
    assert there(memory, own) == MONTHS[2:]


def test_a_month_is_loaded_again_only_if_it_has_more_rollups() -> None:
    memory, own = memory_of(10 * SIZE, MONTHS[2])
    memory.put(own, MONTHS[3], frame(MONTHS[3], MONTHS[3] + 900))
    memory.load(own, MONTHS[2:], 0)
    memory.wait()
    assert own.made == [MONTHS[3]]


def test_a_month_with_too_many_rollups_is_not_loaded_and_not_asked_for_again() -> None:
    memory, own = memory_of(10 * ROW_BYTES)
    own.counts.update({MONTHS[3]: 11, MONTHS[2]: 10})
    memory.fill(own)
    memory.wait()
    assert there(memory, own) == sorted(own.made) == MONTHS[:3]
    # Nor are the other months of a page that needs it.
    own.counts.clear()
    memory.renew(own, 0)
    memory.load(own, MONTHS[2:], 0)
    memory.wait()
    assert there(memory, own) == []


def test_a_month_that_outgrows_memory_is_evicted() -> None:
    memory, own = memory_of(10 * ROW_BYTES, MONTHS[2])
    memory.put(own, MONTHS[3], frame(MONTHS[3], MONTHS[3] + 900))
    own.counts[MONTHS[3]] = 11
    memory.load(own, MONTHS[3:], 1)
    memory.wait()
    assert (own.made, there(memory, own)) == ([], MONTHS[2:3])


@pytest.mark.parametrize(
    ("error", "made", "said", "pause"),
    [
        # The rest would fail too.
        (StoreUnavailable("gone"), [3], "History is not cached for now: gone", 60),
        (Superseded("rewritten"), [3, 2, 1, 0], "", 0),
        (ValueError("a bug"), [3, 2, 1, 0], "Loading a month of history failed", 60),
        (PanicException("a panic"), [3, 2, 1, 0], "Loading a month of history failed", 60),
    ],
)
def test_a_month_that_cannot_be_loaded_is_left_out_for_a_while(
    caplog: pytest.LogCaptureFixture, error: BaseException, made: list[int], said: str, pause: int
) -> None:
    now, own = [1000.0], pinned()
    memory = Memory(10 * SIZE, clock=lambda: now[0])
    memory.renew(own, 0)
    own.errors[MONTHS[3]] = error
    memory.fill(own)
    memory.wait()
    assert own.made == [MONTHS[number] for number in made]
    assert there(memory, own) == sorted(own.made[1:])
    assert [one.getMessage() for one in caplog.records] == ([said] if said else [])
    own.errors.clear()
    for second in range(max(pause - 1, 0), pause + 1):
        now[0] = 1000.0 + second
        memory.load(own, MONTHS[3:], 0)
        memory.wait()
        assert (MONTHS[3] in there(memory, own)) == (second >= pause)


def test_the_bytes_in_use_are_told() -> None:
    told: list[int] = []
    memory, own = Memory(10 * SIZE, told.append), pinned()
    memory.renew(own, 0)
    memory.put(own, MONTHS[0], frame(MONTHS[0]))
    memory.renew(pinned(2), 0)
    assert told == [0, SIZE, 0]
