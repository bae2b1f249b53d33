"""The bucket grid (decisions 2.1 to 2.5 and 2.11): where the buckets of a range begin, by arithmetic, page by page."""

from dataclasses import dataclass
from datetime import date
from enum import StrEnum
from functools import cached_property
from zoneinfo import ZoneInfo

from analytics_service.errors import ParameterInvalid
from analytics_service.series.zones import day_of, instant, midnight, wall_clock

MAX_BUCKETS = 1_000_000
MAX_SECOND = 253_402_300_799
_HOUR = 3600


class Period(StrEnum):
    """Unit of a bucket's width."""

    HOUR = "h"
    DAY = "d"
    WEEK = "w"
    MONTH = "m"
    YEAR = "y"


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

    def begin(self, k: int) -> int:
        """The unix second at which bucket k begins; buckets before and after the range count on."""
        steps = k * self.interval
        if self.period is Period.HOUR:
            return self._origin + steps * _HOUR
        if self.period is Period.MONTH:
            return midnight(self.zone, _first_of_month(self._origin + steps))
        if self.period is Period.YEAR:
            return midnight(self.zone, _first_of_month((self._origin + steps) * 12))
        return midnight(self.zone, self._origin + steps * self._days)

    @cached_property
    def count(self) -> int:
        """How many buckets begin at or before `end`."""
        k = (self._unit_of(self.end) - self._origin) // self._units
        # Where clocks went back over midnight, `end` may lie after the begin of its date's successor.
        while self.begin(k + 1) <= self.end:
            k += 1
        while k >= 0 and self.begin(k) > self.end:
            k -= 1
        return k + 1

    def page(self, offset: int, limit: int) -> list[int]:
        """Begins of the buckets [offset, offset + limit) that exist, and of the one after them; [] when none exist."""
        stop = min(offset + limit, self.count)
        if offset >= stop:
            return []
        if self.period is Period.HOUR:
            width = self.interval * _HOUR
            return list(range(self._origin + offset * width, self._origin + stop * width + 1, width))
        return [self.begin(k) for k in range(offset, stop + 1)]

    @cached_property
    def _origin(self) -> int:
        """The range's first boundary: unix second for hours, else a count of days, months or years."""
        return self._unit_of(self.start)

    @property
    def _days(self) -> int:
        return 7 if self.period is Period.WEEK else 1

    @property
    def _units(self) -> int:
        """Width of a bucket in what `_unit_of` counts."""
        return self.interval * (_HOUR if self.period is Period.HOUR else self._days)

    def _unit_of(self, second: int) -> int:
        local, moved = wall_clock(self.zone, second)
        if self.period is Period.HOUR:
            # The hour keeps its fold: of an hour that occurs twice the one that holds the second.
            return instant(self.zone, local.replace(minute=0, second=0)) + moved * 86_400
        if self.period is Period.MONTH:
            return (local.year + _years(moved)) * 12 + local.month - 1
        if self.period is Period.YEAR:
            return local.year + _years(moved)
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


def _years(moved_days: int) -> int:
    return 400 if moved_days else 0


def _first_of_month(months: int) -> int:
    """Ordinal of the first day of a month counted from the year 0, also beyond the year 9999."""
    year, month = divmod(months, 12)
    cycles = max(0, (year - 9600) // 400)
    return date(year - 400 * cycles, month + 1, 1).toordinal() + cycles * 146_097
