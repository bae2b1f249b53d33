"""Blocks of days that slide: the candle of the 24 hours from each hour on, so that days of all zones share them.

They have the sums of these hours, and in which of them the open, the high and the low were observed: a byte instead of
a text, which is that of the hour's own candle.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

import polars as pl

from analytics_service.history.blocks import Block, Picked, in_one
from analytics_service.history.candles import SUMS, no_candles
from analytics_service.market.instants import DAY, HOUR
from analytics_service.store.columns import DECIMAL

HOURS_OF_A_DAY = DAY // HOUR
_HOUR = pl.UInt8()
# Where the value at a later hour counts instead of an earlier one.
_IS_LATER = {
    "open": pl.col("open").is_null(),
    "high": pl.col("high").is_null() | (pl.col("high_later") > pl.col("high")),
    "low": pl.col("low").is_null() | (pl.col("low_later") < pl.col("low")),
}


def make_days(hours: pl.DataFrame, series: int) -> pl.DataFrame:
    """The days of 24 consecutive hours that begin with each hour, hour by hour; none with the last 23.

    `hours` has columns of CANDLE of `series` series. Those that add up are sums. `open`, `high` and `low` are which of
    the hours (from 0) has the day's, null without observations.
    """
    sums = [name for name in hours.columns if name in SUMS]
    texts = [name for name in hours.columns if name not in SUMS]
    one = hours.select(
        *sums,
        *(pl.col(name).cast(DECIMAL) for name in texts),
        *(pl.when(pl.col(name).is_not_null()).then(pl.lit(0, _HOUR)).alias(f"{name}_at") for name in texts),
    )
    two = _joined(one, one, 1, series)
    four = _joined(two, two, 2, series)
    eight = _joined(four, four, 4, series)
    days = _joined(_joined(eight, eight, 8, series), eight, 16, series)
    return days.select(pl.col(name if name in SUMS else f"{name}_at").alias(name) for name in hours.columns).rechunk()


def _joined(earlier: pl.DataFrame, later: pl.DataFrame, width: int, series: int) -> pl.DataFrame:
    """Spans of `width` hours from each hour on, each together with one of `later` that begins where it ends."""
    later = later.slice(width * series).rename(lambda name: f"{name}_later")
    both = pl.concat([earlier.head(later.height), later.head(earlier.height)], how="horizontal")
    columns = []
    for name in earlier.columns:
        if name in SUMS:
            columns.append(pl.col(name) + pl.col(f"{name}_later"))
        elif name in _IS_LATER:
            columns += [
                pl.when(_IS_LATER[name]).then(f"{name}_later").otherwise(name).alias(name),
                pl.when(_IS_LATER[name])
                .then(pl.col(f"{name}_at_later") + pl.lit(width, _HOUR))
                .otherwise(f"{name}_at")
                .alias(f"{name}_at"),
            ]
    return both.select(columns)


@dataclass(frozen=True, slots=True)
class Days:
    """Days that begin with some hours of a block, by number; `hours` has all hours of these days, of its series."""

    block: Block
    begins: Sequence[int]
    hours: Picked


def candles_of_days(found: Sequence[Days], ids: Sequence[str], columns: Sequence[str]) -> pl.DataFrame:
    """Some columns of the candles of some series on some days, day by day."""
    known = found[0].block.ids
    if any(one.block.ids != known for one in found):
        return in_one([candles_of_days([one], ids, columns) for one in found])
    if not known:
        return no_candles(columns, len(ids) * sum(len(one.begins) for one in found))
    picked = Picked([one.block for one in found], [one.begins for one in found], ids)
    firsts = [(begin - one.begins[0]) * len(known) for one in found for begin in one.begins]
    rows = found[0].block.rows(firsts, ids)
    sizes = [len(one.begins) * len(ids) for one in found]

    def column(name: str) -> pl.Series:
        values = picked.column(name)
        if name in SUMS:
            return values
        places = rows + values.cast(pl.UInt32) * len(known)
        spans = zip(found, sizes, accumulate(sizes), strict=True)
        return in_one([one.hours.at(name, places.slice(end - size, size)) for one, size, end in spans])

    return pl.DataFrame([column(name).alias(name) for name in columns])
