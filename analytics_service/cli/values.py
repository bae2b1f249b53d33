"""Values on the command line: instants, durations, and click types made from parsers."""

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import TypeVar

import click

from analytics_service.market.instants import DAY, EPOCH, HOUR, MINUTE

_Value = TypeVar("_Value")

_UNITS = {"s": 1, "m": MINUTE, "h": HOUR, "d": DAY}
_RFC_3339 = re.compile(r"\d{4}-\d\d-\d\d([Tt ]\d\d:\d\d:\d\d(\.\d{1,6})?([Zz]|[+-]\d\d:\d\d))?")


def parse_instant(value: str) -> datetime:
    """An instant from 1970 on, in UTC. ValueError names the accepted forms."""
    at = _instant(value)
    if at is None:
        raise ValueError("must be unix seconds, a date such as 2026-03-01 (midnight UTC) or 2026-03-01T00:00:00Z")
    if at < EPOCH:
        raise ValueError("must not be before 1970-01-01T00:00:00Z")
    return at


def _instant(value: str) -> datetime | None:
    try:
        if re.fullmatch(r"\d{1,12}", value):
            return datetime.fromtimestamp(int(value), UTC)
        if _RFC_3339.fullmatch(value):
            at = datetime.fromisoformat(value.upper())
            return at.astimezone(UTC) if at.tzinfo else at.replace(tzinfo=UTC)
    except (ValueError, OverflowError, OSError):
        # The form is right, but there is no such day, hour or year.
        pass
    return None


def parse_duration(value: str) -> timedelta:
    """A positive duration. ValueError names the accepted forms."""
    match = re.fullmatch(r"(\d{1,9})([smhd])", value)
    if not match or int(match[1]) == 0:
        raise ValueError("must be a positive whole number followed by s, m, h or d, such as 30s, 15m, 1h or 1d")
    return timedelta(seconds=int(match[1]) * _UNITS[match[2]])


def value_type(parse: Callable[[str], _Value]) -> Callable[[str], _Value]:
    """A click type from a parser. The message of its ValueError becomes that of the usage error."""

    def convert(value: str) -> _Value:
        try:
            return parse(value)
        except ValueError as error:
            raise click.BadParameter(f"{value[:80]!r} {error}.") from None

    return convert
