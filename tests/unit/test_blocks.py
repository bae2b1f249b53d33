"""Values from blocks in memory, against a walk over the observations."""

import tracemalloc
from decimal import Decimal

import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st

from analytics_service.history.blocks import (
    NO_CELLS,
    Block,
    Picked,
    candles_of,
    make_block,
)
from analytics_service.history.candles import CANDLE, no_candles
from analytics_service.history.observations import Observations
from analytics_service.history.sample import no_values, sample
from analytics_service.history.slots import Slot, cells_of, closed, look_up
from analytics_service.market.instants import HOUR
from tests import oracle
from tests.unit.test_sample import rows_of

# A boundary between blocks of a few series, 2018-12-16 08:00 UTC, and some weeks around it.
BOUNDARY = 210 * cells_of(3) * HOUR
WEEKS = 21 * 86_400

Seen = list[tuple[int, Decimal]]
seconds = st.integers(BOUNDARY - WEEKS, BOUNDARY + WEEKS)
observed = st.lists(st.tuples(seconds, st.decimals(0, 9, places=3)), min_size=1, max_size=9)


def block_of(slot: Slot, series: dict[str, Seen], hours: int | None = None) -> Block:
    """The block as a store with these observations would fill it."""
    ends = range(slot.begin + HOUR, slot.begin + (slot.cells if hours is None else hours) * HOUR + 1, HOUR)
    return make_block(list(series), sample(rows_of(list(series.values())), len(series), [0] * len(ends), ends))


@given(
    series=st.dictionaries(st.sampled_from("abc"), observed, min_size=1),
    start=seconds,
    length=st.integers(0, WEEKS),
    zone=st.sampled_from(oracle.ZONES),
    grain=st.tuples(st.sampled_from("hdw"), st.integers(1, 3)),
    hours=st.sampled_from([1, 5, 24, cells_of(3)]),
)
@settings(max_examples=300, deadline=None)
def test_a_lookup_finds_the_values_of_the_observations(
    series: dict[str, Seen], start: int, length: int, zone: str, grain: tuple[str, int], hours: int
) -> None:
    """Each bucket's value stands in a block, or, where the page ends within an hour, is refined by what came later."""
    known = oracle.Oracle(series)
    end, ids = start + length, list(series)
    until = min(end, known.newest) + 1
    grid = oracle.begins(start, end, *grain, zone)
    lookup = look_up(grid, until, hours)
    assert lookup is not None
    blocks = [block_of(run.slot, series) for run in lookup.runs]
    found = Picked(blocks, [run.cells for run in lookup.runs], ids).column("value") if blocks else no_values(0)
    values = found.to_list()
    if lookup.open_from is not None:
        assert until - HOUR < lookup.open_from <= until
        everything = Observations.of(ids, 0, until, rows_of(list(series.values())))
        values = everything.over(found, ids, lookup.open_from, until).to_list()
    buckets = len(grid) - 1
    values += [None] * (buckets * len(ids) - len(values))
    for place, name in enumerate(ids):
        expected = [point["v"] for point in known.page(name, grid, end, 0, 9999, carry=True)]
        assert values[place :: len(ids)] == expected


@given(
    before=st.dictionaries(st.sampled_from("abd"), observed, min_size=1),
    later=st.dictionaries(st.sampled_from("abcd"), observed),
    hours=st.sampled_from([1, 5, 24, cells_of(3)]),
    phase=st.sampled_from([0, 2700]),
    near=st.integers(-2, 1),
    share=st.floats(0, 1, exclude_max=True),
)
@settings(max_examples=200, deadline=None)
def test_a_block_with_hours_appended_is_the_block_read_anew(
    before: dict[str, Seen], later: dict[str, Seen], hours: int, phase: int, near: int, share: float
) -> None:
    """What is new, also of new series, was observed at or after the end of the last hour that is there."""
    slot = Slot(hours, BOUNDARY // (hours * HOUR) + near, phase)
    there = int(share * hours)
    edge = slot.begin + there * HOUR
    now = {
        name: [
            *(one for one in before.get(name, []) if one[0] < edge),
            *(one for one in later.get(name, []) if one[0] >= edge),
        ]
        for name in sorted({*before, *later})
    }
    ends = range(edge + HOUR, slot.end + 1, HOUR)
    rest = sample(rows_of(list(now.values())), len(now), [0] * len(ends), ends)
    whole, anew = block_of(slot, before, there).followed_by(list(now), rest), block_of(slot, now)
    assert (whole.ids, whole.cells) == (list(now), hours)
    assert content(whole).rows() == content(anew).rows()


hours_of_blocks = st.lists(
    st.tuples(st.sets(st.sampled_from("abc")).map(sorted), st.lists(st.integers(0, 5), min_size=1).map(sorted)),
    min_size=1,
    max_size=4,
)


@given(blocks=hours_of_blocks, asked=st.sampled_from([["a"], ["a", "b"], ["a", "b", "c"], ["c", "x", "a"]]))
@settings(max_examples=300, deadline=None)
def test_hours_are_picked_from_blocks_of_any_series(
    blocks: list[tuple[list[str], list[int]]], asked: list[str]
) -> None:
    """The value of a series at the end of an hour is told by the numbers of its block and of the hour."""

    def values(number: int, ids: list[str]) -> pl.DataFrame:
        rows = [(f"{number} {one} {hour}", 10 * hour + place) for hour in range(6) for place, one in enumerate(ids)]
        return pl.DataFrame(rows, schema={"value": pl.String, "observed_at": pl.UInt32}, orient="row")

    there = [Block(ids, values(number, ids)) if ids else NO_CELLS for number, (ids, _) in enumerate(blocks)]
    expected = [
        f"{number} {one} {hour}" if one in ids else None
        for number, (ids, hours) in enumerate(blocks)
        for hour in hours
        for one in asked
    ]
    picked = Picked(there, [hours for _, hours in blocks], asked)
    assert picked.column("value").to_list() == expected
    assert picked.column("observed_at").null_count() == expected.count(None)
    for block in there:
        if block.ids:
            assert [block.newest(hour) for hour in range(6)] == [10 * hour + len(block.ids) - 1 for hour in range(6)]


def test_a_series_that_a_block_does_not_have_has_no_values() -> None:
    slot = Slot(cells_of(3), 210)
    block = block_of(slot, {"a": [(BOUNDARY, Decimal(1))]}, 9)
    assert block.at(["new", "a"], [0, 1], "value").to_list() == [None, "1", None, "1"]


@given(
    candles=st.lists(st.lists(st.sampled_from(["1", "1.5", "20", None]), min_size=3, max_size=3), min_size=1),
    share=st.floats(0, 1),
)
@settings(max_examples=200, deadline=None)
def test_texts_that_repeat_are_kept_once(candles: list[list[str | None]], share: float) -> None:
    """Also where candles are appended: then once for each time."""
    candles = [["1", "1", "1"], *candles]
    rows = pl.DataFrame(candles, schema=["open", "high", "low"], orient="row").cast(pl.String)
    there = int(share * rows.height)
    appended = make_block(["a"], rows[:there]).followed_by(["a"], rows[there:])
    for block in (make_block(["a"], rows), appended):
        assert content(block).rows() == rows.rows()
    twice = make_block(["a"], pl.concat([rows, rows])).texts
    assert twice is not None
    assert sorted(twice) == sorted({text for candle in candles for text in candle if text is not None})
    assert appended.texts is None or len(appended.texts) <= 6


def test_nothing_was_observed_of_a_series_in_hours_before_it_was_new() -> None:
    """Sums of candles are 0 there, also in blocks that were extended since."""
    earlier = Block(["b"], no_candles(list(CANDLE), 2))
    extended = earlier.followed_by(["a", "b"], no_candles(list(CANDLE), 2))
    assert content(extended).equals(no_candles(list(CANDLE), 6))
    assert candles_of([earlier], [[0, 1]], ["a", "b"], list(CANDLE)).equals(no_candles(list(CANDLE), 4))


def test_a_page_that_ends_within_a_quarter_of_an_hour_is_not_looked_up() -> None:
    assert look_up([0, 2670], 9999, 24) is None


def test_a_page_that_ends_with_an_hour_needs_nothing_later() -> None:
    lookup = look_up([0, 3600, 7200], 7200, 24)
    assert lookup is not None
    assert ([(run.slot, [*run.cells]) for run in lookup.runs], lookup.open_from) == ([(Slot(24, 0), [0, 1])], None)


def test_a_page_that_ends_with_a_quarter_of_an_hour_needs_nothing_later_either() -> None:
    lookup = look_up([1800, 5400, 9000], 7200, 24)
    assert lookup is not None
    found = [(run.slot, [*run.cells]) for run in lookup.runs]
    assert (found, lookup.open_from) == ([(Slot(24, 0, 1800), [0]), (Slot(24, 0, 0), [1])], None)


def test_a_page_that_ends_one_second_into_a_bucket_is_refined_from_there() -> None:
    lookup = look_up([0, 3600, 7200, 10800], 7201, 24)
    assert lookup is not None
    assert ([(run.slot, [*run.cells]) for run in lookup.runs], lookup.open_from) == ([(Slot(24, 0), [0, 1, 1])], 7200)


def test_an_hour_is_closed_when_nothing_more_can_be_observed_in_it() -> None:
    assert [closed(newest, 0) for newest in (3598, 3599, 3600, 7198, 7199)] == [0, 3600, 3600, 3600, 7200]
    assert [closed(newest, 900) for newest in (3598, 4498, 4499, 4500)] == [900, 900, 4500, 4500]


def test_blocks_of_many_series_have_fewer_hours() -> None:
    hours = {0: 2048, 1: 2048, 128: 2048, 129: 2032, 256: 1024, 1_000: 262, 10**6: 1}
    assert {series: cells_of(series) for series in hours} == hours


def test_the_size_of_a_block_is_that_of_its_buffers() -> None:
    texts = [None if hour % 10 == 0 else f"{hour}.5" if hour % 3 else f"{hour}.{'7' * 18}" for hour in range(5000)]
    block = make_block(["a"], pl.DataFrame({"value": texts, "observed_at": range(5000)}))
    short = sum(len(text) for text in texts if text is not None and len(text) <= 12)
    newest = 4 * 5000
    # Texts of twelve characters at most lie in their views; they are counted twice.
    assert buffers(block.values) + newest <= block.size <= buffers(block.values) + newest + short + 5000
    assert block.texts is None

    again = make_block(["a"], pl.DataFrame({"value": [f"{place % 50}.{'7' * 18}" for place in range(5000)]}))
    assert again.texts is not None
    assert again.size == buffers(again.values) + buffers(again.texts.to_frame())


def content(block: Block) -> pl.DataFrame:
    """What a block has in all of its hours."""
    return pl.DataFrame([block.column(name, slice(None)).alias(name) for name in block.values.columns])


def buffers(values: pl.DataFrame) -> int:
    """The bytes of a table, as Arrow's own library counts them."""
    return int(values.to_arrow(compat_level=pl.CompatLevel.newest()).get_total_buffer_size())


def test_what_tells_when_the_last_observation_was_made_counts_as_memory() -> None:
    """The size of a block is counted when it is put into memory."""
    block = make_block(["a"], pl.DataFrame({"value": ["1"] * 2048, "observed_at": [None, *range(1000, 3047)]}))
    tracemalloc.start()
    try:
        assert block.size >= buffers(block.values) + 4 * 2048
        found = [block.newest(hour) for hour in (0, 1, 2047)]
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert found == [None, 1000, 3046]
    assert kept < 2048
