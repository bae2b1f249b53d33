"""Parses times: ISO 8601, unix times in a given unit, or a format as in strptime.

A date means its last second in its zone. A wall time that occurs twice or never in its zone is invalid.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Literal
from zoneinfo import ZoneInfo

import polars as pl

from analytics_service.history.calendar import to_second
from analytics_service.market.instants import DAY, NANOSECONDS, format_instant, unix_second
from analytics_service.market.kinds import TIME_LIMIT

Unit = Literal["s", "ms", "us", "ns"]
UNITS: Mapping[Unit, int] = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
# Numbers before 1973-03-03 may be dates such as 20260131, spreadsheet days, or times in another unit.
_LEAST_SECOND = 10**8
# Observations must not be in the future. A day allows for wrong clocks and zones.
_AHEAD = DAY
_NUMBER = r"^([0-9]{1,19})(?:\.([0-9]{1,9})[0-9]*)?$"
# The forms of ISO 8601, the most common first.
_ISO = (
    *("%Y-%m-%dT%H:%M:%S%.f%#z", "%Y-%m-%dT%H:%M:%S%.f"),
    *("%Y-%m-%d", "%Y-%m-%dT%H:%M%#z", "%Y-%m-%dT%H:%M"),
)
_HAS_CLOCK = re.compile(r"%[HIklTRXcrs+]")


class TimeStyle(StrEnum):
    """How a time is written."""

    NUMBER = "unix time"
    CLOCK = "time"
    DATE = "date"


@dataclass(frozen=True, slots=True)
class TimeRules:
    """How to read times: the zone of times without an offset, the unit of numbers, or a format."""

    zone: str = "UTC"
    unit: Unit | None = None
    format: str | None = None


def parse_format(text: str) -> str:
    """A format in Polars' syntax. ValueError if it does not name a day, or has the name of a zone, which Polars reads
    and ignores."""
    form = re.sub(r"(?<!%)\.%f", "%.f", text)
    try:
        is_read = pl.Series([datetime.now(UTC).strftime(text)]).str.to_datetime(form, strict=False).count() == 1
    except (pl.exceptions.PolarsError, ValueError):
        is_read = False
    if "%Z" in text:
        raise ValueError("must not have %Z, which names no zone for certain; write offsets, read by %z")
    if not is_read or not all(re.search(f"%[{words}DFxc+]", text) for words in ("Yy", "mbBhj", "dej")):
        raise ValueError("must be a format of strptime that names a day, such as %d.%m.%Y or '%m/%d/%Y %H:%M'")
    return form


def last_second(at: datetime) -> int:
    """The latest second of a valid observation, given the present instant `at`."""
    return min(unix_second(at) + _AHEAD, TIME_LIMIT - 1)


def parse_times(texts: pl.Series, rules: TimeRules) -> pl.DataFrame:
    """Columns `second` (Int64, unix), `begin` (like `second`, but a date's first second), `tick` (UInt32, nanoseconds
    after the second) and `style` (a TimeStyle). All are null for an invalid text."""
    texts = texts.str.strip_chars()
    if rules.format:
        return _parse_form(texts, rules.format, rules.zone)
    times, iso = _parse_numbers(texts, rules), texts.str.replace(" ", "T", literal=True)
    for form in () if rules.unit else _ISO:
        if times["second"].null_count() == texts.null_count():
            break
        others = _parse_form(iso, form, rules.zone)
        times = pl.select(pl.coalesce(times[name], others[name]).alias(name) for name in times.columns)
    return times


def _parse_numbers(texts: pl.Series, rules: TimeRules) -> pl.DataFrame:
    scale = UNITS[rules.unit or "s"]
    least = 0 if rules.unit == "s" else _LEAST_SECOND * scale
    parts = pl.DataFrame({"1": texts.cast(pl.Int64, strict=False)}).with_columns(pl.lit("").alias("2"))
    if parts["1"].null_count() > texts.null_count():
        parts = texts.to_frame("text").select(pl.col("text").str.extract_groups(_NUMBER).struct.unnest())
    number = pl.col("1").cast(pl.Int64, strict=False)
    digits = pl.col("2").fill_null("").str.pad_end(9, "0").cast(pl.Int64) // scale
    is_time = number >= least
    rows = parts.select(
        second=pl.when(is_time).then(number // scale),
        tick=pl.when(is_time).then(number % scale * (NANOSECONDS // scale) + digits).cast(pl.UInt32),
        style=pl.when(is_time).then(pl.lit(str(TimeStyle.NUMBER))),
    )
    return rows.select("second", pl.col("second").alias("begin"), "tick", "style")


def _parse_form(texts: pl.Series, form: str, zone: str) -> pl.DataFrame:
    walls = texts.str.to_datetime(form, strict=False, time_unit="us")
    if _HAS_CLOCK.search(form):
        if not walls.dtype.time_zone:  # type: ignore[attr-defined]
            own = "UTC" if form.endswith("Z") else zone
            walls = walls.dt.replace_time_zone(own, ambiguous="null", non_existent="null")
        begins = ends = walls.dt.epoch("s")
    else:
        begins, ends = first_seconds(walls, zone), first_seconds(walls.dt.offset_by("1d"), zone) - 1
    # A zone that moved across the date line lacks a day.
    is_time = ends >= begins
    style = TimeStyle.CLOCK if begins is ends else TimeStyle.DATE
    return pl.select(
        second=pl.when(is_time).then(ends),
        begin=pl.when(is_time).then(begins),
        tick=pl.when(is_time).then(walls.dt.nanosecond()).cast(pl.UInt32),
        style=pl.when(is_time).then(pl.lit(str(style))),
    )


def first_seconds(walls: pl.Series, zone: str) -> pl.Series:
    """The unix second at which a zone's clock first shows each wall time, such as midnight, or a later time."""
    if zone == "UTC":
        return walls.dt.epoch("s")
    days = walls.unique().drop_nulls()
    days = days.filter(days.dt.year().is_between(1900, 2200))
    firsts = pl.Series([to_second(ZoneInfo(zone), day) for day in days], dtype=pl.Int64)
    return walls.replace_strict(days, firsts, default=None, return_dtype=pl.Int64)


def walls_of(seconds: pl.Series, zone: str) -> pl.Series:
    """The wall times of a zone at unix seconds."""
    instants = pl.from_epoch(seconds.cast(pl.Int64)).dt.replace_time_zone("UTC")
    return instants.dt.convert_time_zone(zone).dt.replace_time_zone(None)


def time_fault(rules: TimeRules) -> str:
    """The fault of a text that is no time, and what to do."""
    form = rules.format or (f"unix {rules.unit} after 1973" if rules.unit else "ISO 8601, or unix seconds after 1973")
    return (
        f"is not a time in {form}, or occurs twice or never in {rules.zone}; write it like 2026-01-31T12:00:00Z, add "
        "--time-format or --time-unit, or see the recipes"
    )


def future_fault(rules: TimeRules, style: TimeStyle | None, at: datetime) -> str:
    """The fault of a time that is more than a day after `at`."""
    unit = "; for milliseconds, add --time-unit ms" if style is TimeStyle.NUMBER and not rules.unit else ""
    return f"is in the future, after {format_instant(at)}{unit}"
