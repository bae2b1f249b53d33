"""Local calendars to instants: days and wall times of a time zone, by the zone's own rules (rules 2.1 to 2.3)."""

from calendar import monthrange
from collections.abc import Sequence
from datetime import date, datetime, timedelta
from functools import lru_cache
from itertools import chain, groupby, islice
from zoneinfo import ZoneInfo

from analytics_service.market.instants import DAY

EPOCH_ORDINAL = date(1970, 1, 1).toordinal()
_SECOND = timedelta(seconds=1)
# Times of the store end with the year 2106, but buckets of thousands of years end after Python's dates do. All days
# from this one on begin with it.
_LAST_DAY = date(9990, 1, 1)
_LAST_MONTH = _LAST_DAY.year * 12
# Looking up fewer days takes no longer than going through a year.
_FEWEST = 16


def to_second(zone: ZoneInfo, wall: datetime) -> int:
    """The unix second of a wall time; `wall.fold` chooses between two.

    A wall time that the zone skips is taken as the first instant after the gap.
    """
    local = wall.replace(tzinfo=zone)
    second = int(local.timestamp())
    if datetime.fromtimestamp(second, zone).replace(tzinfo=None) == wall.replace(tzinfo=None):
        return second
    return _end_of_gap(zone, local)


def second_before(zone: ZoneInfo, second: int, *, days: int = 0, months: int = 0, fold: int = 0) -> int:
    """The unix second of the wall time that is some months and some days before the one at a unix second.

    In a month that is too short for the day it is the month's last day. `fold` chooses between two, as in `to_second`.
    OverflowError before the year 2.
    """
    local = datetime.fromtimestamp(second, zone)
    year, month_of_year = divmod(local.year * 12 + local.month - 1 - months, 12)
    if year < 2:
        raise OverflowError(f"{months} months before {local} is before the year 2")
    day = min(local.day, monthrange(year, month_of_year + 1)[1])
    wall = local.replace(year=year, month=month_of_year + 1, day=day, tzinfo=None) - timedelta(days=days)
    return to_second(zone, wall.replace(fold=fold))


def midnights(zone: ZoneInfo, ordinals: Sequence[int]) -> list[int]:
    """The unix seconds at which local days begin. `ordinals` are those of dates, also of later ones than Python has.

    Cost: two look-ups of the zone's offset for each day; where many follow each other, one for each day of a year that
    was not asked for lately.
    """
    if isinstance(ordinals, range) and ordinals.step == 1 and len(ordinals) >= _FEWEST:
        return _in_a_row(zone, ordinals[0], len(ordinals))
    return [_midnight(zone, min(ordinal, _LAST_DAY.toordinal())) for ordinal in ordinals]


def _midnight(zone: ZoneInfo, day: int) -> int:
    begin = datetime.fromordinal(day)
    offset = zone.utcoffset(begin)
    if offset is not None and offset == zone.utcoffset(datetime.fromordinal(day + 1)):
        # The clocks do not change on that day, so its midnight is UTC's, less the offset.
        return (day - EPOCH_ORDINAL) * DAY - offset // _SECOND
    return to_second(zone, begin)


def _in_a_row(zone: ZoneInfo, ordinal: int, count: int) -> list[int]:
    """The midnights of so many days from one on."""
    first, last = date.fromordinal(ordinal), date.fromordinal(ordinal + count - 1)
    days = chain.from_iterable(_midnights_of_year(zone, year) for year in range(first.year, last.year + 1))
    skipped = first.timetuple().tm_yday - 1
    return [*islice(chain.from_iterable(days), skipped, skipped + count)]


@lru_cache(maxsize=1024)
def _midnights_of_year(zone: ZoneInfo, year: int) -> Sequence[range]:
    """The unix seconds at which the days of a year begin, in ranges: most days are as long as the one before."""
    day, after = (date(one, 1, 1).toordinal() for one in (year, year + 1))
    found: list[range] = []
    for _, some in groupby(map(zone.utcoffset, map(datetime.fromordinal, range(day, after + 1)))):
        # The clocks may change on the last of the days that begin with the same offset, and on no other.
        *alike, last = range(day, day + len([*some]))
        begin, end = to_second(zone, datetime.fromordinal(day)), to_second(zone, datetime.fromordinal(last))
        found += [range(begin, begin + len(alike) * DAY, DAY), range(end, end + 1)]
        day = last + 1
    # The first day of the year after is not of this one.
    return [one for one in found if one][:-1]


def day_of(zone: ZoneInfo, second: int) -> int:
    """The ordinal of the local date at a unix second."""
    return datetime.fromtimestamp(second, zone).toordinal()


def month_of(zone: ZoneInfo, second: int) -> int:
    """The local month at a unix second, counted from January of the year 0."""
    local = datetime.fromtimestamp(second, zone)
    return local.year * 12 + local.month - 1


def first_day(month: int) -> int:
    """The ordinal of the first day of a month counted from January of the year 0, which may be after Python's last."""
    year, month_of_year = divmod(min(month, _LAST_MONTH), 12)
    return date(year, month_of_year + 1, 1).toordinal()


def _end_of_gap(zone: ZoneInfo, local: datetime) -> int:
    """The unix second at which the clocks jumped over a wall time: the two folds lie on its two sides (PEP 495)."""
    high = int(local.replace(fold=0).timestamp())
    low = int(local.replace(fold=1).timestamp())
    before = datetime.fromtimestamp(low, zone).utcoffset() or timedelta()
    while high - low > 1:
        middle = (low + high) // 2
        if datetime.fromtimestamp(middle, zone).utcoffset() == before:
            low = middle
        else:
            high = middle
    return high
