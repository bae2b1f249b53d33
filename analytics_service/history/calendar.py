"""Converts local days and wall times to instants, by the time zone's rules (rules 2.1 to 2.3, starts of buckets)."""

from calendar import monthrange
from collections.abc import Sequence
from datetime import date, datetime, timedelta
from functools import lru_cache
from itertools import chain, groupby, islice, pairwise
from zoneinfo import ZoneInfo

from analytics_service.market.instants import DAY

EPOCH_ORDINAL = date(1970, 1, 1).toordinal()
_SECOND = timedelta(seconds=1)
# Times of the store end in 2106, but a bucket of thousands of years ends after Python's last date. Days after this day
# are taken to begin with it.
_LAST_DAY = date(9990, 1, 1)
_LAST_MONTH = _LAST_DAY.year * 12
# Such buckets count from before Python's first date. Leaves room for zones to move it back.
_FIRST_MONTH = 2 * 12
# Fewer days are looked up one by one, which is as fast as going through a year.
_MIN_DAYS = 16


def to_second(zone: ZoneInfo, wall: datetime) -> int:
    """The unix second of a wall time; `wall.fold` chooses between two. A skipped time means the first instant after the
    gap."""
    local = wall.replace(tzinfo=zone)
    second = int(local.timestamp())
    if datetime.fromtimestamp(second, zone).replace(tzinfo=None) == wall.replace(tzinfo=None):
        return second
    return _end_of_gap(zone, local)


def second_before(zone: ZoneInfo, second: int, *, days: int = 0, months: int = 0, fold: int = 0) -> int:
    """The unix second of the wall time `months` and `days` before the wall time at `second`.

    In a month that is too short for the day, its last day. `fold` chooses between two, as in `to_second`. Raises
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
    """The unix seconds at which local days begin. `ordinals` count days like dates, also beyond Python's last date.

    Cost: two look-ups of the zone's offset for each day. For many consecutive days: one for each day of the years that
    are not cached.
    """
    if isinstance(ordinals, range) and ordinals.step == 1 and len(ordinals) >= _MIN_DAYS:
        return _consecutive(zone, ordinals[0], len(ordinals))
    return [_midnight(zone, min(ordinal, _LAST_DAY.toordinal())) for ordinal in ordinals]


def _midnight(zone: ZoneInfo, day: int) -> int:
    begin = datetime.fromordinal(day)
    offset = zone.utcoffset(begin)
    if offset is not None and offset == zone.utcoffset(datetime.fromordinal(day + 1)):
        # Clocks do not change on this day, so its midnight is UTC's midnight less the offset.
        return (day - EPOCH_ORDINAL) * DAY - offset // _SECOND
    return to_second(zone, begin)


def _consecutive(zone: ZoneInfo, ordinal: int, count: int) -> list[int]:
    first, last = date.fromordinal(ordinal), date.fromordinal(ordinal + count - 1)
    days = chain.from_iterable(_midnights_of_year(zone, year) for year in range(first.year, last.year + 1))
    skipped = first.timetuple().tm_yday - 1
    return [*islice(chain.from_iterable(days), skipped, skipped + count)]


def from_midnights(zone: ZoneInfo, first_year: int, last_year: int, width: int) -> list[range]:
    """The starts of buckets of `width` seconds, which divides a day, counted from each local midnight: unix seconds of
    all days from one year to another, as ascending ranges."""
    years = range(first_year, last_year + 1)
    days = chain.from_iterable(_midnights_of_year(zone, year) for year in years)
    begins = [*(alike.start for alike in days), _midnight(zone, date(years.stop, 1, 1).toordinal())]
    # A day that the zone skipped has none.
    return [seconds for begin, after in pairwise(begins) if (seconds := range(begin, after, width))]


@lru_cache(maxsize=1024)
def _midnights_of_year(zone: ZoneInfo, year: int) -> Sequence[range]:
    """The unix seconds at which the days of a year begin, as ranges of equally long days."""
    day, after = date(year, 1, 1).toordinal(), date(year + 1, 1, 1).toordinal()
    ranges: list[range] = []
    for _, offsets in groupby(map(zone.utcoffset, map(datetime.fromordinal, range(day, after + 1)))):
        # Among days that begin with the same offset, clocks can change only on the last.
        *alike, last = range(day, day + len([*offsets]))
        begin, end = to_second(zone, datetime.fromordinal(day)), to_second(zone, datetime.fromordinal(last))
        ranges += [range(begin, begin + len(alike) * DAY, DAY), range(end, end + 1)]
        day = last + 1
    # The last day is the first of the next year.
    return [days for days in ranges if days][:-1]


def day_of(zone: ZoneInfo, second: int) -> int:
    return datetime.fromtimestamp(second, zone).toordinal()


def month_of(zone: ZoneInfo, second: int) -> int:
    """The local month at a unix second, counted from January of the year 0."""
    local = datetime.fromtimestamp(second, zone)
    return local.year * 12 + local.month - 1


def first_day(month: int) -> int:
    """The ordinal of a month's first day. Months count from January of the year 0; those beyond Python's dates are
    clipped."""
    year, month_of_year = divmod(max(_FIRST_MONTH, min(month, _LAST_MONTH)), 12)
    return date(year, month_of_year + 1, 1).toordinal()


def _end_of_gap(zone: ZoneInfo, local: datetime) -> int:
    """The unix second at which clocks skip a wall time. The two folds lie on either side of it (PEP 495)."""
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
