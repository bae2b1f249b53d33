"""What memory holds of a history that grows and is corrected: pages need no query, and nothing stale stays."""

from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from decimal import Decimal

import pytest

from analytics_service.config import Settings
from analytics_service.history.candles import Aggregate
from analytics_service.history.catalogue import PRICES
from analytics_service.history.memory import Loader, Memory
from analytics_service.history.reader import HistoryReader
from analytics_service.history.rows import Buckets
from analytics_service.store.connection import Store
from analytics_service.store.ledger import Head, read_heads
from tests.doubles import WatchedStore
from tests.integration.pages import Observations, commit

HOUR = 3600
# 2026-03-01 12:00:00 UTC.
NOON = 1772366400
ID = "token;a"


class Reading:
    """A reader of prices, which has everything in memory after each change."""

    def __init__(self, store: Store, watched: WatchedStore) -> None:
        self.loader = Loader(Memory(10**8))
        self.reader = HistoryReader(watched, PRICES, self.loader)
        self._store = store
        self._watched = watched

    def write(self, observations: Observations) -> Head:
        """Complete a run of observations, and show the reader the new head."""
        commit(self._store, observations)
        head = read_heads(self._store)["prices"]
        self.reader.prepare(head)
        self.loader.wait()
        return head

    def hours(self, head: Head, end: int) -> list[str | None]:
        """Values of the three hours up to a second, as of a head. Memory must have them."""
        queries = self.queries()
        begins = [NOON + hour * HOUR for hour in range(-2, 2)]
        values = self.reader.values(self.reader.at(head), [ID], Buckets(begins, min(end, head.last_observed_at) + 1))
        assert self.queries() == queries
        return values.to_list()

    def queries(self) -> Counter[str]:
        """How often each query was asked so far."""
        return self._watched.queries.copy()

    def rewrites_in_memory(self) -> set[int]:
        return {key.rewrite for key in self.loader.memory.keys("price")}


@pytest.fixture
def reading(store: Store, settings: Settings) -> Iterator[Reading]:
    with closing(WatchedStore(settings)) as watched:
        yield Reading(store, watched)


def history(*prices: tuple[int, int]) -> Observations:
    return {ID: [(NOON + second, Decimal(price)) for second, price in prices]}


def test_new_observations_extend_what_is_in_memory(reading: Reading) -> None:
    head = reading.write(history((-2 * HOUR, 1), (-HOUR + 5, 2), (10, 3)))
    assert reading.hours(head, NOON + 10) == ["1", "2", "3"]
    # Within the open hour, then beyond its end, which closes it.
    head = reading.write(history((20, 4)))
    assert reading.hours(head, NOON + 15) == ["1", "2", "3"]
    assert reading.hours(head, NOON + 20) == ["1", "2", "4"]
    head = reading.write(history((HOUR + 1, 5)))
    assert reading.hours(head, NOON + HOUR - 1) == ["1", "2", "4"]


def test_a_correction_is_shown_and_what_it_replaced_is_dropped(reading: Reading) -> None:
    before = reading.write(history((-2 * HOUR, 1), (-HOUR + 5, 2), (10, 3)))
    after = reading.write(history((-HOUR + 5, 7)))
    # A request that began before the correction may still need the old blocks.
    assert reading.hours(before, NOON + 10) == ["1", "2", "3"]
    assert reading.hours(after, NOON + 10) == ["1", "7", "3"]
    assert reading.rewrites_in_memory() == {0, 1}
    reading.reader.prepare(after)
    assert reading.rewrites_in_memory() == {1}
    assert reading.hours(after, NOON + 10) == ["1", "7", "3"]


def test_without_memory_nothing_is_read_before_a_page_asks(store: Store, settings: Settings) -> None:
    commit(store, history((-HOUR, 1), (10, 3)))
    head = read_heads(store)["prices"]
    with closing(WatchedStore(settings)) as watched:
        reader = HistoryReader(watched, PRICES, Loader(Memory(0)))
        reader.prepare(head)
        assert not watched.queries
        buckets = Buckets([NOON - HOUR, NOON, NOON + HOUR], head.last_observed_at + 1)
        assert reader.values(reader.at(head), [ID], buckets).to_list() == ["1", "3"]


@pytest.mark.parametrize("agg", [Aggregate.LAST, Aggregate.MAX])
def test_a_page_of_all_series_from_the_store_tells_its_last_instant(
    store: Store, settings: Settings, agg: Aggregate
) -> None:
    commit(store, {**history((-HOUR, 1), (10, 3)), "token;b": [(NOON - HOUR + 7, Decimal(2))]})
    head = read_heads(store)["prices"]
    buckets = Buckets([NOON - HOUR, NOON], head.last_observed_at + 1)
    with closing(WatchedStore(settings)) as watched:
        reader = HistoryReader(watched, PRICES, Loader(Memory(0)))
        state = reader.at(head)
        reader.points(state, [ID], buckets, agg)
        asked = watched.queries.copy()
        # A page of one series does not tell what others had.
        assert reader.last_instant(head, NOON - 1) == NOON - HOUR + 7
        assert watched.queries != asked
        reader.points(state, state.ids, buckets, agg)
        asked = watched.queries.copy()
        assert reader.last_instant(head, NOON - 1) == NOON - HOUR + 7
        assert watched.queries == asked


@pytest.mark.parametrize("agg", [Aggregate.LAST, Aggregate.MAX])
def test_a_page_from_memory_tells_its_last_instant_whatever_its_series(reading: Reading, agg: Aggregate) -> None:
    head = reading.write({**history((-HOUR, 1), (10, 3)), "token;b": [(NOON - HOUR + 7, Decimal(2))]})
    state = reading.reader.at(head)
    for end, last in ((NOON, NOON - HOUR + 7), (NOON - HOUR + 7, NOON - HOUR), (NOON - HOUR + 8, NOON - HOUR + 7)):
        buckets = Buckets([NOON - 2 * HOUR, NOON - HOUR, NOON], end)
        # Blocks and candles that the first page asks for are there for the second.
        for _ in range(2):
            reading.reader.points(state, [ID], buckets, agg)
            reading.loader.wait()
        asked = reading.queries()
        assert reading.reader.last_instant(head, end - 1) == last
        assert reading.queries() == asked


def test_candles_may_begin_after_the_last_second_of_the_store(reading: Reading, store: Store) -> None:
    """Its seconds have 32 bits and end in 2106."""
    head = reading.write(history((0, 5)))
    reader = HistoryReader(store, PRICES, Loader(Memory(0)))
    buckets = Buckets([NOON - HOUR, 2**32, 2**33], head.last_observed_at + 1)
    found = reader.points(reader.at(head), [ID], buckets, Aggregate.MAX)
    assert found["v"].to_list() == ["5", None]
