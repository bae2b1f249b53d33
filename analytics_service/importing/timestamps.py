"""The second from which a value counts: its time, or the last second of the interval that begins at its time."""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import polars as pl

from analytics_service.importing.time_parsing import first_seconds, walls_of
from analytics_service.market.instants import DAY, HOUR, MINUTE

Stamp = Literal["begin", "end"]
STAMPS: Sequence[Stamp] = ("begin", "end")
CANDLE = ("open", "high", "low")
"""The values of a candle besides its close, which is `value`."""
# Least length of a candle: a second for each of its values.
LEAST = 4
_UNITS = {"s": "s", "min": "m", "h": "h", "d": "d", "w": "w", "mo": "mo"}
_SECONDS = {"s": 1, "m": MINUTE, "h": HOUR, "d": DAY}
_MONTH = 30.44 * DAY


@dataclass(frozen=True, slots=True)
class Timestamps:
    """What times in files mean: the `begin` or `end` of an interval, and its length in Polars' syntax; None if not
    given."""

    stamp: Stamp | None = None
    interval: str | None = None


def parse_interval(text: str) -> str:
    """An interval in Polars' syntax. ValueError names the accepted forms."""
    match = re.fullmatch(rf"([1-9][0-9]{{0,5}})({'|'.join(_UNITS)})", text)
    if not match:
        raise ValueError("must be a whole number followed by s, min, h, d, w or mo, such as 15min, 1h, 1d or 1mo")
    return f"{match[1]}{_UNITS[match[2]]}"


def least_interval(rows: pl.DataFrame, zone: str) -> str | None:
    """The least distance between times `begin` of an `asset`, by the zone's clock; None if all are equal. Months are
    calendar intervals, so that no value counts before its month is over."""
    walls = walls_of(rows["begin"], zone).dt.epoch("s")
    keys = pl.DataFrame({"key": rows["asset"].to_physical().cast(pl.Int64) * 2**33 + walls}).unique().sort("key")["key"]
    same = keys // 2**33 == keys.shift(1) // 2**33
    least = keys.diff().filter(same & (keys.diff() > 0)).min()
    if not isinstance(least, int):
        return None
    # A day has 23 hours when clocks go forward.
    least += HOUR if (least + HOUR) % DAY == 0 else 0
    months = round(least / _MONTH)
    if months and abs(least - months * _MONTH) < 3 * DAY:
        return f"{months}mo"
    size, unit = next((size, unit) for unit, size in reversed(_SECONDS.items()) if least % size == 0)
    return f"{least // size}{unit}"


def least_bucket(starts: Collection[int]) -> str | None:
    """The least distance between buckets of a page, which are shorter where clocks go forward and must not overlap."""
    distances = [end - start for start, end in pairwise(sorted(starts))]
    return f"{min(distances)}s" if distances else None


def last_seconds(begins: pl.Series, interval: str, zone: str, now: int) -> pl.Series:
    """The last second of each interval. An interval that is not over ends at the second `now`."""
    ends = shift_times(begins, interval, zone).fill_null(now + 1).clip(upper_bound=now + 1) - 1
    return pl.select(pl.max_horizontal(ends.cast(pl.UInt32), begins)).to_series()


def shift_times(seconds: pl.Series, interval: str, zone: str) -> pl.Series:
    """Unix seconds shifted by an interval, backwards with a minus sign; days and months by the zone's clock."""
    fixed = re.fullmatch(r"(-?[0-9]+)([smh])", interval)
    if fixed:
        return seconds.cast(pl.Int64) + int(fixed[1]) * _SECONDS[fixed[2]]
    return first_seconds(walls_of(seconds, zone).dt.offset_by(interval), zone)


def candle_rows(rows: pl.DataFrame) -> pl.DataFrame:
    """Four rows for each candle from `begin` to `observed_at`: `open` at its first second, `high` after a third, `low`
    after two thirds, and the close, `value`, at its last second."""
    begin, last = pl.col("begin").cast(pl.Int64), pl.col("observed_at").cast(pl.Int64)
    span = last - begin + 1
    seconds = {"open": begin, "high": begin + span // 3, "low": begin + span * 2 // 3, "value": last}
    parts = [
        rows.with_columns(value=pl.col(name), observed_at=second.cast(pl.UInt32)) for name, second in seconds.items()
    ]
    return pl.concat(parts).drop(CANDLE)
