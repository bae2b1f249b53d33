"""The bucket grid: the starts of a range's buckets (rules 2.1 to 2.5, starts of buckets, and 2.17, aligned buckets)."""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from enum import StrEnum
from functools import cached_property
from itertools import accumulate, chain, islice, pairwise
from zoneinfo import ZoneInfo

from analytics_service.errors import ParameterInvalid
from analytics_service.history.calendar import (
    EPOCH_ORDINAL,
    day_of,
    first_day,
    midnights,
    month_of,
    to_second,
)
from analytics_service.market.instants import DAY, HOUR, MINUTE

MAX_BUCKETS = 1_000_000
# The last second of the store's times.
MAX_SECOND = 2**32 - 1


class Period(StrEnum):
    """Unit of a bucket's width."""

    MINUTE = "min"
    HOUR = "h"
    DAY = "d"
    WEEK = "w"
    MONTH = "m"
    YEAR = "y"


# A week is seven days, and a year is twelve months.
UNITS = {Period.MINUTE: MINUTE, Period.HOUR: HOUR, Period.DAY: 1, Period.WEEK: 7, Period.MONTH: 1, Period.YEAR: 12}
# Periods with a fixed length in seconds.
EXACT = (Period.MINUTE, Period.HOUR)
# Widths for `fit_grid`, the finest first.
_WIDTHS = (
    *((Period.MINUTE, minutes) for minutes in (1, 5, 15, 30)),
    *((Period.HOUR, hours) for hours in (1, 2, 4, 6, 12)),
    *((Period.DAY, 1), (Period.DAY, 2), (Period.WEEK, 1)),
    *((Period.MONTH, 1), (Period.MONTH, 3), (Period.YEAR, 1)),
)
# Origins of aligned days and weeks: the first day and the first Monday of 1970. Months and years count from the year 0.
_ANCHORS = {Period.DAY: EPOCH_ORDINAL, Period.WEEK: date(1970, 1, 5).toordinal()}


@dataclass(frozen=True)
class Grid:
    """Buckets of `interval` periods from `start` to `end` (unix seconds, both inclusive) in a zone.

    Bucket k covers [begin(k), begin(k+1)); the last bucket contains `end`.
    """

    start: int
    end: int
    period: Period
    interval: int
    zone: ZoneInfo

    def begins(self, first: int, stop: int) -> Sequence[int]:
        """Starts of the buckets [first, stop), unix seconds, also outside of the range. For minutes and hours this is a
        `range`, which costs nothing."""
        return self._seconds(range(self._origin + first * self._width, self._origin + stop * self._width, self._width))

    def _seconds(self, units: range) -> Sequence[int]:
        """The unix seconds at which units (see `_unit_of`) begin."""
        return units if self.period in EXACT else midnights(self.zone, self._days(units))

    def _days(self, units: range) -> Sequence[int]:
        """The ordinals of the first days of units."""
        return [first_day(month) for month in units] if self.period in (Period.MONTH, Period.YEAR) else units

    @cached_property
    def count(self) -> int:
        """The number of buckets that begin at or before `end`."""
        k = (self._unit_of(self.end) - self._origin) // self._width
        # Where clocks went back over midnight, `end` may be later than the start of the day after its date.
        while self.begins(k + 1, k + 2)[0] <= self.end:
            k += 1
        while k >= 0 and self.begins(k, k + 1)[0] > self.end:
            k -= 1
        return k + 1

    def page(self, offset: int, limit: int) -> Sequence[int]:
        """Starts of the existing buckets in [offset, offset + limit), and of the next bucket; [] if none exist."""
        stop = min(offset + limit, self.count)
        return self.begins(offset, stop + 1) if offset < stop else []

    @property
    def _width(self) -> int:
        return self.interval * UNITS[self.period]

    @cached_property
    def _origin(self) -> int:
        """Start of the grid in the units of `_unit_of`: `start` floored to the period."""
        return self._unit_of(self.start)

    def _unit_of(self, second: int) -> int:
        """The unit that holds a unix second: the start of a minute or hour in unix seconds, the ordinal of a day, or
        the number of a month."""
        if self.period is Period.MINUTE:
            return second - second % MINUTE
        if self.period is Period.HOUR:
            local = datetime.fromtimestamp(second, self.zone)
            begin = second - local.minute * MINUTE - local.second
            if datetime.fromtimestamp(begin, self.zone).utcoffset() == local.utcoffset():
                return begin
            # Clocks changed within this hour.
            hour = local.replace(minute=0, second=0)
            # An hour may begin twice, even if the wall time of `second` occurs only once.
            begins = [to_second(self.zone, hour.replace(fold=fold)) for fold in (1, 0)]
            return begins[0] if begins[0] <= second else begins[1]
        if self.period is Period.MONTH:
            return month_of(self.zone, second)
        if self.period is Period.YEAR:
            return month_of(self.zone, second) // 12 * 12
        return day_of(self.zone, second)


@dataclass(frozen=True)
class AlignedGrid(Grid):
    """Buckets whose boundaries do not depend on the range (rule 2.17).

    Minutes and hours count from each local midnight, so the last bucket of a day may be shorter when clocks change.
    Wider buckets count from a fixed day.
    """

    def _seconds(self, units: range) -> Sequence[int]:
        """As in `Grid`; minutes and hours only within the range and just after it."""
        if self.period not in EXACT:
            return super()._seconds(units)
        n = bisect_right(self._firsts, units.start) - 1
        skipped = units.start - self._firsts[n]
        return [*islice(chain.from_iterable(self._ranges[n:]), skipped, skipped + len(units))]

    @property
    def _width(self) -> int:
        return 1 if self.period in EXACT else super()._width

    @cached_property
    def _origin(self) -> int:
        unit = self._unit_of(self.start)
        origin = unit - (unit - _ANCHORS.get(self.period, 0)) % self._width
        following = origin + self._width
        # Where clocks went back over midnight, `start` may be later than the start of the day after its date.
        return following if self._seconds(range(following, following + 1))[0] <= self.start else origin

    def _unit_of(self, second: int) -> int:
        """As in `Grid`; for minutes and hours, the index of the bucket in `_ranges`."""
        if self.period not in EXACT:
            return super()._unit_of(second)
        n = bisect_right(self._ranges, second, key=lambda starts: starts.start) - 1
        return self._firsts[n] + bisect_right(self._ranges[n], second) - 1

    @cached_property
    def _ranges(self) -> list[range]:
        """Starts of all buckets of minutes or hours by day: the days of the range, and two more."""
        first, last = (day_of(self.zone, second) for second in (self.start, self.end))
        days = pairwise(midnights(self.zone, range(first, last + 4)))
        return [range(begin, after, self.interval * UNITS[self.period]) for begin, after in days]

    @cached_property
    def _firsts(self) -> list[int]:
        """The index of the first bucket of each of the ranges."""
        return [0, *accumulate(map(len, self._ranges[:-1]))]


def make_grid(start: int, end: int, period: Period, interval: int, zone: ZoneInfo, *, is_aligned: bool = False) -> Grid:
    """A grid within the limits. Raises ParameterInvalid if the range is reversed or has too many buckets (rule 2.11,
    limits), or if aligned buckets do not divide a day."""
    require_order(start, end)
    if is_aligned and period in EXACT and DAY % (interval * UNITS[period]):
        allowed = "1, 2, 3, 4, 6, 8, 12 or 24 for h, a divisor of 1440 for min"
        raise ParameterInvalid("interval", f"must divide a day with align=calendar: {allowed}")
    grid = (AlignedGrid if is_aligned else Grid)(start, end, period, interval, zone)
    if grid.count > MAX_BUCKETS:
        raise ParameterInvalid(
            "interval",
            f"the range has {grid.count:,} buckets, more than {MAX_BUCKETS:,}: narrow start and end, or choose wider "
            "buckets",
        )
    return grid


def fit_grid(start: int, end: int, points: int, zone: ZoneInfo) -> AlignedGrid:
    """The finest aligned grid that covers a range with at most `points` buckets (rule 2.17).

    The grid's range is extended to whole buckets within the limits of times. Raises ParameterInvalid if the range is
    reversed, or has too many years. Cost: proportional to `points`.
    """
    require_order(start, end)
    for period, interval in _WIDTHS:
        # Buckets of minutes and hours are at most as long as their width, so there would be too many.
        if period in EXACT and (end - start) // (interval * UNITS[period]) >= points:
            continue
        grid = AlignedGrid(start, end, period, interval, zone)
        if grid.count <= points:
            begin, after = grid.begins(0, 1)[0], grid.begins(grid.count, grid.count + 1)[0]
            return AlignedGrid(max(begin, 0), min(after - 1, MAX_SECOND), period, interval, zone)
    raise ParameterInvalid(
        "points",
        f"the range has {grid.count:,} years, more than {points:,}: narrow start and end, or allow more points",
    )


def require_order(start: int, end: int) -> None:
    if start > end:
        raise ParameterInvalid("start", f"start ({start}) must not be later than end ({end})")
