"""Parses times: ISO 8601, unix times in a given unit, or a format as in strptime.

A date means its last second in its zone. A wall time that occurs twice or never in its zone is invalid.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from enum import StrEnum
from typing import Literal
from zoneinfo import ZoneInfo

import polars as pl

from analytics_service.history.calendar import to_second
from analytics_service.market.instants import DAY, HOUR, MINUTE, NANOSECONDS, format_instant, unix_second
from analytics_service.market.kinds import TIME_LIMIT

Unit = Literal["s", "ms", "us", "ns"]
UNITS: Mapping[Unit, int] = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
# Numbers before 1973-03-03 may be dates such as 20260131, spreadsheet days, or times in another unit.
_LEAST_SECOND = 10**8
# Observations must not be in the future. A day allows for wrong clocks and zones.
_AHEAD = DAY
_NUMBER = r"^([0-9]{1,19})(?:\.([0-9]{1,9})[0-9]*)?$"
_ISO = (
    r"^(?P<day>[0-9]{4}-[0-9]{2}-[0-9]{2})"
    r"(?:[T ](?P<clock>(?:[01][0-9]|2[0-3]):[0-5][0-9])(?P<second>:[0-5][0-9])?(?:[.,](?P<tick>[0-9]+))?"
    r"(?P<zone>Z|[+-](?:0[0-9]|1[0-4])(?::?[0-5][0-9])?)?)?$"
)
# The most common formats, which Polars parses quickly.
_FORMS = {
    "0000-00-00T00:00:00Z": "%Y-%m-%dT%H:%M:%SZ",
    "0000-00-00T00:00:00": "%Y-%m-%dT%H:%M:%S",
    "0000-00-00 00:00:00": "%Y-%m-%d %H:%M:%S",
    "0000-00-00": "%Y-%m-%d",
}
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
    """A format in Polars' syntax. ValueError if it does not name a day."""
    form = re.sub(r"(?<!%)\.%f", "%.f", text)
    try:
        is_read = pl.Series([datetime.now(UTC).strftime(text)]).str.to_datetime(form, strict=False).count() == 1
    except (pl.exceptions.PolarsError, ValueError):
        is_read = False
    if not is_read or not all(re.search(f"%[{words}DFxc+]", text) for words in ("Yy", "mbBhj", "dej")):
        raise ValueError("must be a format of strptime that names a day, such as %d.%m.%Y or '%m/%d/%Y %H:%M'")
    return form


def last_second(at: datetime) -> int:
    """The latest second of a valid observation, given the present instant `at`."""
    return min(unix_second(at) + _AHEAD, TIME_LIMIT - 1)


def parse_times(texts: pl.Series, rules: TimeRules) -> pl.DataFrame:
    """Columns `second` (Int64, unix), `begin` (like `second`, but a date's first second), `tick` (UInt32, nanoseconds
    after the second) and `style` (a TimeStyle). All are null for an invalid text."""
    if rules.format:
        return _parse_format(texts.str.strip_chars(), rules.format, rules.zone)
    if (times := _parse_quickly(texts, rules)) is not None:
        return times
    texts = texts.str.strip_chars()
    numbers = _parse_numbers(texts, rules)
    if numbers["second"].null_count() == texts.null_count() or rules.unit:
        return numbers
    iso = _parse_iso(texts, rules.zone)
    return pl.select(pl.coalesce(numbers[name], iso[name]).alias(name) for name in numbers.columns)


def _parse_quickly(texts: pl.Series, rules: TimeRules) -> pl.DataFrame | None:
    """Parse whole seconds, or times that all have the first one's format, several times faster. None for others."""
    seconds = texts.cast(pl.Int64, strict=False) if rules.unit in (None, "s") else pl.Series([None], dtype=pl.Int64)
    if not seconds.null_count() and (seconds >= (0 if rules.unit else _LEAST_SECOND)).all():
        return _from_seconds(seconds)
    form = _FORMS.get(re.sub("[0-9]", "0", texts[0] or "") if len(texts) else "")
    times = _parse_format(texts, form, rules.zone) if form and not rules.unit else None
    return times if times is not None and not times["second"].null_count() else None


def _from_seconds(seconds: pl.Series) -> pl.DataFrame:
    return seconds.to_frame("second").with_columns(
        begin="second", tick=pl.lit(0, pl.UInt32), style=pl.lit(str(TimeStyle.NUMBER))
    )


def _parse_numbers(texts: pl.Series, rules: TimeRules) -> pl.DataFrame:
    scale = UNITS[rules.unit or "s"]
    least = 0 if rules.unit == "s" else _LEAST_SECOND * scale
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


def _parse_iso(texts: pl.Series, zone: str) -> pl.DataFrame:
    parts = texts.to_frame("text").select(pl.col("text").str.extract_groups(_ISO).struct.unnest())
    clock = pl.col("clock").fill_null("00:00") + pl.col("second").fill_null(":00")
    digits = pl.col("zone").str.replace_all("[^0-9]", "").str.pad_end(4, "0")
    ahead = digits.str.head(2).cast(pl.Int64) * HOUR + digits.str.slice(2).cast(pl.Int64) * MINUTE
    rows = parts.select(
        wall=(pl.col("day") + " " + clock).str.to_datetime("%Y-%m-%d %H:%M:%S", strict=False, time_unit="us"),
        is_date=pl.col("clock").is_null(),
        ahead=pl.when(pl.col("zone").str.starts_with("-")).then(-ahead).otherwise(ahead),
        tick=pl.col("tick").fill_null("").str.pad_end(9, "0").str.head(9).cast(pl.Int64),
    )
    return _from_walls(rows, zone)


def _parse_format(texts: pl.Series, form: str, zone: str) -> pl.DataFrame:
    walls = texts.str.to_datetime(form, strict=False, time_unit="us")
    if is_zoned := isinstance(walls.dtype, pl.Datetime) and walls.dtype.time_zone is not None:
        walls = walls.dt.convert_time_zone("UTC").dt.replace_time_zone(None)
    rows = walls.to_frame("wall").select(
        "wall",
        is_date=pl.lit(value=not _HAS_CLOCK.search(form)),
        ahead=pl.lit(0 if is_zoned or form.endswith("Z") else None, pl.Int64),
        tick=pl.col("wall").dt.nanosecond().cast(pl.Int64),
    )
    return _from_walls(rows, zone)


def _from_walls(rows: pl.DataFrame, zone: str) -> pl.DataFrame:
    """Times from columns `wall`, `ahead` (of UTC, in seconds; null means in the zone), `tick` and `is_date`."""
    walls, is_date = rows["wall"], rows["is_date"]
    at = walls.dt.epoch("s") - rows["ahead"]
    if at.null_count() > walls.null_count():
        at = pl.select(pl.coalesce(at, _local_seconds(walls, is_date, zone))).to_series()
    end = first_seconds(walls.dt.offset_by("1d"), zone) - 1 if is_date.any() else at
    has_time = at.is_not_null()
    style = pl.when("is_date").then(pl.lit(str(TimeStyle.DATE))).otherwise(pl.lit(str(TimeStyle.CLOCK)))
    return rows.select(
        second=pl.when(has_time & is_date).then(end).otherwise(at),
        begin=at,
        tick=pl.when(has_time).then("tick").cast(pl.UInt32),
        style=pl.when(has_time).then(style),
    )


def _local_seconds(walls: pl.Series, is_date: pl.Series, zone: str) -> pl.Series:
    """The seconds of wall times in a zone, and the first seconds of dates; null if they occur twice or never."""
    seconds = walls.dt.replace_time_zone(zone, ambiguous="null", non_existent="null").dt.epoch("s")
    if zone == "UTC" or not is_date.any():
        return seconds
    days = walls.filter(is_date).unique().drop_nulls()
    known = days.filter(pl.Series([_has_day(day.date(), ZoneInfo(zone)) for day in days], dtype=pl.Boolean))
    first = first_seconds(pl.select(pl.when(walls.is_in(known.implode())).then(walls)).to_series(), zone)
    return pl.select(pl.when(is_date).then(first).otherwise(seconds)).to_series()


def _has_day(day: date, zone: ZoneInfo) -> bool:
    """Whether a zone has a day. A zone that moved across the date line lacks one."""
    second = to_second(zone, datetime.combine(day, time.min))
    return datetime.fromtimestamp(second, zone).date() == day


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


def time_fault(rules: TimeRules, at: datetime) -> str:
    """The fault of an invalid time, and what to do. Valid times are up to a day after `at`."""
    form = rules.format or (f"unix {rules.unit} after 1973" if rules.unit else "ISO 8601, or unix seconds after 1973")
    return (
        f"is not a time from 1970 to {format_instant(at)} in {form}, or occurs twice or never in {rules.zone}; write "
        "it like 2026-01-31T12:00:00Z, add --time-format or --time-unit, or see the recipes"
    )
