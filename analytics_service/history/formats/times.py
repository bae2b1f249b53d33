"""The starts of buckets as text, with the offset of a zone."""

from collections.abc import Sequence
from datetime import date, datetime, time, timedelta, timezone, tzinfo
from functools import lru_cache
from itertools import chain, pairwise

from analytics_service.history.calendar import EPOCH_ORDINAL
from analytics_service.market.instants import DAY, HOUR, MINUTE

_MINUTE = timedelta(minutes=1)


def times(seconds: Sequence[int], zone: tzinfo) -> list[str]:
    """Instants as RFC 3339 in a zone, with its offset; in UTC where the zone is in another year than 0001 to 9999.

    Historical offsets have seconds, which the format cannot express: they are rounded to minutes. The time of day is
    that at the rounded offset, so the instant is exact.

    Cost: one look-up of the zone's offset a day for a range of hours or minutes, else one for each instant.
    """
    offsets = _offsets(seconds, zone)
    local = [divmod(second + offset, DAY) for second, offset in zip(seconds, offsets, strict=True)]
    return [
        f"{_date(day)}T{_clock(second)}{_ending(offset)}" for (day, second), offset in zip(local, offsets, strict=True)
    ]


def _offsets(seconds: Sequence[int], zone: tzinfo) -> list[int]:
    """A zone's offset from UTC at each instant, in seconds."""
    if not isinstance(seconds, range) or seconds.step > HOUR or not seconds:
        return [_offset(second, zone) for second in seconds]
    # Clocks do not change twice a day: an offset at both ends of a day holds in between.
    a_day = DAY // seconds.step
    days = [seconds[first : first + a_day] for first in range(0, len(seconds), a_day)]
    edge_offsets = [_offset(second, zone) for second in chain((day[0] for day in days), seconds[-1:])]
    return [
        offset if offset == after else _offset(second, zone)
        for day, (offset, after) in zip(days, pairwise(edge_offsets), strict=True)
        for second in day
    ]


def _offset(second: int, zone: tzinfo) -> int:
    try:
        offset = datetime.fromtimestamp(second, zone).utcoffset() or timedelta()
    except (OverflowError, ValueError):
        return 0
    return round(offset / _MINUTE) * MINUTE


@lru_cache(maxsize=4096)
def _date(day: int) -> str:
    return date.fromordinal(EPOCH_ORDINAL + day).isoformat()


@lru_cache(maxsize=2048)
def _clock(second: int) -> str:
    return time(second // HOUR, second % HOUR // MINUTE, second % MINUTE).isoformat()


@lru_cache(maxsize=256)
def _ending(offset: int) -> str:
    """An offset in seconds, as the suffix of a time."""
    return time(tzinfo=timezone(timedelta(seconds=offset))).isoformat()[-len("+00:00") :]
