"""The candles of days that begin with any hour, against a walk over the hours."""

from collections.abc import Sequence
from decimal import Decimal

import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st

from analytics_service.history.blocks import NO_CELLS, Block, Picked
from analytics_service.history.candles import CANDLE, SETS
from analytics_service.history.day_blocks import HOURS_OF_A_DAY, Days, candles_of_days, make_days

FOUR, SUMS = SETS
# Open, high, low, how many observations there were, and the numbers that add up; None without an observation.
Hour = tuple[str, str, str, int, int, int, int] | None
texts = st.integers(0, 40).map(lambda number: str(Decimal(number) / 4))
hours = st.one_of(
    st.none(),
    st.tuples(texts, texts, texts, st.integers(1, 60), st.integers(0, 10**22), st.integers(0, 10**22), st.just(3600)),
)


def candles(there: Sequence[Hour]) -> pl.DataFrame:
    rows = [(None, None, None, 0, 0, 0, 0) if hour is None else hour for hour in there]
    return pl.DataFrame(rows, schema=CANDLE, orient="row")


def of_a_day(there: Sequence[Hour]) -> tuple[object, ...]:
    """The candle of some hours in a row."""
    seen = [hour for hour in there if hour is not None]
    if not seen:
        return (None, None, None, 0, 0, 0, 0)
    high = max((hour[1] for hour in seen), key=Decimal)
    low = min((hour[2] for hour in seen), key=Decimal)
    return (seen[0][0], high, low, *(sum(hour[place] for hour in seen) for place in (3, 4, 5, 6)))


@given(data=st.data(), series=st.integers(1, 3), count=st.integers(1, 60))
@settings(max_examples=60, deadline=None)
def test_a_day_is_what_a_walk_over_its_hours_finds(data: st.DataObject, series: int, count: int) -> None:
    """For some of the series, and one that the blocks do not have."""
    walk = [[data.draw(hours) for _ in range(series)] for _ in range(count)]
    ids = [f"token;{place}" for place in range(series)]
    whole = candles([hour for row in walk for hour in row])
    for columns in (FOUR, SUMS):
        made = make_days(whole.select(columns), series)
        assert made.height == max(count - HOURS_OF_A_DAY + 1, 0) * series
        if not made.height:
            continue
        days, block = Block(ids, made), Block(ids, whole.select(columns))
        begins = range(data.draw(st.integers(0, days.cells - 1)), days.cells, HOURS_OF_A_DAY)
        asked = data.draw(st.permutations([*ids, "token;new"]))[: data.draw(st.integers(1, series + 1))]
        there = Picked([block], [range(begins[0], begins[-1] + HOURS_OF_A_DAY)], ids)
        found = candles_of_days([Days(days, begins, there)], asked, columns)
        nothing = dict(zip(CANDLE, of_a_day([]), strict=True))
        for number, begin in enumerate(begins):
            for place, name in enumerate(asked):
                at = [row[ids.index(name)] for row in walk[begin : begin + HOURS_OF_A_DAY]] if name in ids else []
                expected = dict(zip(CANDLE, of_a_day(at), strict=True)) if at else nothing
                row = found.row(number * len(asked) + place, named=True)
                assert row == {column: expected[column] for column in columns}


def test_days_of_blocks_of_other_series_follow_each_other() -> None:
    """A day before the first observation, one of a series, and one of two."""
    one = candles([(f"{hour}", f"{hour}", f"{hour}", 1, hour, 0, 3600) for hour in range(24)]).select(FOUR)
    two = candles([(f"{hour}", f"{hour}", "0.5", 2, hour, 0, 3600) for hour in range(48)]).select(FOUR)
    found = [
        Days(NO_CELLS, range(1), Picked([NO_CELLS], [range(24)], [])),
        *(
            Days(Block(ids, make_days(rows, len(ids))), range(1), Picked([Block(ids, rows)], [range(24)], ids))
            for ids, rows in ((["b"], one), (["a", "b"], two))
        ),
    ]
    assert candles_of_days(found, ["a", "b"], FOUR).rows() == [
        (None, None, None, 0),
        (None, None, None, 0),
        (None, None, None, 0),
        ("0", "23", "0", 24),
        ("0", "46", "0.5", 48),
        ("1", "47", "0.5", 48),
    ]
