"""Candles and what follows from them, against a walk over the observations with exact fractions."""

from bisect import bisect_left
from collections.abc import Sequence
from decimal import Context, Decimal
from fractions import Fraction
from itertools import pairwise

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analytics_service.history.candles import (
    CANDLE,
    Aggregate,
    combined,
    make_candles,
    needed,
    no_observations,
    observed_once,
    scattered,
    summarized,
)
from tests import oracle

YEAR = 365 * 86_400
LIMIT = 10**38 - 1
"""The greatest value, 10^20 less 10^-18, in units of 10^-18."""
AGGREGATES = [agg for agg in Aggregate if agg is not Aggregate.LAST]

Seen = list[tuple[int, Decimal]]


def exact(units: int) -> Decimal:
    """So many times 10^-18."""
    return Decimal(units).scaleb(-18, Context(prec=60))


# Few seconds, so that several observations fall into one, and years, so that areas are great.
seconds = st.one_of(st.integers(0, 20), st.integers(0, 40 * YEAR))
values = st.one_of(st.integers(-3, 3), st.integers(-LIMIT, LIMIT), st.sampled_from([LIMIT, -LIMIT])).map(exact)
seen = st.lists(st.tuples(seconds, values), min_size=1, max_size=9)
grids = st.lists(seconds, min_size=2, max_size=7).map(sorted)


def held(rows: Seen, before: int) -> tuple[str | None, int | None]:
    """The last value before an instant, and its second."""
    known = sorted(dict(rows).items())
    place = bisect_left([second for second, _ in known], before)
    return (oracle.text(known[place - 1][1]), known[place - 1][0]) if place else (None, None)


def once(series: Sequence[Seen], begin: int, end: int) -> pl.DataFrame:
    """What the observations of [begin, end) come to."""
    rows = [
        (place, second, oracle.text(value))
        for place, observed in enumerate(series)
        for second, value in sorted(observed, key=lambda row: row[0])
        if begin <= second < end
    ]
    schema = {"series": pl.Int64(), "second": pl.Int64(), "value": pl.String()}
    return observed_once(pl.DataFrame(rows, schema=schema, orient="row"), len(series))


def made(series: Sequence[Seen], grid: Sequence[int], until: int) -> tuple[pl.DataFrame, list[str | None]]:
    """The candles of all series in each bucket, bucket by bucket, and the values that hold at the buckets' ends."""
    begins, ends = grid[:-1], [min(end, until) for end in grid[1:]]
    observed = pl.concat([once(series, *bucket) for bucket in zip(begins, ends, strict=True)])
    before = [held(rows, begin)[0] for begin in begins for rows in series]
    after = [held(rows, min(end, until)) for end in ends for rows in series]
    schema = {"value": pl.String(), "observed_at": pl.UInt32()}
    last = pl.DataFrame(after, schema=schema, orient="row")
    return make_candles(observed, pl.Series(before, dtype=pl.String), last, begins, ends), last["value"].to_list()


def shown(agg: Aggregate, candles: pl.DataFrame, last: Sequence[str | None], *, carry: bool) -> list[dict[str, object]]:
    """The points as answers have them, from no more columns than the aggregate needs."""
    found = summarized(agg, candles.select(needed(agg)), pl.Series(last, dtype=pl.String), carry=carry)
    return list(found.iter_rows(named=True))


def compare(
    series: Sequence[Seen], candles: pl.DataFrame, last: list[str | None], grid: Sequence[int], end: int
) -> None:
    """All aggregates of all series are what a walk finds."""
    known = oracle.Oracle({str(place): rows for place, rows in enumerate(series)})
    # A bucket that begins after the newest observation has no value.
    late = [begin > known.newest for begin in grid[:-1] for _ in series]
    last = [None if after else value for value, after in zip(last, late, strict=True)]
    for agg in AGGREGATES:
        for carry in (True, False):
            found = shown(agg, candles, last, carry=carry)
            for place in range(len(series)):
                page = known.page(str(place), list(grid), end, 0, len(grid), carry, agg)
                expected = [{name: value for name, value in point.items() if name != "t"} for point in page]
                assert found[place :: len(series)] == expected, (agg, carry)


@given(series=st.lists(seen, min_size=1, max_size=3), grid=grids, end=seconds)
def test_points_are_what_a_walk_over_the_observations_finds(series: list[Seen], grid: list[int], end: int) -> None:
    newest = max(second for rows in series for second, _ in rows)
    candles, last = made(series, grid, min(end, newest) + 1)
    compare(series, candles, last, grid, end)


@given(series=st.lists(seen, min_size=1, max_size=3), grid=grids, end=seconds, data=st.data())
def test_candles_of_narrow_buckets_come_to_those_of_wide_ones(
    series: list[Seen], grid: list[int], end: int, data: st.DataObject
) -> None:
    """Each wide bucket has one narrow bucket or several."""
    wide = [0, *(place for place in range(1, len(grid) - 1) if data.draw(st.booleans())), len(grid) - 1]
    newest = max(second for rows in series for second, _ in rows)
    narrow, last = made(series, grid, min(end, newest) + 1)
    counts = [stop - first for first, stop in pairwise(wide)]
    size = len(series)
    ends = [value for stop in wide[1:] for value in last[(stop - 1) * size : stop * size]]
    for agg in AGGREGATES:
        found = combined(narrow.select(needed(agg)), size, counts)
        assert found.schema == {name: CANDLE[name] for name in needed(agg)}
    compare(series, combined(narrow, size, counts), ends, [grid[place] for place in wide], end)


def test_a_bucket_that_consists_of_no_candle_has_nothing() -> None:
    one = candle(open="1", high="2", low="0.5", count=3, units=7, rest=8, seconds=9)
    empty = candle()
    assert combined(one, 1, [0, 1, 0]).equals(pl.concat([empty, one, empty]))
    assert combined(one.clear(), 1, [0, 0]).equals(pl.concat([empty, empty]))


def test_any_number_of_candles_is_combined() -> None:
    """More than are combined at once: 1,100 of them, whose values grow, and one."""
    many = pl.concat([candle(open=str(n), high=f"{n}.5", low=str(n), count=1, seconds=2) for n in range(1_100)])
    first = candle(open="0", high="1099.5", low="0", count=1_100, seconds=2_200)
    assert combined(pl.concat([many, many[7]]), 1, [1_100, 1]).equals(pl.concat([first, many[7]]))


def candle(**columns: object) -> pl.DataFrame:
    """One candle with these columns; the others are as where nothing was observed."""
    empty = {name: 0 if name in ("count", "units", "rest", "seconds") else None for name in CANDLE}
    return pl.DataFrame([empty | columns], schema=CANDLE)


@given(length=st.one_of(st.integers(1, 9), st.integers(1, 8_000 * YEAR)), data=st.data())
def test_a_mean_is_exact_until_it_is_rounded_half_to_even(length: int, data: st.DataObject) -> None:
    """Areas of any bucket that is not longer than all times that exist, in units of 10^-18."""
    area = data.draw(st.integers(-LIMIT * length, LIMIT * length))
    units, rest = divmod(area, 10**18)
    # Rests add up, so there may be more than one whole unit in them.
    moved = data.draw(st.integers(0, length - 1))
    found = candle(units=units - moved, rest=rest + moved * 10**18, seconds=length)
    # Python rounds fractions half to even.
    expected = oracle.text(exact(round(Fraction(area, length))))
    assert shown(Aggregate.MEAN, found, ["0"], carry=True) == [{"v": expected}]


@pytest.mark.parametrize(
    ("area", "length", "mean"),
    [
        (1, 2, "0"),
        (3, 2, "0.000000000000000002"),
        (5, 2, "0.000000000000000002"),
        (-1, 2, "0"),
        (-3, 2, "-0.000000000000000002"),
        (-5, 2, "-0.000000000000000002"),
        (1, 3, "0"),
        (2, 3, "0.000000000000000001"),
        (-2, 3, "-0.000000000000000001"),
        # The carry goes through all 18 decimals: 0.9999999999999999995 is a tie, and odd.
        (2 * 10**18 - 1, 2, "1"),
        (-(2 * 10**18 - 1), 2, "-1"),
        (LIMIT * 7, 7, "99999999999999999999.999999999999999999"),
        (-LIMIT * 7, 7, "-99999999999999999999.999999999999999999"),
    ],
)
def test_a_tie_goes_to_the_even_neighbour(area: int, length: int, mean: str) -> None:
    units, rest = divmod(area, 10**18)
    found = candle(units=units, rest=rest, seconds=length)
    assert shown(Aggregate.MEAN, found, ["0"], carry=True) == [{"v": mean}]


@pytest.mark.parametrize(("carry", "value"), [(True, "7"), (False, None)])
def test_buckets_without_observations_show_the_value_before_or_none(carry: bool, value: str | None) -> None:
    four = {"o": value, "h": value, "l": value, "c": value, "n": 0}
    assert shown(Aggregate.OHLC, candle(), ["7"], carry=carry) == [four]
    for agg in (Aggregate.FIRST, Aggregate.MIN, Aggregate.MAX):
        assert shown(agg, candle(), ["7"], carry=carry) == [{"v": value}]
    mean = candle(units=70, seconds=10)
    assert shown(Aggregate.MEAN, mean, ["7"], carry=carry) == [{"v": value}]


def test_only_the_later_of_two_rows_for_one_second_counts() -> None:
    found = once([[(5, Decimal(9)), (5, Decimal(1)), (8, Decimal(2))]], 0, 10).row(0, named=True)
    assert (found["open"], found["high"], found["low"], found["count"]) == ("1", "2", "1", 2)
    # One unit for three seconds, up to the last observation.
    assert (found["units"], found["rest"], found["first_at"]) == (3, 0, 5)


def test_scattered_candles_leave_nothing_elsewhere() -> None:
    rows = once([[(5, Decimal(1))]], 0, 10)
    found = scattered(rows, pl.Series([2]), 3)
    assert found[:2].equals(no_observations(2))
    assert found[2:].equals(rows)
