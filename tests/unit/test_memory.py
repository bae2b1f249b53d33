"""What of histories is in memory: only what belongs to the newest state, and no more than fits."""

from collections.abc import Sequence

import polars as pl

from analytics_service.errors import StoreUnavailable, Superseded
from analytics_service.series.chunk import Chunk, Place, make_chunk
from analytics_service.series.memory import Memory
from analytics_service.series.rows import LOANS, PRICES

SPAN = 24
PLACES = [Place(0, number, SPAN) for number in range(4)]
LAST_HOURS = dict.fromkeys(PLACES, SPAN - 1)


def chunk(value: str = "1") -> Chunk:
    """A chunk of one series."""
    return make_chunk(["token;a"], pl.DataFrame({"value": [value] * SPAN, "observed_at": [1] * SPAN}), SPAN)


SIZE = chunk().size


def filled(limit: int = 100 * SIZE, places: Sequence[Place] = PLACES) -> Memory:
    """A memory of prices in state 1."""
    memory = Memory(limit)
    memory.move(PRICES, 1, lambda place: 0)
    for place in places:
        memory.put(PRICES, 1, place, chunk())
    return memory


def there(memory: Memory, state: int = 1) -> list[Place]:
    return [*(memory.find(PRICES, state, LAST_HOURS) or ())]


def test_chunks_are_found_in_their_state_only() -> None:
    """Of two requests at once one may still hold the state before, and another may be ahead."""
    memory = filled()
    assert there(memory) == PLACES
    assert [memory.find(PRICES, state, LAST_HOURS) for state in (0, 2)] == [None, None]
    assert memory.find(LOANS, 1, LAST_HOURS) is None


def test_a_chunk_of_another_state_is_not_kept() -> None:
    """It was read while the history went on to the next state."""
    memory = filled(places=[])
    memory.move(PRICES, 2, lambda place: SPAN)
    memory.put(PRICES, 1, PLACES[0], chunk())
    assert there(memory, 2) == []


def test_the_next_state_keeps_what_is_the_same_in_it() -> None:
    memory = filled()
    memory.move(LOANS, 1, lambda place: 0)
    memory.move(PRICES, 2, lambda place: SPAN if place.number < 2 else 0)
    assert there(memory, 2) == PLACES[:2]


def test_of_a_chunk_that_goes_on_the_hours_that_are_the_same_stay() -> None:
    memory = filled(places=PLACES[:1])
    memory.move(PRICES, 2, lambda place: 20)
    memory.move(PRICES, 3, lambda place: 22)
    found = [memory.find(PRICES, 3, {PLACES[0]: hour}) or {} for hour in (0, 19, 20, 23)]
    assert [PLACES[0] in chunks for chunks in found] == [True, True, False, False]


def test_a_chunk_that_goes_on_is_loaded_again_when_it_is_wanted() -> None:
    loaded: list[Place] = []
    memory = filled(places=PLACES[:2])
    memory.move(PRICES, 2, lambda place: 20 if place == PLACES[0] else SPAN)
    memory.want(PRICES, PLACES[:2], loaded.append, urgent=True)
    memory.settle()
    assert loaded == PLACES[:1]


def test_the_least_recently_used_chunks_make_room() -> None:
    memory = filled(3 * SIZE, PLACES[:3])
    memory.find(PRICES, 1, {PLACES[0]: 0})
    memory.put(PRICES, 1, PLACES[3], chunk())
    assert there(memory) == [PLACES[0], PLACES[2], PLACES[3]]


def test_what_was_dropped_or_replaced_takes_no_room() -> None:
    memory = filled(2 * SIZE, PLACES[:2])
    memory.put(PRICES, 1, PLACES[1], chunk())
    memory.move(PRICES, 2, lambda place: SPAN if place == PLACES[1] else 0)
    memory.put(PRICES, 2, PLACES[2], chunk())
    assert there(memory, 2) == PLACES[1:3]


def test_a_memory_of_nothing_loads_nothing() -> None:
    loaded: list[Place] = []
    memory = Memory(0)
    memory.want(PRICES, PLACES, loaded.append, urgent=True)
    memory.settle()
    assert loaded == []


def test_what_is_wanted_is_loaded_unless_it_is_there() -> None:
    loaded: list[Place] = []
    memory = filled(places=PLACES[:1])
    memory.want(PRICES, PLACES, loaded.append, urgent=False)
    memory.settle()
    assert loaded == PLACES[1:]


def test_loading_goes_on_after_a_newer_state_and_not_while_the_store_is_away() -> None:
    for error, count in ((Superseded("newer"), 4), (StoreUnavailable("away"), 1)):
        tried: list[Place] = []

        def load(place: Place, tried: list[Place] = tried, error: Exception = error) -> None:
            tried.append(place)
            raise error

        memory = filled(places=[])
        memory.want(PRICES, PLACES, load, urgent=False)
        memory.settle()
        assert len(tried) == count
