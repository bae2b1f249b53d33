"""Reads times: unix seconds to nanoseconds, ISO 8601, and dates, each of which stands for its first second.

A number's unit follows from its size: all from 1973-03-03 to 2106 differ. What could be read in two ways is not read.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time
from enum import StrEnum
from typing import Literal
from zoneinfo import ZoneInfo

import polars as pl

from analytics_service.history.calendar import to_second
from analytics_service.market.instants import DAY, unix_second
from analytics_service.market.kinds import TIME_LIMIT

Unit = Literal["s", "ms", "us", "ns"]
Order = Literal["dmy", "mdy", "ymd"]
ORDERS: Sequence[Order] = ("dmy", "mdy", "ymd")
UNITS: Mapping[Unit, int] = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
# The least number of each unit; for smaller numbers the unit must be named.
_FROM: Mapping[Unit, int] = {"s": 10**8, "ms": 10**11, "us": 10**14, "ns": 10**17}
# Observations must not be from the future. A day allows for wrong clocks and zones.
_AHEAD = DAY
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTH = (
    "jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?|"
    "nov(?:ember)?|dec(?:ember)?"
)
_ZONE = r"(Z|UTC|GMT|[+-](?:0[0-9]|1[0-4])(?::?[0-5][0-9])?)"
_HALF = r"(?:\s*([AP]M))?"
_CLOCK = rf"(?:[T ,]+([0-9]{{1,2}}):([0-5][0-9])(?::([0-5][0-9])(?:[.,][0-9]*)?)?{_HALF})?\s*{_ZONE}?$"
_WORDS = rf"(?i)^([0-9]{{1,2}}\s+)?({_MONTH})\.?\s+(?:([0-9]{{1,2}}),?\s+)?([0-9]{{4}})"
_PATTERNS = {
    "ymd": r"(?i)^([0-9]{4})[-/]([0-9]{1,2})[-/]([0-9]{1,2})" + _CLOCK,
    "other": r"(?i)^([0-9]{1,2})[-/.]([0-9]{1,2})[-/.]([0-9]{4})" + _CLOCK,
    "words": _WORDS + _CLOCK,
}


class TimeStyle(StrEnum):
    """How a time is written."""

    SECONDS = "unix seconds"
    MILLISECONDS = "unix milliseconds"
    MICROSECONDS = "unix microseconds"
    NANOSECONDS = "unix nanoseconds"
    SMALL = "small numbers"
    ZONED = "times with a zone"
    LOCAL = "times without a zone"
    DATE = "dates"
    ORDERLESS = "dates such as 01/02/2026"


NUMBERS: Mapping[Unit, TimeStyle] = dict(
    zip(UNITS, (TimeStyle.SECONDS, TimeStyle.MILLISECONDS, TimeStyle.MICROSECONDS, TimeStyle.NANOSECONDS), strict=True)
)


@dataclass(frozen=True, slots=True)
class TimeRules:
    """How times are to be read: the zone of those that name none, the unit of numbers, and the order of day and month
    in dates such as 01/02/2026; with `ymd` numbers of eight digits are dates. None of what was not said."""

    zone: str | None = None
    unit: Unit | None = None
    order: Order | None = None


def read_times(texts: pl.Series, rules: TimeRules) -> pl.DataFrame:
    """`second` (Int64, unix) and `kind` (of Kind) of each text; both null for a text that is no time. A second is null
    where the rules do not say how to read it, and `twice` where its zone has that wall time twice or never."""
    stripped = pl.col("text").str.strip_chars()
    if rules.order == "ymd":
        stripped = stripped.str.replace(r"^([0-9]{4})([0-9]{2})([0-9]{2})$", "$1-$2-$3")
    rows = texts.to_frame("text").select(text=stripped, number=stripped.cast(pl.Int64, strict=False))
    if rows["number"].null_count() or not (rows["number"] >= 0).all():
        number = pl.col("text").str.extract(r"^\+?([0-9]{1,19})(?:\.[0-9]*)?$").cast(pl.Int64, strict=False)
        rows = rows.with_columns(number=number)
    numbers = rows.select(*_of_numbers(rules.unit))
    if rows["number"].null_count() == 0:
        return numbers.with_columns(twice=pl.lit(value=False))
    walls = _walls(rows, rules)
    chosen = pl.when(rows["number"].is_not_null())
    return pl.select(
        second=chosen.then(numbers["second"]).otherwise(walls["second"]),
        kind=chosen.then(numbers["kind"]).otherwise(walls["kind"]),
        twice=chosen.then(pl.lit(value=False)).otherwise(walls["twice"]),
    )


def _of_numbers(unit: Unit | None) -> Iterator[pl.Expr]:
    """`second` and `kind` of numbers, in a unit or in that of their size."""
    number = pl.col("number")
    second, kind = pl.lit(None, pl.Int64), pl.lit(str(TimeStyle.SMALL))
    for name, least in {unit: 0}.items() if unit else _FROM.items():
        second = pl.when(number >= least).then(number // UNITS[name]).otherwise(second)
        kind = pl.when(number >= least).then(pl.lit(str(NUMBERS[name]))).otherwise(kind)
    yield second.alias("second")
    yield pl.when(number.is_not_null()).then(kind).alias("kind")


def _walls(rows: pl.DataFrame, rules: TimeRules) -> pl.DataFrame:
    """`second`, `kind` and `twice` of texts that are no numbers."""
    parts = rows.select(*_parts(rules.order or "dmy"))
    has_clock = parts["hour"].is_not_null()
    wall = pl.concat_str(
        pl.format("{}-{}-{}", "year", pl.col("month").str.zfill(2), pl.col("day").str.zfill(2)),
        pl.format(" {}:", _hour()),
        pl.format("{}:{}", pl.col("minute").fill_null("00"), pl.col("second").fill_null("00")),
    ).str.to_datetime("%Y-%m-%d %H:%M:%S", strict=False, time_unit="us")
    walls = parts.select(wall=wall, offset=_offset())
    valid, zoned = walls["wall"].is_not_null(), walls["offset"].is_not_null()
    unclear = parts["orderless"] if rules.order in (None, "ymd") else pl.lit(value=False)
    kinds = (unclear, TimeStyle.ORDERLESS), (~valid, None), (zoned, TimeStyle.ZONED), (has_clock, TimeStyle.LOCAL)
    kind: pl.Expr = pl.lit(str(TimeStyle.DATE))
    for applies, name in reversed(kinds):
        kind = pl.when(applies).then(pl.lit(name, pl.String)).otherwise(kind)
    local = _local_seconds(walls["wall"], has_clock, rules.zone)
    second = pl.when(zoned).then(walls["wall"].dt.epoch("s") - walls["offset"]).otherwise(local["second"])
    return pl.select(second=pl.when(~unclear).then(second), kind=kind, twice=local["twice"] & valid & ~zoned & ~unclear)


def _parts(order: Order) -> Iterator[pl.Expr]:
    """Year, month, day, hour, minute, second, half of the day and zone as text, and whether the order of day
    and month is not clear."""
    groups = {name: pl.col("text").str.extract_groups(pattern).struct for name, pattern in _PATTERNS.items()}
    ymd, other, words = groups["ymd"], groups["other"], groups["words"]
    first, second = ("1", "2") if order == "mdy" else ("2", "1")
    named = words.field("2").str.to_lowercase().str.head(3)
    month = named.replace_strict(list(_MONTHS), [f"{n:02}" for n in range(1, 13)], default=None)
    before, after = words.field("1").str.strip_chars(), words.field("3")
    day = pl.when(before.is_null() | after.is_null()).then(pl.coalesce(before, after))
    yield pl.coalesce(ymd.field("1"), other.field("3"), words.field("4")).alias("year")
    yield pl.coalesce(ymd.field("2"), other.field(first), month).alias("month")
    yield pl.coalesce(ymd.field("3"), other.field(second), day).alias("day")
    for index, name in enumerate(("hour", "minute", "second", "half", "zone"), start=4):
        yield pl.coalesce(*(groups[key].field(str(index + (key == "words"))) for key in groups)).alias(name)
    yield other.field("1").is_not_null().alias("orderless")


def _hour() -> pl.Expr:
    """The hour with two digits, midnight without one; null for one that a clock of 12 hours lacks."""
    hour, half = pl.col("hour").cast(pl.Int64, strict=False), pl.col("half").str.to_uppercase()
    of_half = pl.when(hour.is_between(1, 12)).then(hour % 12 + pl.when(half == "PM").then(12).otherwise(0))
    whole = pl.when(half.is_null()).then(hour.fill_null(0)).otherwise(of_half)
    return whole.cast(pl.String).str.zfill(2)


def order_that_fits(texts: pl.Series) -> Order | None:
    """The only order that all dates such as 13/02/2026 allow; None if both or neither do."""
    groups = pl.col("text").str.strip_chars().str.extract_groups(_PATTERNS["other"]).struct
    first, second = (groups.field(number).cast(pl.Int64, strict=False).max() > 12 for number in ("1", "2"))
    is_dmy, is_mdy = texts.alias("text").to_frame().select(first.alias("dmy"), second.alias("mdy")).row(0)
    return None if bool(is_dmy) == bool(is_mdy) else "dmy" if is_dmy else "mdy"


def _offset() -> pl.Expr:
    """Seconds that a zone written with a time is ahead of UTC; null without a zone."""
    zone = pl.col("zone").str.to_uppercase()
    sign = pl.when(zone.str.starts_with("-")).then(-1).otherwise(1)
    digits = zone.str.replace_all(r"[^0-9]", "").str.pad_end(4, "0")
    seconds = digits.str.head(2).cast(pl.Int64, strict=False) * 3600
    seconds += digits.str.slice(2, 2).cast(pl.Int64, strict=False) * 60
    return pl.when(zone.is_in(["Z", "UTC", "GMT"])).then(0).when(zone.is_not_null()).then(sign * seconds)


def _local_seconds(walls: pl.Series, has_clock: pl.Series, zone: str | None) -> pl.DataFrame:
    """`second` of wall times in a zone, and `twice` for those that it has twice or never. A date is its first second;
    a zone that has changed sides of the date line lacks a date."""
    nothing = {"second": pl.lit(None, pl.Int64), "twice": pl.lit(value=False)}
    if zone is None:
        return pl.select(second=pl.Series([None] * len(walls), dtype=pl.Int64), twice=pl.repeat(False, len(walls)))
    if zone == "UTC":
        return walls.to_frame("wall").select(second=pl.col("wall").dt.epoch("s"), twice=nothing["twice"])
    instants = walls.dt.replace_time_zone(zone, ambiguous="null", non_existent="null").dt.epoch("s")
    unclear = instants.is_null() & walls.is_not_null()
    days = walls.filter(unclear & ~has_clock).unique().to_list()
    firsts = [_first_second(day.date(), ZoneInfo(zone)) for day in days]
    first = walls.replace_strict(pl.Series(days, dtype=walls.dtype), firsts, default=None, return_dtype=pl.Int64)
    second = pl.select(pl.coalesce(instants, pl.when(~has_clock).then(first))).to_series()
    return pl.select(second=second, twice=unclear & second.is_null())


def _first_second(day: date, zone: ZoneInfo) -> int | None:
    """The first second of a day; null if the zone does not have that day."""
    second = to_second(zone, datetime.combine(day, time.min))
    return second if datetime.fromtimestamp(second, zone).date() == day else None


def last_second(at: datetime) -> int:
    """The last second that an observation may have at the present instant `at`."""
    return min(unix_second(at) + _AHEAD, TIME_LIMIT - 1)


def mixed(kinds: Sequence[TimeStyle]) -> bool:
    """Whether kinds of times may not stand in one file: numbers of several units, or numbers beside text."""
    return len({kind if kind in NUMBERS.values() or kind is TimeStyle.SMALL else "" for kind in kinds}) > 1
