"""When things happen in the simulated protocol. Instants are unix seconds."""

from datetime import UTC, datetime, timedelta

# 2025-01-01: the protocol opens, and the first loan is taken.
LAUNCH = 1_735_689_600
MINUTE = 60
HOUR = 3_600
DAY = 86_400
_EPOCH = datetime.fromtimestamp(0, UTC)
_SECOND = timedelta(seconds=1)


def second_of(at: datetime) -> int:
    """The whole second that an aware instant lies in."""
    return (at - _EPOCH) // _SECOND


def instant(second: int) -> datetime:
    """A second as an instant in UTC."""
    return _EPOCH + second * _SECOND
