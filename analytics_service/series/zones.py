"""Local calendar to instants: midnights of a time zone, by the zone's own rules (decisions 2.1 to 2.3)."""

from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo

# The Gregorian calendar repeats after 400 years, which are whole weeks: so do the zones' rules for years to come.
_CYCLE_DAYS = 146_097
_CYCLE_SECONDS = _CYCLE_DAYS * 86_400
_EPOCH_ORDINAL = date(1970, 1, 1).toordinal()
_DAY, _SECOND = timedelta(days=1), timedelta(seconds=1)
# Python's dates end with the year 9999; what lies behind this ordinal is looked up one cycle earlier.
_LAST_ORDINAL = date(9990, 1, 1).toordinal()
_LAST_SECOND = int(datetime(9990, 1, 1, tzinfo=UTC).timestamp())


def wall_clock(zone: ZoneInfo, second: int) -> tuple[datetime, int]:
    """What clocks of the zone show at a unix second, and the days by which that date was moved to fit Python's."""
    moved = _CYCLE_DAYS if second > _LAST_SECOND else 0
    return datetime.fromtimestamp(second - moved * 86_400, zone), moved


def instant(zone: ZoneInfo, wall: datetime) -> int:
    """The unix second at which the zone's clocks show a wall time; of two the one that `wall.fold` says.

    A wall time that the zone skipped is taken as the first instant after the gap.
    """
    local = wall.replace(tzinfo=zone)
    second = int(local.timestamp())
    if datetime.fromtimestamp(second, zone).replace(tzinfo=None) == wall.replace(tzinfo=None):
        return second
    return _end_of_gap(zone, local)


@lru_cache(maxsize=200_000)
def midnight(zone: ZoneInfo, ordinal: int) -> int:
    """The unix second at which a local day (a date's ordinal, also beyond the year 9999) begins."""
    if ordinal > _LAST_ORDINAL:
        return midnight(zone, ordinal - _CYCLE_DAYS) + _CYCLE_SECONDS
    local = datetime.fromordinal(ordinal)
    offset = zone.utcoffset(local)
    if offset is not None and offset == zone.utcoffset(local + _DAY):
        # Clocks do not change that day; so it is simply where UTC's midnight is, less the offset.
        return (ordinal - _EPOCH_ORDINAL) * 86_400 - offset // _SECOND
    return instant(zone, local)


def day_of(zone: ZoneInfo, second: int) -> int:
    """The ordinal of the local date at a unix second."""
    local, moved = wall_clock(zone, second)
    return local.toordinal() + moved


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
