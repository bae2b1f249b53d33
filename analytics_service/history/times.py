"""Times as callers write them: unix seconds, dates, wall times, times before now (rule 2.16, time formats)."""

import re
from abc import ABC, abstractmethod
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, timezone
from enum import StrEnum
from typing import ClassVar
from zoneinfo import ZoneInfo

from analytics_service.config.parsers import INTEGER, MAX_DIGITS
from analytics_service.errors import ParameterInvalid
from analytics_service.history.calendar import midnights, second_before, to_second
from analytics_service.history.grid import EXACT, MAX_SECOND, UNITS, Period
from analytics_service.market.instants import MILLISECONDS, unix_second

_DATE = r"([0-9]{4})-([0-9]{2})-([0-9]{2})"
# JavaScript's toISOString() always writes milliseconds.
_NO_FRACTION = r"(?:\.0{1,9})?"
_TIME = rf"([0-9]{{2}}):([0-9]{{2}})(?::([0-9]{{2}}){_NO_FRACTION})?"
# In a query, an unencoded plus sign arrives as a space.
_OFFSET = r"(Z|[+ -][0-9]{2}:?[0-9]{2})?"
_DAY = re.compile(_DATE)
_WALL = re.compile(f"{_DATE}T{_TIME}{_OFFSET}")
_AGO = re.compile(r"now(?:-([0-9]{1,9})(min|h|d|w|m|y))?")
_FRACTION = re.compile(rf"(?:-?[0-9]*|{_DATE}T{_TIME})[.,][0-9]*{_OFFSET}")
_SECONDS = re.compile(f"({INTEGER}){_NO_FRACTION}")
_LIMITS = f"must be from 0 to {MAX_SECOND}"
FORMS = (
    "unix seconds, a date such as 2026-01-31, a time such as 2026-01-31T12:00 or 2026-01-31T12:00:00Z, now, or "
    "a time before now such as now-7d (units min, h, d, w, m, y)"
)
# JSON Schema of these forms.
SCHEMA: dict[str, object] = {
    "anyOf": [
        {"type": "integer", "format": "int64", "minimum": 0, "maximum": MAX_SECOND},
        {
            "type": "string",
            "pattern": "^([0-9]{4}-[0-9]{2}-[0-9]{2}(T[0-9]{2}:[0-9]{2}(:[0-9]{2}(\\.0{1,9})?)?"
            "(Z|[+ -][0-9]{2}:?[0-9]{2})?)?|now(-[0-9]{1,9}(min|h|d|w|m|y))?)$",
        },
    ]
}


class Edge(StrEnum):
    """The parameter, or option of a command, that has a time.

    A date means its first second as `start`, else its last second. A wall time that occurs twice means the later second
    as `end`, else the earlier second.
    """

    START = "start"
    END = "end"
    AT = "at"


class TimeForm(ABC):
    """A time in one of the forms that callers write."""

    is_relative: ClassVar[bool] = False
    """Whether the time depends on now."""

    def second(self, zone: ZoneInfo, now: int, edge: Edge) -> int:
        """The unix second that it means, given `now` in unix seconds. Raises ParameterInvalid beyond the limits (rule
        2.11, limits)."""
        try:
            second = self._second(zone, now, edge)
        except OverflowError:
            second = -1
        if not 0 <= second <= MAX_SECOND:
            raise ParameterInvalid(edge, f"{_LIMITS} in unix seconds, 1970-01-01 to 2106-02-07 in UTC")
        return second

    @abstractmethod
    def _second(self, zone: ZoneInfo, now: int, edge: Edge) -> int:
        """As `second`, but without limits. Raises OverflowError before the year 1."""


@dataclass(frozen=True, slots=True)
class Unix(TimeForm):
    value: int

    def _second(self, zone: ZoneInfo, now: int, edge: Edge) -> int:
        return self.value


@dataclass(frozen=True, slots=True)
class Day(TimeForm):
    """A date. It lasts from its midnight to the next midnight, like a bucket of a day (rule 2.3, local midnights)."""

    day: date

    def _second(self, zone: ZoneInfo, now: int, edge: Edge) -> int:
        _require_near(self.day)
        begin, end = midnights(zone, [self.day.toordinal(), self.day.toordinal() + 1])
        return begin if edge is Edge.START else end - 1


@dataclass(frozen=True, slots=True)
class Wall(TimeForm):
    """A date and time of day, in the zone unless it is aware. A skipped time means the first instant after the gap."""

    at: datetime

    def _second(self, zone: ZoneInfo, now: int, edge: Edge) -> int:
        if self.at.tzinfo is not None:
            return unix_second(self.at)
        _require_near(self.at)
        return to_second(zone, self.at.replace(fold=_fold(edge)))


@dataclass(frozen=True, slots=True)
class Ago(TimeForm):
    """A number of units before now.

    Minutes and hours have fixed lengths. Other units follow the zone's calendar and keep the time of day. In a month
    that is too short for the day, it means the last day.
    """

    is_relative: ClassVar[bool] = True
    count: int
    unit: Period

    def _second(self, zone: ZoneInfo, now: int, edge: Edge) -> int:
        # The wall time of now may occur twice.
        if not self.count:
            return now
        size = self.count * UNITS[self.unit]
        if self.unit in EXACT:
            return now - size
        days, months = (size, 0) if self.unit in (Period.DAY, Period.WEEK) else (0, size)
        return second_before(zone, now, days=days, months=months, fold=_fold(edge))


def parse_time(value: str) -> TimeForm:
    """Parses a time. Raises a ValueError that says what is allowed."""
    if match := _SECONDS.fullmatch(value):
        return _unix(match[1])
    if match := _DAY.fullmatch(value):
        return Day(_datetime(*match.groups()).date())
    if match := _WALL.fullmatch(value):
        *numbers, offset = match.groups()
        return Wall(_datetime(*numbers).replace(tzinfo=_offset(offset)))
    if match := _AGO.fullmatch(value):
        return Ago(int(match[1] or 0), Period(match[2] or "min"))
    if _FRACTION.fullmatch(value):
        raise ValueError("must be a whole second, without a fraction")
    raise ValueError(f"must be {FORMS}")


def _require_near(day: date) -> None:
    """Raises OverflowError for a day outside the limits in every zone: it may be too far away for Python's dates."""
    if not date(1969, 12, 30) <= date(day.year, day.month, day.day) <= date(2106, 2, 9):
        raise OverflowError(day)


def _fold(edge: Edge) -> int:
    """The `fold` of a wall time that occurs twice."""
    return int(edge is Edge.END)


def _unix(value: str) -> Unix:
    number = int(value) if len(value) <= MAX_DIGITS else -1
    if MAX_SECOND < number <= MAX_SECOND * MILLISECONDS:
        raise ValueError(f"{_LIMITS}: unix seconds, not milliseconds")
    if not 0 <= number <= MAX_SECOND:
        raise ValueError(_LIMITS)
    return Unix(number)


def _datetime(*numbers: str | None) -> datetime:
    try:
        return datetime(*(int(number or 0) for number in numbers), tzinfo=UTC)  # type: ignore[arg-type, misc]
    except ValueError:
        raise ValueError("must be a date and a time that exist") from None


def _offset(value: str | None) -> timezone | None:
    if value is None:
        return None
    hours, minutes = (0, 0) if value == "Z" else (int(value[1:3]), int(value[-2:]))
    if hours > 23 or minutes > 59:
        raise ValueError("must have an offset from UTC of less than a day, such as +05:30")
    size = timedelta(hours=hours, minutes=minutes)
    return timezone(-size if value.startswith("-") else size)
