"""What memory holds of a history that grows and is corrected: pages need no query, and nothing stale stays."""

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from decimal import Decimal

import polars as pl
import pytest

from analytics_service.clickhouse.connection import Store
from analytics_service.config.settings import Settings
from analytics_service.errors import Superseded
from analytics_service.history.candles import Aggregate, Fill, bucket_points
from analytics_service.history.memory import Memory
from analytics_service.history.reader import HistoryReader
from analytics_service.history.segments import ROW_BYTES
from analytics_service.store import ledger
from analytics_service.store.datasets.histories import PRICES
from analytics_service.store.ledger import Head, read_heads
from tests.doubles import WatchedStore
from tests.integration.pages import Observations, commit

MINUTE, FIFTEEN_MINUTES, HOUR, DAY = 60, 900, 3600, 86_400
# 2026-03-01 12:00:00 UTC.
NOON = 1772366400
ID = "token;a"


class Reading:
    """A reader of prices with a memory of its own, of so many bytes."""

    def __init__(self, watched: WatchedStore, size: int = 10**8) -> None:
        self.memory = Memory(size)
        self.reader = HistoryReader(watched, PRICES, self.memory)
        self._watched = watched

    def page(self, head: Head, ids: Sequence[str], begins: Sequence[int], end: int, agg: Aggregate) -> pl.DataFrame:
        """The points of some series in the buckets between `begins`, as far as a second."""
        pinned = self.reader.at(head)
        until = min(end, pinned.newest) + 1
        return bucket_points(
            agg,
            self.reader.parts(pinned, ids, begins, until, all_columns=agg is not Aggregate.LAST),
            ids,
            begins,
            until,
            fill=Fill.PREVIOUS,
        )[0]

    def hours(self, head: Head, end: int) -> list[str | None]:
        """Values of the three hours up to a second, as of a head."""
        begins = [NOON + hour * HOUR for hour in range(-2, 2)]
        return self.page(head, [ID], begins, end, Aggregate.LAST)["v"].to_list()

    def warm(self, head: Head) -> None:
        """Have the hours in memory."""
        self.hours(head, NOON)
        self.memory.wait()
        self.hours(head, head.last_observed_at)

    def reads(self) -> int:
        """How often frames were read from the store so far."""
        queries = self.queries()
        return queries["summarize_buckets"] + queries["read_last_rows"]

    def queries(self) -> Counter[str]:
        """How often each query was asked so far."""
        return self._watched.queries.copy()


@pytest.fixture
def watched(settings: Settings, store: Store) -> Iterator[WatchedStore]:
    with closing(WatchedStore(settings)) as own:
        yield own


@pytest.fixture
def reading(watched: WatchedStore) -> Reading:
    return Reading(watched)


def history(*prices: tuple[int, int]) -> Observations:
    return {ID: [(NOON + second, Decimal(price)) for second, price in prices]}


def written(store: Store, observations: Observations) -> Head:
    """The head after a run of observations."""
    commit(store, observations)
    return read_heads(store)["prices"]


def test_pages_that_memory_has_need_no_query(reading: Reading, store: Store) -> None:
    head = written(store, history((-2 * HOUR, 1), (-HOUR + 5, 2), (10, 3), (20, 4)))
    reading.warm(head)
    queries = reading.queries()
    assert reading.hours(head, NOON + 20) == ["1", "2", "4"]
    assert reading.hours(head, NOON + 15) == ["1", "2", "3"]
    assert reading.hours(head, NOON - 1) == ["1", "2", None]
    assert reading.queries() == queries


def test_a_page_may_end_between_the_observations_of_a_closed_rollup(reading: Reading, store: Store) -> None:
    head = written(store, history((-2 * HOUR, 1), (-HOUR + 5, 2), (-HOUR + 300, 3), (10, 4)))
    reading.warm(head)
    assert reading.hours(head, NOON - HOUR + 299) == ["1", "2", None]
    assert reading.hours(head, NOON - HOUR + 300) == ["1", "3", None]


def test_a_new_head_costs_one_query_for_what_has_no_month_yet(reading: Reading, store: Store) -> None:
    reading.warm(written(store, history((-2 * HOUR, 1), (-HOUR + 5, 2), (10, 3))))
    head = written(store, history((HOUR + 1, 5)))
    before = reading.reads()
    assert reading.hours(head, NOON + HOUR - 1) == ["1", "2", "3"]
    assert reading.hours(head, NOON + HOUR + 1) == ["1", "2", "3"]
    assert reading.reads() == before + 1


def test_a_month_is_loaded_again_when_it_is_a_day_old(reading: Reading, store: Store) -> None:
    reading.warm(written(store, history((-2 * HOUR, 1), (-HOUR + 5, 2), (10, 3))))
    for later, loads in ((2 * HOUR, 1), (DAY + HOUR, 2)):
        reading.hours(written(store, history((later, 5))), NOON + HOUR)
        reading.memory.wait()
        assert reading.queries()["count_15min_rollups"] == loads


def test_a_correction_is_shown_and_what_it_replaced_is_dropped(reading: Reading, store: Store) -> None:
    before = written(store, history((-40 * DAY, 7), (-2 * HOUR, 1), (-HOUR + 5, 2), (10, 3)))
    reading.page(before, [ID], range(NOON - 50 * DAY, NOON, DAY), NOON, Aggregate.LAST)
    reading.warm(before)
    after = written(store, history((-HOUR + 5, 7)))
    assert reading.hours(after, NOON + 10) == ["1", "7", "3"]
    with pytest.raises(Superseded):
        reading.hours(before, NOON + 10)
    reading.warm(after)
    queries = reading.queries()
    assert reading.hours(after, NOON + 10) == ["1", "7", "3"]
    # A month before the corrected second is still there.
    earlier = range(NOON - 45 * DAY, NOON - 35 * DAY, DAY)
    assert reading.page(after, [ID], earlier, NOON, Aggregate.LAST)["v"].to_list()[-1] == "7"
    assert reading.queries() == queries


def test_what_was_read_while_it_was_rewritten_is_not_shown(reading: Reading, store: Store) -> None:
    head = written(store, history((-2 * HOUR, 1), (-10, 2)))
    reading.warm(head)
    rewrite = ledger.new_version(store)
    ledger.record_rewrite(store, ["prices"], rewrite, finished=0)
    # What memory has is what the head names; what it lacks cannot be read now.
    assert reading.hours(head, NOON) == ["1", "2", None]
    with pytest.raises(Superseded):
        reading.page(head, [ID], [NOON - 40 * DAY, NOON], NOON, Aggregate.LAST)
    with pytest.raises(Superseded):
        reading.reader.at(replace(head, version=head.version + 1, runs=head.runs + 1))


def test_buckets_may_end_after_the_last_second_of_the_store(reading: Reading, store: Store) -> None:
    """Its seconds have 32 bits and end in 2106."""
    head = written(store, history((0, 5)))
    found = reading.page(head, [ID], [NOON - HOUR, 2**32 - 2, 2**33], 2**32 - 1, Aggregate.MAX)
    assert found["v"].to_list() == [Decimal(5), None]


def test_a_month_larger_than_memory_is_not_loaded(watched: WatchedStore, store: Store) -> None:
    reading = Reading(watched, 100)
    head = written(store, history((-2 * HOUR, 1), (10, 3)))
    for number in range(3):
        assert reading.hours(head, NOON + 10) == ["1", "1", "3"]
        reading.memory.wait()
        assert reading.reads() == number + 1


def test_rollups_are_counted_once_and_up_to_a_limit(reading: Reading, store: Store) -> None:
    """As many as a frame has rows, whose least size is known."""
    seen = [(NOON + minute * MINUTE, Decimal(minute)) for minute in range(0, 60, 5)]
    written(store, {ID: seen, "token;b": seen[2:5]})
    # A correction.
    pinned = reading.reader.at(written(store, {ID: [(NOON + MINUTE, Decimal(7))]}))
    # The last quarter of the hour has not ended.
    assert [pinned.count_rollups(NOON, NOON + HOUR, most) for most in (9, 5, 4)] == [5, 5, 4]
    assert pinned.count_rollups(NOON + FIFTEEN_MINUTES, NOON + 2 * FIFTEEN_MINUTES, 9) == 2
    frame = pinned.segment(
        pinned.ids, range(NOON, NOON + 3 * FIFTEEN_MINUTES, FIFTEEN_MINUTES), NOON + 3 * FIFTEEN_MINUTES
    )
    # Two rows more say that nothing was before, and digits of the values take a byte each.
    assert (frame.rows.height, frame.rows["close"].to_list()) == (7, [None, "10", "25", "40", None, "10", "20"])
    assert frame.size == pytest.approx(7 * ROW_BYTES, abs=7 * 4)
