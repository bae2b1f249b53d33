"""Values at bucket ends and their encoding, against a walk over the observations."""

import json
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st

from analytics_service.history.formats.base import Points
from analytics_service.history.formats.json import encode, texts
from analytics_service.history.sample import either, limits, sample
from tests import oracle

PRICES = st.decimals(0, 10**19, places=18, allow_nan=False, allow_infinity=False)
SCHEMA = {"series": pl.UInt64, "observed_at": pl.UInt32, "value": pl.String, "rank": pl.UInt64}


def encoded(names: Sequence[str], values: pl.Series, begins: list[int]) -> Any:
    """The series of a page, each with its asset and points; one part of the page for every two of them."""
    parts = []
    for first in range(0, len(names), 2):
        ids = [f"native;{name}" for name in names[first : first + 2]]
        some = values.gather([n for n in range(len(values)) if n % len(names) in (first, first + 1)]).to_frame("v")
        parts.append((ids, [texts(begins, some, len(ids), at_once=len(begins))] if begins else []))
    return json.loads(b"".join(encode(Points(begins, single=False), parts, ("", ""))))


def rows_of(observations: list[list[tuple[int, Decimal]]]) -> pl.DataFrame:
    rows = [
        (series, at, oracle.text(usd), rank)
        for series, seen in enumerate(observations)
        for rank, (at, usd) in enumerate(seen)
    ]
    return pl.DataFrame(rows, schema=SCHEMA, orient="row")


@given(
    observations=st.lists(st.lists(st.tuples(st.integers(0, 60), PRICES), max_size=12), min_size=1, max_size=4).filter(
        any
    ),
    bounds=st.lists(st.integers(-20, 90), min_size=2, max_size=10).map(sorted),
    end_after=st.integers(0, 30),
    carry=st.booleans(),
    data=st.data(),
)
@settings(max_examples=300, deadline=None)
def test_each_value_is_the_last_observation_before_its_buckets_end(
    observations: list[list[tuple[int, Decimal]]],
    bounds: list[int],
    end_after: int,
    carry: bool,
    data: st.DataObject,
) -> None:
    shuffled = data.draw(st.permutations(range(sum(map(len, observations)))))
    end = bounds[-2] + end_after
    names = [str(series) for series in range(len(observations))]
    known = oracle.Oracle({name: seen for name, seen in zip(names, observations, strict=True) if seen})
    horizon = min(end, known.newest) + 1

    rows = rows_of(observations)[shuffled].filter(pl.col("observed_at") < horizon)
    values = sample(rows, len(names), *limits(bounds, horizon, carry=carry))["value"]
    answer = encoded(names, values, bounds[:-1])

    for name, series in zip(names, answer, strict=True):
        empty = [{"t": begin, "v": None} for begin in bounds[:-1]]
        expected = known.page(name, bounds, end, 0, 99, carry) if name in known.series else empty
        assert series == {"asset": {"id": f"native;{name}", "group": "native", "group_key": name}, "points": expected}


def test_a_series_without_any_observation_on_the_page_is_null_throughout() -> None:
    values = sample(rows_of([[], []]), 2, [0, 0], [10, 20])
    assert values.rows() == [(None, None)] * 4


def test_of_two_rows_for_one_second_the_one_of_greater_rank_holds() -> None:
    rows = pl.DataFrame([(0, 5, "1", 9), (0, 5, "2", 3)], schema=SCHEMA, orient="row")
    assert sample(rows, 1, [0], [10]).rows() == [("1", 5)]


def test_a_page_beyond_the_end_has_series_without_points() -> None:
    assert [one["points"] for one in encoded("ab", pl.Series([], dtype=pl.String), [])] == [[], []]


def test_a_page_of_no_series_is_empty() -> None:
    assert encoded("", pl.Series([], dtype=pl.String), [0]) == []


def test_values_are_taken_from_either_side_by_a_mask() -> None:
    first, other = pl.Series(["a", None, "c"]), pl.Series(["x", "y", None])
    assert either(first, pl.Series([True, False, False]), other).to_list() == ["a", "y", None]
    assert either(first, pl.Series([False, True, True]), other).to_list() == ["x", None, "c"]
