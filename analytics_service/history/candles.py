"""Candles: summaries of the observations in each bucket, and the aggregates that follow from them (rule 2.14).

All arithmetic is exact. A value times the seconds for which it held (an area) can have more digits than fit 128 bits,
so an area is kept as two numbers: whole units, and multiples of 10^-18.
"""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from itertools import accumulate

import polars as pl

from analytics_service.history.sample import choice, either, layout, rows_from
from analytics_service.store.columns import DECIMAL


class Aggregate(StrEnum):
    """How a point summarizes its bucket."""

    LAST = "last"
    FIRST = "first"
    MIN = "min"
    MAX = "max"
    MEAN = "mean"
    OHLC = "ohlc"


_WIDE = pl.Int128()
_UNIT = pl.lit(10**18, dtype=_WIDE)
_UNITS, _TEN, _TWO, _ZERO = (pl.Series([number], dtype=_WIDE) for number in (10**18, 10, 2, 0))
_SMALLEST = pl.Series(["0.000000000000000001"]).cast(DECIMAL)
# A bucket's candle. `open`, `high` and `low` are decimal text, null without observations, whose number is `count`.
# `units` and `rest` are its area from the series' first observation on, and `seconds` its length from there.
CANDLE = pl.Schema(
    {
        "open": pl.String(),
        "high": pl.String(),
        "low": pl.String(),
        "count": pl.UInt32(),
        "units": _WIDE,
        "rest": _WIDE,
        "seconds": pl.Int64(),
    }
)
# The columns that add up. They are 0 without observations, where others are null.
SUMS = ("count", "units", "rest", "seconds")
_FOUR = ("open", "high", "low", "count")
# The columns of candles that are kept in memory: two sets, because no aggregate needs both.
SETS = (_FOUR, SUMS)


def needed(agg: Aggregate) -> tuple[str, ...]:
    """The columns of candles that an aggregate needs."""
    return SUMS if agg is Aggregate.MEAN else _FOUR


# A candle before the values around it are known: its area is only from the first observation (`first_at`) to the last.
OBSERVED = pl.Schema(
    {**{name: CANDLE[name] for name in ("open", "high", "low", "count", "units", "rest")}, "first_at": pl.Int64()}
)


def make_candles(
    observed: pl.DataFrame, before: pl.Series, last: pl.DataFrame, begins: Sequence[int], ends: Sequence[int]
) -> pl.DataFrame:
    """Candles of buckets, bucket by bucket, in the columns of CANDLE.

    `observed` has the columns of OBSERVED. `before` are the values that held when the buckets began, and `last` has the
    value and observed_at of those that held when they ended. `begins` and `ends` (unix s) are for each bucket.
    """
    bucket = layout(len(begins), observed.height // max(len(begins), 1))[0]
    frame = observed.with_columns(
        before=before.cast(DECIMAL).to_physical(),
        after=last["value"].cast(DECIMAL).to_physical(),
        begin=pl.Series(begins, dtype=pl.Int64)[bucket],
        end=pl.Series(ends, dtype=pl.Int64)[bucket],
        last_at=last["observed_at"].cast(pl.Int64),
    )
    seen, length = pl.col("count") > 0, pl.max_horizontal("end", "begin") - pl.col("begin")
    known = pl.col("before").is_not_null()
    held_before = pl.when(known & seen).then(pl.col("first_at") - pl.col("begin")).when(known).then(length)
    held_after = pl.when(seen).then(pl.col("end") - pl.col("last_at"))
    frame = frame.with_columns(
        held_before=held_before.otherwise(0).cast(_WIDE), held_after=held_after.otherwise(0).cast(_WIDE)
    )
    return frame.select(
        "open",
        "high",
        "low",
        "count",
        units=_held(pl.col("before") // _UNIT, pl.col("after") // _UNIT) + pl.col("units"),
        rest=_held(pl.col("before") % _UNIT, pl.col("after") % _UNIT) + pl.col("rest"),
        seconds=pl.when(known).then(length).when(seen).then(pl.col("end") - pl.col("first_at")).otherwise(0),
    ).cast(CANDLE)


def _held(before: pl.Expr, after: pl.Expr) -> pl.Expr:
    return (before * pl.col("held_before")).fill_null(0) + (after * pl.col("held_after")).fill_null(0)


def combined(candles: pl.DataFrame, series: int, counts: Sequence[int]) -> pl.DataFrame:
    """Candles of wider buckets for `series` series; `counts` says how many of the candles each bucket combines."""
    several = [bucket for bucket, count in enumerate(counts) if count != 1]
    if len(several) == len(counts):
        return _combined(candles, series, counts)
    if not several:
        return candles
    # Most local days are cells of their own; only where clocks change are there several.
    first = [*accumulate(counts, initial=0)]
    cells = [cell * series for bucket in several for cell in range(first[bucket], first[bucket + 1])]
    wide = _combined(candles[rows_from(cells, series)], series, [counts[bucket] for bucket in several])
    for place, bucket in enumerate(several, start=len(candles) // series):
        first[bucket] = place
    rows = rows_from([place * series for place in first[:-1]], series)
    return pl.concat([candles, wide], rechunk=True)[rows]


def _combined(candles: pl.DataFrame, series: int, counts: Sequence[int]) -> pl.DataFrame:
    if candles.is_empty():
        return no_candles(candles.columns, len(counts) * series)
    bucket = pl.Series([number for number, count in enumerate(counts) for _ in range(count)], dtype=pl.UInt32)
    cell, place = layout(len(bucket), series)
    grouped = candles.with_columns(group=(bucket * series)[cell] + place).group_by("group", maintain_order=True)
    found = grouped.agg(_COMBINED[name].alias(name) for name in candles.columns)
    size, values = len(counts) * series, found.drop("group")
    return values if values.height == size else scattered(values, found["group"], size)


def no_observations(size: int) -> pl.DataFrame:
    """So many rows in the columns of OBSERVED without observations."""
    return pl.DataFrame([_nothing(name, dtype, size) for name, dtype in OBSERVED.items()])


def no_candles(columns: Sequence[str], size: int) -> pl.DataFrame:
    """So many candles without observations, before the first one."""
    return pl.DataFrame([_nothing(name, CANDLE[name], size) for name in columns])


def scattered(rows: pl.DataFrame, places: pl.Series, size: int) -> pl.DataFrame:
    """A table of `size` rows with the given rows at some places; all other rows are empty."""
    return pl.DataFrame(
        [_nothing(name, dtype, size).scatter(places, rows[name].cast(dtype)) for name, dtype in rows.schema.items()]
    )


def _nothing(name: str, dtype: pl.DataType, size: int) -> pl.Series:
    empty = 0 if name in SUMS else None
    return pl.Series(name, [empty], dtype=dtype).new_from_index(0, size)


def observed_once(rows: pl.DataFrame, series: int) -> pl.DataFrame:
    """A summary of the observations of one bucket for each of so many series, in the columns of OBSERVED.

    `rows` has the columns series (place), second (unix s) and value (decimal text), in order of time.
    """
    single = rows.unique(["series", "second"], keep="last", maintain_order=True)
    held = (pl.col("second").shift(-1).over("series") - pl.col("second")).fill_null(0).cast(_WIDE)
    number = pl.col("value").cast(DECIMAL)
    found = (
        single.with_columns(number=number, exact=number.to_physical(), held=held)
        .group_by("series", maintain_order=True)
        .agg(
            open=pl.col("value").first(),
            high=_text(pl.col("number").max()),
            low=_text(pl.col("number").min()),
            count=pl.len(),
            units=(pl.col("exact") // _UNIT * pl.col("held")).sum(),
            rest=(pl.col("exact") % _UNIT * pl.col("held")).sum(),
            first_at=pl.col("second").first(),
        )
    )
    return scattered(
        found.select(pl.col(name).cast(dtype) for name, dtype in OBSERVED.items()), found["series"], series
    )


def summarized(agg: Aggregate, candles: pl.DataFrame, last: pl.Series, *, carry: bool) -> pl.DataFrame:
    """The columns of a page's points: `v`, or `o`, `h`, `l`, `c` and `n`.

    `last` are the values that hold at the ends of buckets, null before the first observation and where a bucket begins
    after the newest one. Without `carry`, buckets without observations have null.
    """
    seen = candles["count"] > 0
    unseen = len(seen) - int(seen.sum())
    close = last.set(~seen, None) if unseen and not carry else last
    if agg is Aggregate.MEAN:
        known = close.is_not_null() & (candles["seconds"] > 0)
        return pl.DataFrame([either(_mean(candles), known, close).alias("v")])

    # If no value is carried into a bucket without observations, all its columns are null already.
    place = choice(seen) if unseen > close.null_count() else None

    def shown(name: str) -> pl.Series:
        return candles[name] if place is None else pl.concat([candles[name], close], rechunk=True)[place]

    if agg is Aggregate.OHLC:
        four = {"o": shown("open"), "h": shown("high"), "l": shown("low"), "c": close}
        return pl.DataFrame([*(one.alias(name) for name, one in four.items()), candles["count"].alias("n")])
    column = {Aggregate.FIRST: "open", Aggregate.MIN: "low", Aggregate.MAX: "high"}[agg]
    return shown(column).to_frame("v")


def _mean(candles: pl.DataFrame) -> pl.Series:
    """The area divided by its seconds, rounded half to even to 18 decimals, as text; arbitrary text for 0 seconds."""
    # Series rather than expressions: each step of a query takes as long as dividing a page. Remainders are calculated
    # from quotients, because another division takes longer than a product.
    units, rest, length = candles["units"], candles["rest"], candles["seconds"]
    seconds = length.set(length == 0, 1).cast(_WIDE)
    whole = units // seconds
    parts = (units - whole * seconds) * _UNITS + rest
    fraction = parts // seconds
    # Twice the remainder minus the divisor: positive above a half, zero at a half, negative below.
    left = (parts - fraction * seconds) * _TWO - seconds
    up = left > _ZERO
    if (left == _ZERO).any():
        up = up | ((left == _ZERO) & (fraction % _TWO != _ZERO))
    mean = whole * _UNITS + fraction + up.cast(_WIDE)
    text = (mean.cast(pl.Decimal(38, 0)) * _SMALLEST).cast(pl.String)
    # Few means end with zeros, or nearly all. Stripping them takes longer than all the rest.
    row = layout(len(text), 1)[0].filter(mean // _TEN * _TEN == mean)
    stripped = text[row].to_frame("mean").select_seq(_PLAIN).to_series()
    place = layout(len(text), 1)[0].scatter(row, layout(len(row), 1)[0] + len(text))
    return pl.concat([text, stripped], rechunk=True)[place]


def _text(number: pl.Expr) -> pl.Expr:
    """Plain decimal text without trailing zeros."""
    return number.cast(pl.String).str.strip_chars_end("0").str.strip_chars_end(".")


_PLAIN = _text(pl.col("mean"))
# How columns of several candles become those of a wider one.
_COMBINED: Mapping[str, pl.Expr] = {
    "open": pl.col("open").drop_nulls().first(),
    "high": _text(pl.col("high").cast(DECIMAL).max()),
    "low": _text(pl.col("low").cast(DECIMAL).min()),
    **{name: pl.col(name).sum() for name in SUMS},
}
