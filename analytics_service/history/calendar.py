"""Converts local days and wall times to instants, by the time zone's rules (rules 2.1 to 2.3, starts of buckets)."""

from calendar import monthrange
from collections.abc import Iterable
from datetime import date, datetime, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo

from analytics_service.market.instants import DAY

EPOCH_ORDINAL = date(1970, 1, 1).toordinal()
_SECOND = timedelta(seconds=1)
# Times of the store end in 2106, but a bucket of thousands of years ends after Python's last date. Days after this day
# are taken to begin with it.
_LAST_DAY = date(9990, 1, 1)
_LAST_ORDINAL = _LAST_DAY.toordinal()
_LAST_MONTH = _LAST_DAY.year * 12
# Such buckets count from before Python's first date. Leaves room for zones to move it back.
_FIRST_MONTH = 2 * 12


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


def midnights(zone: ZoneInfo, ordinals: Iterable[int]) -> list[int]:
    """The unix seconds at which local days begin. `ordinals` count days like dates, also beyond Python's last date."""
    return [_midnight(zone, min(ordinal, _LAST_ORDINAL)) for ordinal in ordinals]


# The days of a century. Pages of a history ask for the same days again and again.
@lru_cache(maxsize=40_000)
def _midnight(zone: ZoneInfo, day: int) -> int:
    begin = datetime.fromordinal(day)
    offset = zone.utcoffset(begin)
    if offset is not None and offset == zone.utcoffset(datetime.fromordinal(day + 1)):
        # Clocks do not change on this day, so its midnight is UTC's midnight less the offset.
        return (day - EPOCH_ORDINAL) * DAY - offset // _SECOND
    return to_second(zone, begin)


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
