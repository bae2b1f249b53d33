"""The bucket grid: where the buckets of a range begin, page by page (rules 2.1 to 2.5 and 2.11)."""

from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from zoneinfo import ZoneInfo

from analytics_service.errors import ParameterInvalid
from analytics_service.history.calendar import DAY, day_of, first_day, midnights, month_of, to_second, wall_clock

MINUTE = 60
HOUR = 3600
MAX_BUCKETS = 1_000_000
MAX_SECOND = 253_402_300_799


class Period(StrEnum):
    """Unit of a bucket's width."""

    HOUR = "h"
    DAY = "d"
    WEEK = "w"
    MONTH = "m"
    YEAR = "y"


# A week is seven days, and a year is twelve months.
_UNITS = {Period.HOUR: HOUR, Period.DAY: 1, Period.WEEK: 7, Period.MONTH: 1, Period.YEAR: 12}


@dataclass(frozen=True)
class Grid:
    """Buckets of `interval` periods from `start` to `end` (unix seconds, both inclusive) in a zone.

    Bucket k covers [begin(k), begin(k+1)); the last bucket is the one that contains `end`.
    """

    start: int
    end: int
    period: Period
    interval: int
    zone: ZoneInfo

    def begins(self, first: int, stop: int) -> list[int]:
        """The unix seconds at which the buckets from `first` to before `stop` begin, also outside of the range."""
        units = range(self._origin + first * self._width, self._origin + stop * self._width, self._width)
        if self.period is Period.HOUR:
            return list(units)
        if self.period in (Period.MONTH, Period.YEAR):
            return midnights(self.zone, [first_day(month) for month in units])
        return midnights(self.zone, units)

    @cached_property
    def count(self) -> int:
        """How many buckets begin at or before `end`."""
        k = (self._unit_of(self.end) - self._origin) // self._width
        # Where clocks went back over midnight, `end` may be later than the start of the day after its date.
        while self.begins(k + 1, k + 2)[0] <= self.end:
            k += 1
        while k >= 0 and self.begins(k, k + 1)[0] > self.end:
            k -= 1
        return k + 1

    def page(self, offset: int, limit: int) -> list[int]:
        """Starts of the buckets [offset, offset + limit) that exist, and of the one after them; [] when none exist."""
        stop = min(offset + limit, self.count)
        return self.begins(offset, stop + 1) if offset < stop else []

    @property
    def _width(self) -> int:
        """Width of a bucket in what `_unit_of` counts."""
        return self.interval * _UNITS[self.period]

    @cached_property
    def _origin(self) -> int:
        """Where the grid begins, in what `_unit_of` counts: at `start` floored to the period."""
        return self._unit_of(self.start)

    def _unit_of(self, second: int) -> int:
        """The hour, day or month that holds a unix second: a unix second for hours, else a count of days or months."""
        if self.period is Period.HOUR:
            local, moved = wall_clock(self.zone, second)
            # The hour keeps its fold: of an hour that occurs twice, the one that holds the second.
            return to_second(self.zone, local.replace(minute=0, second=0)) + moved * DAY
        if self.period is Period.MONTH:
            return month_of(self.zone, second)
        if self.period is Period.YEAR:
            return month_of(self.zone, second) // 12 * 12
        return day_of(self.zone, second)


def make_grid(start: int, end: int, period: Period, interval: int, zone: ZoneInfo) -> Grid:
    """A grid within the limits. ParameterInvalid when the range is reversed or has too many buckets."""
    if start > end:
        raise ParameterInvalid("start", f"start ({start}) must not be later than end ({end})")
    grid = Grid(start, end, period, interval, zone)
    if grid.count > MAX_BUCKETS:
        raise ParameterInvalid(
            "interval",
            f"the range has {grid.count:,} buckets; at most {MAX_BUCKETS:,} are allowed: "
            "narrow start and end, or widen period or interval",
        )
    return grid
