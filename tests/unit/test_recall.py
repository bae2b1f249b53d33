"""Pages put together from chunks, against a walk over the observations."""

import json
from decimal import Decimal

import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st

from analytics_service.series.chunk import HOUR, Chunk, Place, make_chunk, span_of, spots
from analytics_service.series.encode import encode_points
from analytics_service.series.recall import is_settled, recall
from analytics_service.series.sample import sample
from tests import oracle
from tests.unit.test_sample import rows_of

# A boundary between chunks of a few series, 2018-12-16 08:00 UTC, and some weeks around it.
BOUNDARY = 210 * span_of(3) * HOUR
WEEKS = 21 * 86_400

Seen = list[tuple[int, Decimal]]
seconds = st.integers(BOUNDARY - WEEKS, BOUNDARY + WEEKS)


def chunk_at(place: Place, series: dict[str, Seen], until: int) -> Chunk:
    """The chunk as a store with these observations would answer it."""
    rows = rows_of(list(series.values())).filter(pl.col("observed_at") < until)
    ends = [min(end, until) for end in place.hours[1:]]
    return make_chunk(series, sample(rows, len(series), [0] * place.span, ends), place.span)


observed = st.lists(st.tuples(seconds, st.decimals(0, 9, places=3)), min_size=1, max_size=9)


@given(
    series=st.dictionaries(st.sampled_from("abc"), observed, min_size=1),
    start=seconds,
    length=st.integers(0, WEEKS),
    zone=st.sampled_from(oracle.ZONES),
    grain=st.tuples(st.sampled_from("hdw"), st.integers(1, 3)),
    carry=st.booleans(),
    missing=st.booleans(),
    span=st.sampled_from([1, 5, 24, span_of(3)]),
)
@settings(max_examples=300, deadline=None)
def test_a_page_from_chunks_is_the_page_of_the_observations(
    series: dict[str, Seen],
    start: int,
    length: int,
    zone: str,
    grain: tuple[str, int],
    carry: bool,
    missing: bool,
    span: int,
) -> None:
    known = oracle.Oracle(series)
    end = start + length
    until = min(end, known.newest) + 1
    grid = oracle.begins(start, end, *grain, zone)
    places = spots(grid, until, span)
    assert places is not None
    first = min(at for seen in series.values() for at, _ in seen)
    # A chunk of time before all observations is never loaded.
    needed = {spot.place for spot in places if spot.place.end > first or not missing}
    chunks = {place: chunk_at(place, series, known.newest + 1) for place in needed}
    buckets = sum(len(spot.hours) for spot in places)
    cut = end < known.newest and until < grid[buckets]
    if cut and not is_settled(chunks, places, list(series), until):
        # Only a page that ends within an hour in which something was observed later cannot be told from chunks.
        assert any(end < at < grid[-1] for seen in series.values() for at, _ in seen)
        return
    values = recall(chunks, places, list(series), grid, carry=carry)
    before = [("," if i else "") + '{"points":[' for i in range(len(series))]
    answer = json.loads("[" + encode_points(values, grid, before, "]}") + "]")
    assert [one["points"] for one in answer] == [known.page(name, grid, end, 0, 9999, carry) for name in series]


@given(
    before=st.dictionaries(st.sampled_from("abd"), observed, min_size=1),
    later=st.dictionaries(st.sampled_from("abcd"), observed),
    span=st.sampled_from([1, 5, 24, span_of(3)]),
    phase=st.sampled_from([0, 2700]),
    near=st.integers(-2, 1),
    share=st.floats(0, 1, exclude_max=True),
)
@settings(max_examples=200, deadline=None)
def test_a_chunk_that_goes_on_is_the_chunk_read_anew(
    before: dict[str, Seen], later: dict[str, Seen], span: int, phase: int, near: int, share: float
) -> None:
    """What is new, also of new series, was observed at or after the end of the last hour that is kept."""
    place = Place(phase, BOUNDARY // (span * HOUR) + near, span)
    kept = int(share * span)
    edge, newest = place.hours[kept], BOUNDARY + 2 * WEEKS
    now = {
        name: [
            *(one for one in before.get(name, []) if one[0] < edge),
            *(one for one in later.get(name, []) if one[0] >= edge),
        ]
        for name in sorted({*before, *later})
    }
    begun = chunk_at(place, before, newest).knowing(kept)
    rest = sample(rows_of(list(now.values())), len(now), [0] * (span - kept), place.hours[kept + 1 :])
    whole, anew = begun.followed_by(make_chunk(now, rest, span - kept)), chunk_at(place, now, newest)
    assert (whole.ids, whole.span, whole.known) == (anew.ids, span, span)
    assert whole.endings.to_list() == anew.endings.to_list()
    assert whole.observed_at.to_list() == anew.observed_at.to_list()


@given(phase=st.sampled_from([0, 900, 2700]), number=st.integers(0, 9), second=st.integers(0, 10 * 24 * HOUR))
def test_hours_before_a_second_have_ended_by_then(phase: int, number: int, second: int) -> None:
    place = Place(phase, number, 24)
    assert place.hours_before(second) == sum(end <= second for end in place.hours[1:])


def test_a_series_that_a_chunk_does_not_know_has_no_values() -> None:
    place = Place(0, 210, span_of(3))
    chunk = chunk_at(place, {"a": [(BOUNDARY, Decimal(1))]}, BOUNDARY + 9 * HOUR)
    grid = [BOUNDARY + k * HOUR for k in range(3)]
    values = recall({place: chunk}, spots(grid, BOUNDARY + 9 * HOUR, place.span) or [], ["new", "a"], grid, carry=True)
    assert values.to_list() == ["null}", "null}", '"1"}', '"1"}']


def test_boundaries_in_the_middle_of_a_quarter_hour_are_not_looked_for_in_chunks() -> None:
    assert spots([0, 2670], 9999, 24) is None


def test_chunks_of_many_series_have_fewer_hours() -> None:
    assert [span_of(series) for series in (0, 1, 128, 129, 256, 1_000, 10**6)] == [2048, 2048, 2048, 2032, 1024, 262, 1]
