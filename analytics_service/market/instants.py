"""Unix seconds, aware datetimes, and multiples of an interval since the epoch."""

from datetime import UTC, datetime, timedelta

MINUTE, HOUR, DAY = 60, 3_600, 86_400
# Per second.
MILLISECONDS, NANOSECONDS = 1_000, 1_000_000_000
EPOCH = datetime.fromtimestamp(0, UTC)
# Earlier times of prices and events are unknown times, or in another unit.
OLDEST = datetime(2009, 1, 1, tzinfo=UTC)
_SECOND = timedelta(seconds=1)


def unix_second(at: datetime) -> int:
    """The unix second that contains an aware instant."""
    return (at - EPOCH) // _SECOND


def from_unix(second: int) -> datetime:
    """The start of a unix second, in UTC."""
    return EPOCH + second * _SECOND


def format_instant(at: datetime) -> str:
    """A UTC instant in RFC 3339, in whole seconds, such as 2026-03-01T00:00:00Z."""
    return f"{at.replace(tzinfo=None).isoformat(timespec='seconds')}Z"


def floor_to(at: datetime, step: timedelta) -> datetime:
    """The last multiple of a step since the epoch at or before an instant, in UTC."""
    return EPOCH + (at - EPOCH) // step * step


def multiples_between(start: datetime, end: datetime, step: timedelta) -> list[datetime]:
    """The multiples of a step since the epoch in [start, end), in UTC, oldest first."""
    first, after = (-((EPOCH - at) // step) for at in (start, end))
    return [EPOCH + step * number for number in range(first, after)]


def month_start(second: int) -> int:
    """The start of the UTC month that contains a unix second."""
    return unix_second(from_unix(second).replace(day=1, hour=0, minute=0, second=0))


def next_month(month: int) -> int:
    """The start of the UTC month after `month`."""
    return month_start(month + 31 * DAY)
