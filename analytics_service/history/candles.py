"""Points of buckets: the last value, its change, or an aggregate (rules 2.6, bucket values, and 2.14, aggregates).

All arithmetic is exact. An area (a value times the seconds for which it held) can exceed 128 bits, so it is two
numbers: whole units, and multiples of 10^-18.
"""

from collections.abc import Mapping, Sequence
from decimal import Decimal
from enum import StrEnum

import polars as pl

from analytics_service.history.segments import UNIT, SegmentRange, bucket_candles, from_units, last_values, row_index
from analytics_service.market.kinds import DECIMAL


class Aggregate(StrEnum):
    """How a point summarizes its bucket."""

    LAST = "last"
    FIRST = "first"
    MIN = "min"
    MAX = "max"
    MEAN = "mean"
    OHLC = "ohlc"
    DELTA = "delta"


# Aggregates that need only last values.
OF_LAST = (Aggregate.LAST, Aggregate.DELTA)


class Fill(StrEnum):
    """What a bucket without observations shows: the value before it, up to the history's newest observation; no value;
    or the value before it, without limit."""

    PREVIOUS = "previous"
    NONE = "none"
    LAST = "last"


_COLUMN = {Aggregate.FIRST: "open", Aggregate.MIN: "low", Aggregate.MAX: "high"}
NO_ENDS: Mapping[str, int] = {}
# Later than all observations.
_NEVER = 2**32
_WIDE = pl.Int128()
_TWO, _ONE, _ZERO = (pl.lit(number, dtype=_WIDE) for number in (2, 1, 0))
# The greatest number that fits, as a multiple of 10^-18.
_GREATEST = pl.lit(10**38 - 1, dtype=_WIDE)


def bucket_points(
    agg: Aggregate,
    parts: Sequence[SegmentRange],
    ids: Sequence[str],
    begins: Sequence[int],
    until: int,
    *,
    fill: Fill,
    ended: Mapping[str, int] = NO_ENDS,
    cumulative: bool = False,
) -> tuple[pl.DataFrame, int | None]:
    """The points of the buckets between `begins` (unix s), series by series, from observations before `until`; and the
    unix second of the last observation before the page's end, None if there is none.

    Columns are `v`, or `o`, `h`, `l`, `c` and `n`. Values are decimal strings or numbers; null before the first
    observation, after the end of the series (`ended`, unix s by id), where the value is unknown, and as `fill` says. If
    a bucket ends with an unknown value, its candle summarizes the earlier values and has no `c`. The first delta of a
    `cumulative` series is its first value; other series have none.
    Cost: proportional to the buckets for last values, else to the rows in their range.
    """
    ends, carry = [min(end, until) for end in begins[1:]], fill is not Fill.NONE
    held = last_values(parts, ids, ends)
    value, newest = held["value"], held["second"].max()
    series, bucket = row_index(len(ids), len(ends))
    if fill is not Fill.LAST and ends and begins[-2] >= until:
        value = value.set((pl.Series(begins[:-1]) >= until)[bucket], None)
    if agg in OF_LAST:
        if not carry:
            value = value.set(held["second"] < pl.Series(begins[:-1], dtype=pl.Int64)[bucket], None)
        if agg is Aggregate.DELTA:
            before = last_values(parts, ids, _starts(begins, ends))["value"].cast(DECIMAL)
            value = difference(value.cast(DECIMAL), before.fill_null(Decimal(0)) if cumulative else before)
        shown = value.to_frame("v")
    elif agg is Aggregate.MEAN:
        held = held.with_columns(value=value, until=_lasts(ids, ended)[series] + 1)
        shown = _mean(parts, ids, begins, ends, held, carry=carry)
    else:
        columns = [_COLUMN[agg]] if agg in _COLUMN else ["open", "high", "low"]
        summaries = bucket_candles(parts, ids, begins, [*columns, "count"])
        shown = _candles(summaries, value, columns, carry=carry)
    if shown.height and not ended.keys().isdisjoint(ids):
        shown = _without_ended(shown, ids, begins, ended)
    return shown, newest if isinstance(newest, int) and newest >= 0 else None


def sum_by_bucket(
    parts: Sequence[SegmentRange],
    ids: Sequence[str],
    begins: Sequence[int],
    until: int,
    *,
    fill: Fill,
    ended: Mapping[str, int] = NO_ENDS,
) -> pl.DataFrame:
    """The sum `v` of the series' last values (see `bucket_points`) at the end of each bucket. A series counts from its
    first observation to its end. Null if no series counts, a value is unknown, or the sum is 10^20 or more."""
    ends = [min(end, until) for end in begins[1:]]
    series, bucket = row_index(len(ids), len(ends))
    starts = pl.Series("start", begins[:-1], dtype=pl.Int64)
    held = last_values(parts, ids, ends).with_columns(start=starts[bucket], until=_lasts(ids, ended)[series])
    counted = held.filter(pl.col("second") >= 0, pl.col("start") <= pl.col("until"))
    values = counted.select("start", unit=pl.col("value").cast(DECIMAL).to_physical())
    unit = pl.col("unit")
    # The exact sum may wrap around; the rounded sum shows it.
    fits = (unit.cast(pl.Float64).sum().abs() < 1.5e38) & unit.sum().is_between(-_GREATEST, _GREATEST)
    sums = values.group_by("start").agg(v=pl.when(unit.is_not_null().all() & fits).then(unit.sum()))
    all_sums = starts.to_frame().join(sums, on="start", how="left", maintain_order="left")
    if fill is not Fill.LAST:
        all_sums = all_sums.with_columns(pl.when(pl.col("start") < until).then("v"))
    return all_sums.select(v=from_units(pl.col("v")))


def difference(after: pl.Series, before: pl.Series) -> pl.Series:
    """`after` minus `before`; null where either is null, or where the result is 10^20 or more and does not fit.

    A result that exceeds 128 bits wraps around to a number that is still too great.
    """
    change = pl.DataFrame([(after.to_physical() - before.to_physical()).alias("change")])
    fitting = pl.when(pl.col("change").is_between(-_GREATEST, _GREATEST)).then("change")
    return change.select(from_units(fitting)).to_series()


def _starts(begins: Sequence[int], ends: Sequence[int]) -> list[int]:
    """The starts of buckets, at most their ends and at least 1970."""
    return [max(min(begin, end), 0) for begin, end in zip(begins[:-1], ends, strict=True)]


def _lasts(ids: Sequence[str], ended: Mapping[str, int]) -> pl.Series:
    """The last second in which each series may have a value."""
    return pl.Series([ended.get(asset_id, _NEVER) for asset_id in ids], dtype=pl.Int64)


def _without_ended(
    shown: pl.DataFrame, ids: Sequence[str], begins: Sequence[int], ended: Mapping[str, int]
) -> pl.DataFrame:
    """The points, null in buckets that begin after the end of their series."""
    series, bucket = row_index(len(ids), len(begins) - 1)
    goes_on = pl.lit(pl.Series(begins[:-1], dtype=pl.Int64)[bucket] <= _lasts(ids, ended)[series])
    values = shown.with_columns(pl.when(goes_on).then(pl.col(name)) for name in shown.columns)
    return values.with_columns(pl.col("n").fill_null(0)) if "n" in shown.columns else values


def _candles(summaries: pl.DataFrame, close: pl.Series, columns: Sequence[str], *, carry: bool) -> pl.DataFrame:
    """The candle of each bucket. In a bucket without observed values, all its values are the value at its end."""
    empty = summaries["count"].fill_null(0) == 0
    if not carry:
        close = close.set(empty, None)
    if empty.any():
        number = close.cast(DECIMAL)
        summaries = summaries.with_columns(pl.col(name).fill_null(number) for name in columns)
    if len(columns) == 1:
        return summaries.select(v=columns[0])
    return summaries.select(o="open", h="high", l="low", c=close, n=pl.col("count").fill_null(0))


def _mean(
    parts: Sequence[SegmentRange],
    ids: Sequence[str],
    begins: Sequence[int],
    ends: Sequence[int],
    held: pl.DataFrame,
    *,
    carry: bool,
) -> pl.DataFrame:
    """The area of each bucket, divided by the seconds that had a value. `held` has the values at the ends of buckets,
    and `until`, the end of each series."""
    starts = _starts(begins, ends)
    before = last_values(parts, ids, starts)
    bucket = row_index(len(ids), len(ends))[1]
    start, end = (pl.Series(instants, dtype=pl.Int64)[bucket] for instants in (starts, ends))
    # An observation after the end of a series, such as the removal of a market, ends its value.
    ended = pl.max_horizontal(pl.min_horizontal("end", "until"), "second")
    end = held.with_columns(end=end).select(ended).to_series()
    close = held["value"].cast(DECIMAL)
    segment = bucket_candles(parts, ids, begins, ["count", "seconds", "units", "rest"]).with_columns(
        close=close,
        after=close.to_physical(),
        after_for=(end - held["second"]).cast(_WIDE),
        before=before["value"].cast(DECIMAL).to_physical(),
        before_for=(start - before["second"]).cast(_WIDE),
    )
    # The rows' area starts when the value before the bucket was observed.
    areas = (
        pl.col(area).cast(_WIDE).fill_null(0) + _held("after", area) - _held("before", area)
        for area in ("units", "rest", "seconds")
    )
    segment = segment.select("close", "count", *areas)
    mean = pl.when(pl.col("seconds") > 0).then(_QUOTIENT).otherwise("close")
    return segment.select(v=mean if carry else pl.when(pl.col("count") > 0).then(mean))


def _held(value: str, area: str) -> pl.Expr:
    """Units, rest or seconds of a value times the seconds for which it held; 0 without a value."""
    number = pl.col(value)
    each = {"units": number // UNIT, "rest": number % UNIT, "seconds": number.is_not_null().cast(_WIDE)}
    return (each[area] * pl.col(f"{value}_for")).fill_null(0)


def _quotient() -> pl.Expr:
    """The area divided by its seconds, rounded half to even to 18 decimals. The result for 0 seconds is unused."""
    seconds = pl.max_horizontal("seconds", _ONE)
    parts = pl.col("units") % seconds * UNIT + pl.col("rest")
    fraction = parts // seconds
    # Twice the remainder minus the divisor: positive above a half, zero at a half, negative below.
    left = parts % seconds * _TWO - seconds
    up = (left > _ZERO) | ((left == _ZERO) & (fraction % _TWO != _ZERO))
    mean = pl.col("units") // seconds * UNIT + fraction + up.cast(_WIDE)
    return from_units(mean)


_QUOTIENT = _quotient()
