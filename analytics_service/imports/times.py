"""Reads times: unix seconds to nanoseconds, ISO 8601, RFC 2822, dates and months, each of which stands for its last
second.

A number's unit follows from its size: all from 1973-03-03 to 2106 differ. What could be read in two ways is not read.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, datetime, time
from enum import StrEnum
from typing import Literal
from zoneinfo import ZoneInfo

import polars as pl

from analytics_service.config.values import zone as named_zone
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
# Hours that zones named by letters are ahead of UTC. CST is that of Chicago or of China, and BST and IST are several:
# they are not read.
_HOURS = dict.fromkeys(("Z", "UTC", "UT", "GMT", "WET"), 0) | {
    **dict.fromkeys(("WEST", "CET"), 1),
    **dict.fromkeys(("CEST", "EET"), 2),
    **dict.fromkeys(("EEST", "MSK"), 3),
    **dict.fromkeys(("EST", "CDT"), -5),
    **dict.fromkeys(("MST", "PDT"), -7),
    **dict.fromkeys(("JST", "KST"), 9),
    "EDT": -4,
    "MDT": -6,
    "PST": -8,
    "HKT": 8,
}
_OFFSET = r"[+-](?:0[0-9]|1[0-4])(?::?[0-5][0-9])?"
_ZONE = rf"(?<zone>{'|'.join(sorted(_HOURS, key=len, reverse=True))}|(?:UTC|GMT)?{_OFFSET})"
_CLOCK = (
    r"(?:[T ,]+(?<hour>[0-9]{1,2}):(?<minute>[0-5][0-9])(?::(?<second>[0-5][0-9])(?:[.,][0-9]*)?)?"
    rf"(?:\s*(?<half>[AP]M))?)?\s*{_ZONE}?$"
)
_GAP = r"(?:[-/]|\s+)"
_LAST = "(?<last>[0-9]{4}|[0-9]{2})"
_PATTERNS = (
    rf"(?i)^(?<year>[0-9]{{4}})(?:[-/.](?<month>[0-9]{{1,2}})[-/.]|-(?<name>{_MONTH})-)(?<day>[0-9]{{1,2}}){_CLOCK}",
    rf"(?i)^(?<first>[0-9]{{1,2}})[-/.](?<middle>[0-9]{{1,2}})[-/.]{_LAST}{_CLOCK}",
    rf"(?i)^(?:(?<first>[0-9]{{1,2}}){_GAP})?(?<name>{_MONTH})\.?{_GAP}(?:(?<day>[0-9]{{1,2}}),?{_GAP})?{_LAST}{_CLOCK}",
    r"^(?<year>[0-9]{4})[-/]?(?:[-/]|M)(?<month>[0-9]{1,2})$",
    r"^(?<month>[0-9]{1,2})[-/](?<year>[0-9]{4})$",
)
_DATE_PARTS = ("year", "month", "day", "name", "first", "middle", "last")
_CLOCK_PARTS = ("hour", "minute", "second", "half", "zone")
# Other spellings of what the patterns read: without marks, with a weekday, as C, JavaScript and Go write times.
_SPELLINGS = (
    (r"^([0-9]{4})([0-9]{2})([0-9]{2})[T ]([0-9]{2}):?([0-9]{2})(?::?([0-9]{2}))", "$1-$2-$3 $4:$5:$6"),
    (r"^([0-9]{4})([0-9]{2})([0-9]{2})[T ]([0-9]{2}):?([0-9]{2})$", "$1-$2-$3 $4:$5"),
    (r"(?i)^(?:mon|tue|tues|wed|wednes|thu|thurs|fri|sat|satur|sun)(?:day)?,?\s+", ""),
    (r"(?i)^([a-z]{3}\s+[0-9]{1,2})\s+([0-9:]{8})\s+(?:([a-z]+)\s+)?([0-9]{4})$", "$1 $4 $2 $3"),
    (rf"({_OFFSET})\s*(?:\([^()]*\)|\s[A-Z]+)$", "$1"),
)
# The name of a zone after a time, as Java and Trino write it. An offset before it says more.
_REGION = r"\s*\[([A-Za-z0-9_+/-]+)\]$|\s+([A-Z][A-Za-z_]+(?:/[A-Za-z0-9_+-]+)+)$"

_MIDNIGHT = r"(?i)[T ](?:0?0:00(?::00)?(?:[.,]0+)?(?:[^:.,0-9]|$)|12:00(?::00)?\s*AM)"
# Digits that a time in scientific notation must have, or else it was rounded: spreadsheets write 1.70407E+12.
_SCIENTIFIC, _ROUNDED_BELOW = r"^([0-9](?:\.[0-9]+)?)[eE]\+?[0-9]{1,2}$", 8


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
    MONTH = "months"
    ROUNDED = "rounded numbers"
    ORDERLESS = "dates such as 01/02/2026"


NUMBERS: Mapping[Unit, TimeStyle] = dict(
    zip(UNITS, (TimeStyle.SECONDS, TimeStyle.MILLISECONDS, TimeStyle.MICROSECONDS, TimeStyle.NANOSECONDS), strict=True)
)
# Times without a clock, which hold at their end.
CALENDAR = (TimeStyle.DATE, TimeStyle.MONTH)


@dataclass(frozen=True, slots=True)
class TimeRules:
    """How times are to be read: the zone of those that name none, the unit of numbers, and the order of day and month
    in dates such as 01/02/2026; with `ymd` numbers of eight digits are dates. None of what was not said."""

    zone: str | None = None
    unit: Unit | None = None
    order: Order | None = None


def read_times(texts: pl.Series, rules: TimeRules, assets: pl.Series | None = None) -> pl.DataFrame:
    """`second` (Int64, unix) and `kind` (of TimeStyle) of each text; both null for a text that is no time. A second is
    null where the rules do not say how to read it, and `twice` where its zone has that wall time twice or never, and
    the order of the texts, or of those of each of `assets`, does not tell which is meant. `begin` is the second, but of
    a date or month the first."""
    stripped = pl.col("text").str.strip_chars()
    if rules.order == "ymd":
        stripped = stripped.str.replace(r"^([0-9]{4})([0-9]{2})([0-9]{2})$", "$1-$2-$3")
        stripped = stripped.str.replace(r"^([0-9]{8})([0-9]{6})$", "$1 $2")
    rows = texts.to_frame("text").select(text=stripped, number=stripped.cast(pl.Int64, strict=False))
    if rows["number"].null_count() or not (rows["number"] >= 0).all():
        number = pl.col("text").str.extract(r"^\+?([0-9]{1,19})(?:\.[0-9]*)?$").cast(pl.Int64, strict=False)
        rows = rows.with_columns(number=pl.coalesce(number, _scientific()))
    numbers = rows.select(*_of_numbers(rules.unit))
    if rows["number"].null_count() == 0:
        return numbers.with_columns(twice=pl.lit(value=False), begin="second")
    walls = _walls(rows["text"], rules, pl.repeat(0, len(texts), eager=True) if assets is None else assets)
    chosen = pl.when(rows["number"].is_not_null())
    return pl.select(
        second=chosen.then(numbers["second"]).otherwise(walls["second"]),
        kind=chosen.then(numbers["kind"]).otherwise(walls["kind"]),
        twice=chosen.then(pl.lit(value=False)).otherwise(walls["twice"]),
        begin=chosen.then(numbers["second"]).otherwise(walls["begin"]),
    )


def _scientific() -> pl.Expr:
    text = pl.col("text")
    return pl.when(text.str.contains(_SCIENTIFIC)).then(
        text.cast(pl.Float64, strict=False).cast(pl.Int64, strict=False)
    )


def _of_numbers(unit: Unit | None) -> Iterator[pl.Expr]:
    """`second` and `kind` of numbers, in a unit or in that of their size."""
    number = pl.col("number")
    second, kind = pl.lit(None, pl.Int64), pl.lit(str(TimeStyle.SMALL))
    for name, least in {unit: 0}.items() if unit else _FROM.items():
        second = pl.when(number >= least).then(number // UNITS[name]).otherwise(second)
        kind = pl.when(number >= least).then(pl.lit(str(NUMBERS[name]))).otherwise(kind)
    digits = pl.col("text").str.extract(_SCIENTIFIC).str.replace(".", "", literal=True).str.len_chars()
    kind = (
        pl.when(digits.max() < _ROUNDED_BELOW, digits.is_not_null())
        .then(pl.lit(str(TimeStyle.ROUNDED)))
        .otherwise(kind)
    )
    yield second.alias("second")
    yield pl.when(number.is_not_null()).then(kind).alias("kind")


def _walls(texts: pl.Series, rules: TimeRules, assets: pl.Series) -> pl.DataFrame:
    """`second`, `kind`, `twice` and `begin` of texts that are no numbers."""
    text = pl.col("text")
    region = text.str.extract_groups(_REGION).struct
    rows = texts.to_frame("text").select(
        text=text.str.replace(_REGION, ""), region=pl.coalesce(region.field("1"), region.field("2"))
    )
    if not rows["text"].str.contains(_PATTERNS[0]).all():
        for pattern, spelling in _SPELLINGS:
            rows = rows.with_columns(text.str.replace(pattern, spelling).str.strip_chars_end())
    parts = _matched(rows["text"]).select(*_date(rules.order), *map(_part, _CLOCK_PARTS))
    has_clock, is_month = parts["hour"].is_not_null(), parts["day"].is_null()
    wall = pl.concat_str(
        pl.format("{}-{}-{}", "year", pl.col("month").str.zfill(2), pl.col("day").fill_null("1").str.zfill(2)),
        pl.format(" {}:", _hour()),
        pl.format("{}:{}", pl.col("minute").fill_null("00"), pl.col("second").fill_null("00")),
    ).str.to_datetime("%Y-%m-%d %H:%M:%S", strict=False, time_unit="us")
    days = pl.when(is_month).then(wall.dt.month_end()).when(~has_clock).then(wall)
    walls = parts.select(wall=wall, end=days.dt.offset_by("1d"), offset=_offset())
    valid, zoned = walls["wall"].is_not_null(), walls["offset"].is_not_null()
    unclear = parts["orderless"]
    kinds = (unclear, TimeStyle.ORDERLESS), (~valid, None), (zoned | rows["region"].is_not_null(), TimeStyle.ZONED)
    kind: pl.Expr = pl.when(is_month).then(pl.lit(str(TimeStyle.MONTH))).otherwise(pl.lit(str(TimeStyle.DATE)))
    for applies, name in reversed((*kinds, (has_clock, TimeStyle.LOCAL))):
        kind = pl.when(applies).then(pl.lit(name, pl.String)).otherwise(kind)
    local = _local_seconds(walls, has_clock, assets, rules.zone)
    for zone in rows["region"].filter(~zoned).drop_nulls().unique():
        if not _is_zone(zone):
            kind = pl.when(rows["region"] == zone).then(None).otherwise(kind)
            continue
        of_zone = _local_seconds(walls, has_clock, assets, zone)
        local = pl.select(
            pl.when(rows["region"] == zone).then(of_zone[name]).otherwise(local[name]).alias(name)
            for name in local.columns
        )
    at, end = (
        pl.when(zoned).then(walls[wall].dt.epoch("s") - walls["offset"]).otherwise(local[wall])
        for wall in local.columns[:2]
    )
    second = pl.when(end.is_null() | at.is_null()).then(at).otherwise(end - 1)
    is_read = pl.col("kind").is_not_null() & (pl.col("kind") != TimeStyle.ORDERLESS)
    return pl.select(second=second, kind=kind, twice=local["twice"] & valid & ~zoned, begin=at).with_columns(
        pl.when(is_read).then(pl.col("second", "begin")), twice=is_read & pl.col("twice")
    )


def _matched(texts: pl.Series) -> pl.DataFrame:
    """The groups of each pattern in texts."""
    text = pl.col("text").str
    return texts.to_frame("text").select(
        text.extract_groups(pattern).alias(str(number)) for number, pattern in enumerate(_PATTERNS)
    )


def _part(name: str) -> pl.Expr:
    """A part of a matched time, from whichever pattern fits that has it."""
    having = [str(number) for number, pattern in enumerate(_PATTERNS) if f"<{name}>" in pattern]
    return pl.coalesce(pl.col(number).struct.field(name) for number in having).alias(name)


def _date(order: Order | None) -> Iterator[pl.Expr]:
    """Year, month and day as text, none of months, and whether their order is not clear."""
    year, month, day, name, first, middle, last = map(_part, _DATE_PARTS)
    is_short, is_numeric = last.str.len_chars() == 2, middle.is_not_null()
    named = (
        name.str.to_lowercase()
        .str.head(3)
        .replace_strict(list(_MONTHS), [f"{n:02}" for n in range(1, 13)], default=None)
    )
    year_first = is_short & (order == "ymd") & first.is_not_null()
    years = pl.when(year_first).then(first.str.zfill(2)).otherwise(last)
    century = (
        pl.when(years.str.len_chars() == 4)
        .then(pl.lit(""))
        .when(years >= "70")
        .then(pl.lit("19"))
        .otherwise(pl.lit("20"))
    )
    month_first = is_numeric & (order == "mdy")
    yield pl.coalesce(year, century + years).alias("year")
    yield pl.coalesce(month, named, pl.when(month_first).then(first).otherwise(middle)).alias("month")
    given = pl.when(month_first).then(middle).when(year_first).then(last).otherwise(first)
    # 1 Jan 2, 2024 is no date.
    is_odd = first.is_not_null() & day.is_not_null()
    yield pl.when(is_odd).then(pl.lit("-")).otherwise(pl.coalesce(day, given)).alias("day")
    is_open = (is_short & (order is None)) | (is_numeric & ~is_short & (order in (None, "ymd")))
    yield (is_open & ~is_odd).fill_null(value=False).alias("orderless")


def _hour() -> pl.Expr:
    """The hour with two digits, midnight without one; null for one that a clock of 12 hours lacks."""
    hour, half = pl.col("hour").cast(pl.Int64, strict=False), pl.col("half").str.to_uppercase()
    of_half = pl.when(hour.is_between(1, 12)).then(hour % 12 + pl.when(half == "PM").then(12).otherwise(0))
    whole = pl.when(half.is_null()).then(hour.fill_null(0)).otherwise(of_half)
    return whole.cast(pl.String).str.zfill(2)


def orders_that_fit(texts: pl.Series) -> list[Order]:
    """The orders that all dates such as 13/02/2026 or 02-Jan-24 allow."""
    numbers = (_part(name).cast(pl.Int64, strict=False).max() for name in ("first", "middle", "last"))
    first, middle, last = _matched(texts.str.strip_chars()).select(numbers).row(0)
    fits: dict[Order, bool] = {
        "dmy": (first or 0) <= 31 and (middle or 0) <= 12,
        "mdy": (first or 0) <= 12 and middle is not None and middle <= 31,
        "ymd": (middle or 0) <= 12 and (last or 0) <= 31,
    }
    return [order for order in ORDERS if fits[order]]


def _offset() -> pl.Expr:
    """Seconds that a zone written with a time is ahead of UTC; null without a zone."""
    zone = pl.col("zone").str.to_uppercase()
    sign = pl.when(zone.str.contains("-", literal=True)).then(-1).otherwise(1)
    digits = zone.str.replace_all(r"[^0-9]", "").str.pad_end(4, "0")
    seconds = digits.str.head(2).cast(pl.Int64, strict=False) * 3600
    seconds += digits.str.slice(2, 2).cast(pl.Int64, strict=False) * 60
    hours = zone.replace_strict(_HOURS, default=None, return_dtype=pl.Int64)
    return pl.coalesce(hours * 3600, pl.when(zone.is_not_null()).then(sign * seconds))


def _local_seconds(rows: pl.DataFrame, has_clock: pl.Series, assets: pl.Series, zone: str | None) -> pl.DataFrame:
    """The seconds of the wall times `wall` and `end` in a zone, and `twice` for those that it has never, or twice and
    in no order that tells which is meant. A date is its first second; a zone that has changed sides of the date line
    lacks a date."""
    walls = rows["wall"]
    no = pl.lit(value=False)
    if zone is None:
        return rows.select(pl.lit(None, pl.Int64).alias("wall"), pl.lit(None, pl.Int64).alias("end"), no.alias("twice"))
    if _is_fixed(zone):
        return rows.select(wall=first_seconds(walls, zone), end=first_seconds(rows["end"], zone), twice=no)
    early, late = (
        walls.dt.replace_time_zone(zone, ambiguous=which, non_existent="null").dt.epoch("s")
        for which in ("earliest", "latest")
    )
    doubled = has_clock & (early != late).fill_null(value=False)
    is_later = _is_later(walls, doubled, assets) if doubled.any() else doubled
    instants = pl.select(pl.when(~doubled | ~is_later).then(early).when(is_later).then(late)).to_series()
    unclear = instants.is_null() & walls.is_not_null()
    days = walls.filter((unclear | (early != late)) & ~has_clock).unique().to_list()
    firsts = [_first_second(day.date(), ZoneInfo(zone)) for day in days]
    first = walls.replace_strict(pl.Series(days, dtype=walls.dtype), firsts, default=None, return_dtype=pl.Int64)
    second = pl.select(pl.coalesce(pl.when(~has_clock).then(first), instants)).to_series()
    return pl.select(wall=second, end=first_seconds(rows["end"], zone), twice=unclear & second.is_null())


def _is_later(walls: pl.Series, doubled: pl.Series, assets: pl.Series) -> pl.Series:
    """Whether each doubled wall time is the later of two, by the order of rows: those of an asset rise, or fall, but
    where the clocks were set back. Null where the order does not tell, because that place is not among the rows."""
    wall, doubles, asset = pl.col("wall"), pl.col("doubled"), ["asset"]
    rows = pl.DataFrame({"wall": walls, "doubled": doubled, "asset": assets}).with_row_index("row").drop_nulls("wall")
    rises = (wall.first() <= wall.last()).over(asset)
    step = wall.diff().over(asset).dt.total_seconds() * pl.when(rises).then(1).otherwise(-1)
    rows = rows.with_columns(rises=rises, step=step, inside=doubles & doubles.shift(1).over(asset))
    change = [*asset, wall.dt.date()]
    back, same = (pl.col("inside") & compared for compared in (pl.col("step") < 0, pl.col("step") == 0))
    is_sorted = (pl.col("inside") | (pl.col("step") >= 0)).all().over(asset)
    turns = pl.when(back.any().over(change)).then(back).otherwise(same)
    rows = rows.with_columns(turns=turns.fill_null(value=False), is_sorted=is_sorted)
    is_clear = doubles & pl.col("is_sorted") & (pl.col("turns").sum().over(change) == 1)
    after = pl.col("turns").cum_sum().over(change) > 0
    found = rows.select("row", later=pl.when(is_clear).then(after == pl.col("rises")))
    return pl.DataFrame({"row": range(len(walls))}, {"row": pl.UInt32}).join(
        found, on="row", how="left", maintain_order="left"
    )["later"]


def first_seconds(walls: pl.Series, zone: str) -> pl.Series:
    """The unix second at which the clock of a zone first shows each wall time, such as midnight, or a later one."""
    if _is_fixed(zone):
        return walls.dt.epoch("s") - _ahead(zone)
    days = walls.unique().drop_nulls()
    days = days.filter(days.dt.year().is_between(1900, 2200))
    firsts = pl.Series([to_second(ZoneInfo(zone), day) for day in days], dtype=pl.Int64)
    return walls.replace_strict(days, firsts, default=None, return_dtype=pl.Int64)


def walls_of(seconds: pl.Series, zone: str) -> pl.Series:
    """What the clock of a zone shows at unix seconds."""
    if _is_fixed(zone):
        return pl.from_epoch(seconds.cast(pl.Int64) + _ahead(zone))
    instants = pl.from_epoch(seconds.cast(pl.Int64)).dt.replace_time_zone("UTC")
    return instants.dt.convert_time_zone(zone).dt.replace_time_zone(None)


def _is_fixed(zone: str) -> bool:
    """Whether a zone is always as far from UTC."""
    return zone == "UTC" or zone[0] in "+-"


def _ahead(zone: str) -> int:
    """The seconds that UTC, or a zone such as +02:00, is ahead of UTC."""
    return int(pl.select(zone=pl.lit(zone)).select(_offset()).item())


def fractions(texts: pl.Series, times: pl.DataFrame) -> pl.Series:
    """The nanoseconds after the whole second of each time."""
    text = pl.col("text").str.strip_chars()
    digits = text.str.extract(r"^(?:[0-9]+|.*:[0-5][0-9])[.,]([0-9]+)").str.pad_end(9, "0").str.head(9)
    number, kind = text.cast(pl.Int64, strict=False).fill_null(0), pl.col("kind")
    nanos: pl.Expr = digits.cast(pl.Int64).fill_null(0)
    for unit, name in NUMBERS.items():
        if unit != "s":
            nanos = pl.when(kind == str(name)).then(number % UNITS[unit] * (10**9 // UNITS[unit])).otherwise(nanos)
    return times.select("kind", text=texts).select(nanos.cast(pl.UInt32)).to_series()


def at_midnight(texts: pl.Series, times: pl.DataFrame) -> bool:
    """Whether all times are clocks that show midnight; numbers, in UTC."""
    is_number = pl.col("kind").is_in([str(kind) for kind in NUMBERS.values()])
    shown = pl.when(is_number).then(pl.col("second") % DAY == 0).otherwise(pl.col("text").str.contains(_MIDNIGHT))
    return bool(times.select("kind", "second", text=texts).select(shown.all()).item())


def _first_second(day: date, zone: ZoneInfo) -> int | None:
    """The first second of a day; null if the zone does not have that day."""
    second = to_second(zone, datetime.combine(day, time.min))
    return second if datetime.fromtimestamp(second, zone).date() == day else None


def parse_zone(text: str) -> str:
    """The name of a zone of the IANA database, or an offset such as +02:00."""
    return text if re.fullmatch(_OFFSET, text) else named_zone(text)


def _is_zone(name: str) -> bool:
    with suppress(ValueError):
        return named_zone(name) == name
    return False


def last_second(at: datetime) -> int:
    """The last second that an observation may have at the present instant `at`."""
    return min(unix_second(at) + _AHEAD, TIME_LIMIT - 1)


def mixed(kinds: Sequence[TimeStyle]) -> bool:
    """Whether kinds of times may not stand in one file: numbers of several units, numbers beside text, or dates, which
    hold at their end, beside times."""
    apart = {*NUMBERS.values(), TimeStyle.SMALL, *CALENDAR}
    return len({kind if kind in apart else "" for kind in kinds}) > 1
