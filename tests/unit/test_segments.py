"""Frames of observations and of rollups, against a walk over the observations with exact fractions."""

from bisect import bisect_right
from collections.abc import Sequence
from decimal import Context, Decimal
from fractions import Fraction
from itertools import pairwise

import polars as pl
from hypothesis import example, given
from hypothesis import strategies as st

from analytics_service.history.candles import Aggregate, Fill, bucket_points
from analytics_service.history.formats.base import decimal_strings
from analytics_service.history.segments import Segment, SegmentRange, last_values
from tests import oracle

YEAR = 365 * 86_400
LIMIT = 10**38 - 1
"""The greatest value, 10^20 less 10^-18, in units of 10^-18."""
UNIT = 10**18
SCHEMA = {
    "series": pl.UInt32,
    "first_at": pl.UInt32,
    "last_at": pl.UInt32,
    "count": pl.UInt32,
    "seconds": pl.UInt32,
    "open": pl.Decimal(38, 18),
    "high": pl.Decimal(38, 18),
    "low": pl.Decimal(38, 18),
    "close": pl.String,
    "units": pl.Decimal(38, 0),
    "rest": pl.UInt64,
}

Seen = list[tuple[int, Decimal | None]]


def exact(units: int) -> Decimal:
    """So many times 10^-18."""
    return Decimal(units).scaleb(-18, Context(prec=60))


# Few seconds, so that several observations fall into one, and years, so that areas are great.
seconds = st.one_of(st.integers(0, 20), st.integers(0, 40 * YEAR))
values = st.one_of(st.integers(-3, 3), st.integers(-LIMIT, LIMIT), st.sampled_from([LIMIT, -LIMIT])).map(exact)
seen = st.lists(st.tuples(seconds, values), min_size=1, max_size=9)
in_part = st.lists(st.tuples(seconds, st.one_of(st.none(), values)), min_size=1, max_size=9)
grids = st.lists(seconds, min_size=2, max_size=7).map(sorted)


def frame_of(series: dict[str, Seen], begin: int, end: int, cuts: Sequence[int]) -> Segment:
    """The frame of some series, with a row for what lies between two of the cuts, and one for what was before."""
    rows: list[tuple[object, ...]] = []
    for place, observed in enumerate(series.values()):
        known = [(at, value) for at, value in sorted(dict(observed).items()) if at < end]
        groups: dict[int, Seen] = {}
        for at, value in known:
            groups.setdefault(-1 if at < begin else bisect_right([begin, *cuts], at), []).append((at, value))
        for number, group in groups.items():
            # The area from the first to the last observation: each value until the next second.
            spans = [(value, following - at) for (at, value), (following, _) in pairwise(group) if value is not None]
            area = sum(int(value.scaleb(18, Context(prec=60))) * length for value, length in spans)
            own, close = [value for _, value in group if value is not None], group[-1][1]
            shown = group[-1:] if number == -1 else group
            rows.append(
                (
                    place,
                    shown[0][0],
                    group[-1][0],
                    len(own),
                    sum(length for _, length in spans),
                    own[0] if own else None,
                    max(own, default=None),
                    min(own, default=None),
                    None if close is None else oracle.text(close),
                    Decimal(area // UNIT),
                    area % UNIT,
                )
            )
    return Segment.from_rows(list(series), begin, end, pl.DataFrame(rows, schema=SCHEMA, orient="row"))


def shown(
    agg: Aggregate,
    parts: Sequence[SegmentRange],
    ids: Sequence[str],
    grid: list[int],
    end: int,
    *,
    fill: Fill = Fill.PREVIOUS,
    cumulative: bool = False,
) -> list[list[dict[str, object]]]:
    """The points of each series, as answers have them."""
    found, _ = bucket_points(agg, parts, ids, grid, end, fill=fill, cumulative=cumulative)
    rows = found.with_columns(decimal_strings(found[name]) for name in found.columns if name != "n").rows(named=True)
    count = len(grid) - 1
    return [rows[place * count : (place + 1) * count] for place in range(len(ids))]


@given(grid=grids, end=seconds, data=st.data())
def test_points_are_what_a_walk_over_the_observations_finds(grid: list[int], end: int, data: st.DataObject) -> None:
    """Whatever frames and rollups the observations are in, whichever series are asked for, and whatever is unknown."""
    cumulative = data.draw(st.booleans())
    series = data.draw(st.lists(seen if cumulative else in_part, min_size=1, max_size=3))
    named = {f"native;{place}": rows for place, rows in enumerate(series)}
    known = oracle.Oracle(named, Decimal(0) if cumulative else None)
    # No bucket begins after the end.
    end = max(end, grid[-2])
    stop = min(end, known.newest) + 1
    # A rollup lies in one bucket, and a frame begins where a rollup does.
    free = data.draw(st.lists(seconds, max_size=6))
    cuts = sorted({*grid, *free})
    # Of a page after the newest observation, frames have that one.
    begin = min(grid[0], stop - 1)
    starts = sorted({begin, *data.draw(st.lists(st.sampled_from(cuts), max_size=2))})
    starts = [start for start in starts if begin <= start < stop]
    spans = pairwise([*starts, stop])
    parts = [SegmentRange(frame_of(named, one, other, cuts), one, other) for one, other in spans]
    ids = data.draw(
        st.permutations(list(named)).flatmap(lambda some: st.integers(1, len(some)).map(lambda n: some[:n]))
    )
    for agg in Aggregate:
        for fill in Fill:
            found = shown(agg, parts, ids, grid, stop, fill=fill, cumulative=cumulative)
            for asset_id, own in zip(ids, found, strict=True):
                page = known.page(asset_id, grid, end, 0, len(grid), fill, agg)
                assert own == [{name: one for name, one in point.items() if name != "t"} for point in page], agg


def one_bucket(*held: tuple[int, int]) -> list[SegmentRange]:
    """Values in units of 10^-18 that hold for some seconds, one after the other from the second 0 on."""
    at, rows = 0, []
    for value, length in held:
        rows.append((at, exact(value)))
        at += length
    return [SegmentRange(frame_of({"a": rows}, 0, at, range(1, at)), 0, at)]


@given(st.lists(st.tuples(st.integers(-LIMIT, LIMIT), st.integers(1, 9)), min_size=1, max_size=5))
# Ties: 0.5 and 1.5, above and below 0.
@example([(1, 1), (0, 1)])
@example([(1, 1), (2, 1)])
@example([(-1, 1), (0, 1)])
@example([(-1, 1), (-2, 1)])
# The carry goes through all 18 decimals: 0.9999999999999999995 is a tie, and odd.
@example([(UNIT, 1), (UNIT - 1, 1)])
@example([(-UNIT, 1), (1 - UNIT, 1)])
@example([(LIMIT, 7)])
@example([(-LIMIT, 7)])
def test_a_mean_is_exact_until_it_is_rounded_half_to_even(held: list[tuple[int, int]]) -> None:
    end = sum(length for _, length in held)
    area = sum(value * length for value, length in held)
    # Python rounds fractions half to even.
    expected = oracle.text(exact(round(Fraction(area, end))))
    assert shown(Aggregate.MEAN, one_bucket(*held), ["a"], [0, end], end) == [[{"v": expected}]]


def test_without_frames_nothing_was_observed() -> None:
    for agg in Aggregate:
        (own,) = shown(agg, [], ["a"], [0, 10, 20], 0)
        names = ["o", "h", "l", "c"] if agg is Aggregate.OHLC else ["v"]
        assert [{name: point[name] for name in names} for point in own] == [dict.fromkeys(names)] * 2
    assert last_values([], ["a", "b"], [5])["second"].to_list() == [-1, -1]
