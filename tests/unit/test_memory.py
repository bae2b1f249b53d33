"""Blocks in memory: no more than fit, the least recently used ones make room, and urgent ones are loaded first."""

import threading
import time
from collections.abc import Callable

import polars as pl
import pytest
from polars.exceptions import PanicException

from analytics_service.errors import StoreUnavailable, Superseded
from analytics_service.history.blocks import Block, make_block
from analytics_service.history.memory import Key, Loader, Memory, Need
from analytics_service.history.slots import Slot

HOURS = 24
KEYS = [Key("price", Slot(HOURS, number), 0) for number in range(4)]


def block() -> Block:
    """A block of one series."""
    return make_block(["token;a"], pl.DataFrame({"value": ["1"] * HOURS, "observed_at": [1] * HOURS}))


SIZE = block().size


def filled(limit: int = 100 * SIZE, count: int = 4, clock: Callable[[], float] = time.monotonic) -> Memory:
    """A memory with the first blocks of prices."""
    memory = Memory(limit, clock=clock)
    for key in KEYS[:count]:
        memory.put(key, block())
    return memory


def there(memory: Memory) -> list[Key]:
    return sorted(memory.keys("price"), key=lambda key: key.slot.number)


def load_into(loaded: list[Key], key: Key) -> Block:
    loaded.append(key)
    return block()


def test_blocks_are_told_apart_by_history_slot_and_rewrite() -> None:
    memory = filled(count=1)
    assert memory.get(KEYS[0]) is not None
    for other in (KEYS[1], KEYS[0]._replace(rewrite=1), KEYS[0]._replace(table="liquidations")):
        assert memory.get(other) is None
    assert memory.keys("loans") == []


def test_the_least_recently_used_blocks_make_room() -> None:
    memory = filled(3 * SIZE, 3)
    memory.get(KEYS[0])
    memory.put(KEYS[3], block())
    assert there(memory) == [KEYS[0], KEYS[2], KEYS[3]]


def test_a_block_that_is_replaced_or_dropped_takes_no_room() -> None:
    memory = filled(2 * SIZE, 2)
    memory.put(KEYS[1], block())
    memory.drop([KEYS[0], KEYS[3]])
    memory.put(KEYS[2], block())
    assert there(memory) == KEYS[1:3]


def test_a_block_larger_than_all_memory_is_not_kept() -> None:
    memory = Memory(SIZE - 1)
    memory.put(KEYS[0], block())
    assert there(memory) == []


def test_a_memory_of_nothing_loads_nothing() -> None:
    loaded: list[Key] = []
    loader = Loader(Memory(0))
    loader.request(KEYS, lambda key: load_into(loaded, key), Need.URGENT)
    loader.wait()
    assert loaded == []


def test_a_block_that_was_too_large_is_not_loaded_again_and_others_are() -> None:
    loaded: list[Key] = []
    loader = Loader(Memory(SIZE))

    def load(key: Key) -> Block:
        found = load_into(loaded, key)
        return found.followed_by(found.ids, found.values) if key == KEYS[0] else found

    for key in (KEYS[0], KEYS[0], KEYS[1], KEYS[0]):
        loader.request([key], load, Need.URGENT)
        loader.wait()
    assert (loaded, there(loader.memory)) == (KEYS[:2], KEYS[1:2])


def test_what_is_requested_is_loaded_and_kept() -> None:
    loaded: list[Key] = []
    loader = Loader(Memory(100 * SIZE))
    loader.request(KEYS, lambda key: load_into(loaded, key), Need.LATER)
    loader.wait()
    assert (loaded, there(loader.memory)) == (KEYS, KEYS)


def test_blocks_are_loaded_once_there_is_a_thread_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    loaded: list[Key] = []
    loader = Loader(Memory(100 * SIZE))

    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refuse)
        loader.request(KEYS[:1], lambda key: load_into(loaded, key), Need.URGENT)
        loader.wait()
    loader.request(KEYS[1:2], lambda key: load_into(loaded, key), Need.LATER)
    loader.wait()
    assert loaded == KEYS[:2]


def test_what_is_not_urgent_is_loaded_only_while_there_is_room() -> None:
    loaded: list[Key] = []
    loader = Loader(filled(2 * SIZE, 2))
    loader.request(KEYS[2:3], lambda key: load_into(loaded, key), Need.LATER)
    loader.wait()
    assert loaded == []
    loader.request(KEYS[2:3], lambda key: load_into(loaded, key), Need.URGENT)
    loader.wait()
    assert (loaded, there(loader.memory)) == (KEYS[2:3], KEYS[1:3])


def test_what_is_useful_pushes_out_only_what_was_not_used_for_five_seconds() -> None:
    loaded: list[Key] = []
    now = [0.0]
    loader = Loader(filled(2 * SIZE, 2, lambda: now[0]))
    for seconds, used, expected in ((4.9, KEYS[0], KEYS[:2]), (5, KEYS[0], KEYS[::2]), (9.9, KEYS[0], KEYS[::2])):
        now[0] = seconds
        loader.memory.get(used)
        loader.request(KEYS[2:3], lambda key: load_into(loaded, key), Need.USEFUL)
        loader.wait()
        assert there(loader.memory) == list(expected)
    assert loaded == KEYS[2:3]


def test_urgent_blocks_that_would_push_out_half_of_all_are_not_urgent() -> None:
    loaded: list[Key] = []
    loader = Loader(filled(3 * SIZE, 3))
    loader.request(KEYS[2:], lambda key: load_into(loaded, key), Need.URGENT)
    loader.wait()
    assert loaded == []


class Held:
    """Loads blocks once it may go on, and says when it has begun."""

    def __init__(self) -> None:
        self.loaded: list[Key] = []
        self.begun, self.go_on = threading.Event(), threading.Event()

    def load(self, key: Key) -> Block:
        self.begun.set()
        assert self.go_on.wait(30)
        return load_into(self.loaded, key)


def test_urgent_blocks_come_before_those_that_were_requested_earlier() -> None:
    held = Held()
    loader = Loader(Memory(100 * SIZE))
    loader.request(KEYS[:3], held.load, Need.LATER)
    assert held.begun.wait(30)
    loader.request(KEYS[2:], held.load, Need.URGENT)
    held.go_on.set()
    loader.wait()
    assert held.loaded == [KEYS[0], KEYS[3], KEYS[2], KEYS[1]]


@pytest.mark.parametrize("need", Need)
def test_a_block_that_is_requested_while_it_is_loaded_is_loaded_once(need: Need) -> None:
    held = Held()
    loader = Loader(Memory(100 * SIZE))
    loader.request(KEYS[:1], held.load, need)
    assert held.begun.wait(30)
    loader.request(KEYS[:2], held.load, need)
    held.go_on.set()
    loader.wait()
    assert held.loaded == KEYS[:2]
    # It may be asked for again once it has grown.
    loader.request(KEYS[:1], held.load, need)
    loader.wait()
    assert held.loaded == [*KEYS[:2], KEYS[0]]


@pytest.mark.parametrize(
    ("error", "count"),
    [
        (Superseded("rewritten"), 4),
        (ValueError("a fault of our own"), 4),
        # Not an Exception.
        (PanicException("a fault of Polars"), 4),
        (StoreUnavailable("away"), 1),
    ],
)
def test_loading_goes_on_after_any_failure_but_not_while_the_store_is_away(error: BaseException, count: int) -> None:
    tried: list[Key] = []

    def load(key: Key) -> Block:
        tried.append(key)
        raise error

    loader = Loader(Memory(100 * SIZE))
    loader.request(KEYS, load, Need.LATER)
    loader.wait()
    assert len(tried) == count
