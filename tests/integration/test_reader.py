"""What memory holds of a history that grows and is corrected: pages need no query, and nothing stale stays."""

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from decimal import Decimal

import polars as pl
import pytest

from analytics_service.config import Settings
from analytics_service.errors import Superseded
from analytics_service.history.buckets import Buckets
from analytics_service.history.candles import Aggregate
from analytics_service.history.memory import Loader, Memory
from analytics_service.history.reader import HistoryReader
from analytics_service.history.states import State
from analytics_service.history.text_file import TextFile
from analytics_service.store import ledger
from analytics_service.store.connection import Store
from analytics_service.store.histories import PRICES
from analytics_service.store.ledger import Head, read_heads
from tests.doubles import WatchedStore
from tests.integration.pages import Observations, commit, write

MINUTE, QUARTER, HOUR, DAY = 60, 900, 3600, 86_400
# 2026-03-01 12:00:00 UTC.
NOON = 1772366400
ID = "token;a"
# The end of a block of values, and of one of candles: 2025-02-19 16:00:00 UTC.
BOUNDARY = 1739980800


def reader_of(store: Store, size: int) -> tuple[HistoryReader, Loader]:
    """A reader of prices with a memory of its own, of so many bytes."""
    loader = Loader(Memory(size))
    return HistoryReader(store, PRICES, loader, Loader(Memory(0)), TextFile()), loader


class Reading:
    """A reader of prices, which has everything in memory after each change."""

    def __init__(self, store: Store, watched: WatchedStore) -> None:
        self.reader, self.loader = reader_of(watched, 10**8)
        self._store = store
        self._watched = watched

    def write(self, observations: Observations) -> Head:
        """Complete a run of observations, and show the reader the new head."""
        commit(self._store, observations)
        head = read_heads(self._store)["prices"]
        self.reader.at(head)
        self.loader.wait()
        return head

    def hours(self, head: Head, end: int) -> list[str | None]:
        """Values of the three hours up to a second, as of a head. Memory must have them."""
        queries = self.queries()
        begins = [NOON + hour * HOUR for hour in range(-2, 2)]
        buckets = Buckets(begins, min(end, head.last_observed_at) + 1)
        values = self.reader.points(self.reader.at(head), [ID], buckets, Aggregate.LAST)["v"]
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


@dataclass
class Ticking:
    """A reader that is shown the heads of a history one by one. All of it is in the store from the start: what is later
    than a head is not shown."""

    watched: WatchedStore
    reader: HistoryReader
    loader: Loader

    def tick(self, head: Head) -> State:
        """The state of the next head."""
        return self.reader.at(head)

    def pages(self, state: State) -> list[pl.DataFrame]:
        """All series by the hour and by the day, from each quarter of an hour, as they were at a state."""
        return [
            self.reader.points(state, state.ids, Buckets([*begins], state.newest + 1), agg)
            for begin in range(BOUNDARY, BOUNDARY + HOUR, QUARTER)
            for begins in (range(begin - 6 * HOUR, begin + 6 * HOUR, HOUR), range(begin - DAY, begin + 2 * DAY, DAY))
            for agg in (Aggregate.LAST, Aggregate.OHLC, Aggregate.MEAN)
        ]

    def pages_from_memory(self, state: State) -> list[pl.DataFrame]:
        """The same. Memory must have them."""
        asked = self.watched.queries.copy()
        pages = self.pages(state)
        assert self.watched.queries == asked
        return pages


def write_heads(store: Store, observations: Observations, newest: Sequence[int]) -> list[Head]:
    """Write observations, in runs with these newest ones, and return the heads that the runs led to."""
    version = ledger.new_version(store)
    write(store, observations, version)
    runs = [ledger.Run("prices", at, "job", at, at, 1, "test", version + n) for n, at in enumerate(newest)]
    store.insert(ledger.LEDGER, ledger.ledger_frame(runs))
    return [Head("prices", run.at, run.at, run.version, n) for n, run in enumerate(runs, start=1)]


def test_hours_that_begin_with_any_quarter_are_appended_when_they_close(
    store: Store, settings: Settings, draw: random.Random
) -> None:
    """Ticks of a minute, over the end of a block and of a day. One of the series begins within them."""
    begin, end = BOUNDARY - HOUR, BOUNDARY + 2 * HOUR
    newest = [at + draw.choice([0, 59, draw.randint(1, 58)]) for at in range(begin, end, MINUTE)]
    often = [*range(BOUNDARY - DAY, begin, 7 * MINUTE), *newest]
    rarely = [at + draw.randint(0, 50) for at in range(BOUNDARY - 3 * DAY, end, 50 * MINUTE)]
    late = draw.sample(range(BOUNDARY - 30 * MINUTE, end), 40)
    seconds = {ID: often, "token;b": rarely, "token;c": late}
    values = {name: [(at, Decimal(draw.randint(1, 10**9))) for at in some] for name, some in seconds.items()}
    heads = write_heads(store, values, newest)
    with closing(WatchedStore(settings)) as watched:
        ticking = Ticking(watched, *reader_of(watched, 10**8))
        plain = Ticking(watched, *reader_of(watched, 0))
        state = ticking.tick(heads[0])
        # Days are put together from hours, which are asked for when days are not there.
        for _ in range(3):
            ticking.pages(state)
            ticking.loader.wait()
        for number, head in enumerate(heads[1:]):
            state = ticking.tick(head)
            if number % 40 == 0 or head == heads[-1]:
                found, stored = ticking.pages_from_memory(state), plain.pages(plain.reader.at(head))
                assert all(page.equals(expected) for page, expected in zip(found, stored, strict=True))


def test_a_correction_is_shown_and_what_it_replaced_is_dropped(reading: Reading) -> None:
    before = reading.write(history((-2 * HOUR, 1), (-HOUR + 5, 2), (10, 3)))
    after = reading.write(history((-HOUR + 5, 7)))
    # A request that began before the correction may still need the old blocks.
    assert reading.hours(before, NOON + 10) == ["1", "2", "3"]
    assert reading.hours(after, NOON + 10) == ["1", "7", "3"]
    assert reading.rewrites_in_memory() == {0, 1}
    newest = reading.write(history((20, 4)))
    assert reading.rewrites_in_memory() == {1}
    assert reading.hours(newest, NOON + 20) == ["1", "7", "4"]


def test_an_hour_that_was_read_while_it_was_rewritten_is_not_kept(reading: Reading, store: Store) -> None:
    """The rewrite changes only what is later than all that the reader knew, so blocks keep their keys."""
    reading.write(history((-2 * HOUR, 1), (-10, 2)))
    commit(store, history((-5, 9), (10, 3)))
    rewrite = ledger.new_version(store)
    ledger.tell_of_rewrite(store, ["prices"], rewrite, finished=0)
    with pytest.raises(Superseded):
        reading.reader.at(replace(read_heads(store)["prices"], rewrites=0))
    ledger.tell_of_rewrite(store, ["prices"], rewrite, finished=1)
    head = reading.write(history((-5, 4)))
    assert reading.hours(head, NOON + 10) == ["1", "4", "3"]


def test_without_memory_nothing_is_read_before_a_page_asks(store: Store, settings: Settings) -> None:
    commit(store, history((-HOUR, 1), (10, 3)))
    head = read_heads(store)["prices"]
    with closing(WatchedStore(settings)) as watched:
        reader = HistoryReader(watched, PRICES, *[Loader(Memory(0))] * 2, TextFile())
        assert not watched.queries
        buckets = Buckets([NOON - HOUR, NOON, NOON + HOUR], head.last_observed_at + 1)
        assert reader.points(reader.at(head), [ID], buckets, Aggregate.LAST)["v"].to_list() == ["1", "3"]


@pytest.mark.parametrize("agg", [Aggregate.LAST, Aggregate.MAX])
def test_a_page_of_all_series_from_the_store_tells_its_last_instant(
    store: Store, settings: Settings, agg: Aggregate
) -> None:
    commit(store, {**history((-HOUR, 1), (10, 3)), "token;b": [(NOON - HOUR + 7, Decimal(2))]})
    head = read_heads(store)["prices"]
    buckets = Buckets([NOON - HOUR, NOON], head.last_observed_at + 1)
    with closing(WatchedStore(settings)) as watched:
        reader = HistoryReader(watched, PRICES, *[Loader(Memory(0))] * 2, TextFile())
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
    reader = HistoryReader(store, PRICES, *[Loader(Memory(0))] * 2, TextFile())
    buckets = Buckets([NOON - HOUR, 2**32, 2**33], head.last_observed_at + 1)
    found = reader.points(reader.at(head), [ID], buckets, Aggregate.MAX)
    assert found["v"].to_list() == ["5", None]
