"""When values hold: at the end of the interval that a time names, or at four seconds of it for a candle."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import polars as pl

from analytics_service.imports.times import TimeStyle, first_seconds, walls_of
from analytics_service.market.instants import DAY, HOUR, MINUTE

Stamp = Literal["begin", "end"]
STAMPS: Sequence[Stamp] = ("begin", "end")
# The values of a candle besides its close, which is `value`.
CANDLE = ("open", "high", "low")
# The distances from which dates may name a week or month that begins, and months more than one.
APART = {TimeStyle.DATE: 6 * DAY, TimeStyle.MONTH: 32 * DAY}
# The seconds that a candle must have: one for each of its values.
LEAST = 4
_UNITS = {"s": "s", "min": "m", "h": "h", "d": "d", "w": "w", "mo": "mo"}
_SECONDS = {"s": 1, "m": MINUTE, "h": HOUR, "d": DAY}
_MONTH = 30.44 * DAY


@dataclass(frozen=True, slots=True)
class Holding:
    """What the caller says about the times of files: whether they name the `begin` or the `end` of the interval that a
    value is of, and its length as Polars writes it. None of what was not said."""

    stamp: Stamp | None = None
    interval: str | None = None


def parse_interval(text: str) -> str:
    """An interval as Polars writes it. ValueError names the accepted forms."""
    match = re.fullmatch(rf"([1-9][0-9]{{0,5}})({'|'.join(_UNITS)})", text)
    if not match:
        raise ValueError("must be a whole number followed by s, min, h, d, w or mo, such as 15min, 1h, 1d or 1mo")
    return f"{match[1]}{_UNITS[match[2]]}"


def least_distance(assets: pl.Series, seconds: pl.Series, zone: str) -> int | None:
    """The least distance of the times of each asset, by the clock of their zone; None if all are alike."""
    walls = walls_of(seconds, zone).dt.epoch("s")
    ordered = pl.DataFrame({"key": assets.cast(pl.Int64) * 2**33 + walls}).unique().sort("key")["key"]
    same = ordered // 2**33 == ordered.shift(1) // 2**33
    least = ordered.diff().filter(same & (ordered.diff() > 0)).min()
    if not isinstance(least, int):
        return None
    # A day on which clocks go forward has 23 hours.
    return least + (HOUR if (least + HOUR) % DAY == 0 else 0)


def interval_of(seconds: pl.DataFrame, zone: str) -> str | None:
    """The least distance of the times `begin` of each `asset`, as an interval. One of months is a calendar interval, so
    that no value holds before its month is over."""
    least = least_distance(seconds["asset"], seconds["begin"], zone)
    if least is None:
        return None
    months = round(least / _MONTH)
    if months and abs(least - months * _MONTH) < 3 * DAY:
        return f"{months}mo"
    size, unit = next((size, unit) for unit, size in reversed(_SECONDS.items()) if least % size == 0)
    return f"{least // size}{unit}"


def shifted(seconds: pl.Series, interval: str, zone: str) -> pl.Series:
    """Unix seconds and an interval, or before it with a minus sign; days and months by the clock of the zone."""
    fixed = re.fullmatch(r"(-?[0-9]+)([smh])", interval)
    if fixed:
        return seconds.cast(pl.Int64) + int(fixed[1]) * _SECONDS[fixed[2]]
    return first_seconds(walls_of(seconds, zone).dt.offset_by(interval), zone)


def candles(rows: pl.DataFrame) -> pl.DataFrame:
    """Four rows of each row with `open`, `high`, `low` and the close as `value`: at the first second of its interval
    from `begin` to `observed_at`, after a third, after two thirds, and at the last."""
    begin, last = pl.col("begin").cast(pl.Int64), pl.col("observed_at").cast(pl.Int64)
    span = last - begin + 1
    seconds = {"open": begin, "high": begin + span // 3, "low": begin + span * 2 // 3, "value": last}
    parts = [
        rows.with_columns(value=pl.col(name), observed_at=second.cast(pl.UInt32)) for name, second in seconds.items()
    ]
    return pl.concat(parts).drop(CANDLE)
