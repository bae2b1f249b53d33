"""Durations on the command line, and click types made from parsers."""

import re
from collections.abc import Callable
from datetime import timedelta
from typing import TypeVar

import click

from analytics_service.market.instants import DAY, HOUR, MINUTE

_Value = TypeVar("_Value")

# The units of times before now (rule 2.16), as far as their length is fixed; m is older than these.
_UNITS = {"s": 1, "min": MINUTE, "m": MINUTE, "h": HOUR, "d": DAY}


def parse_duration(value: str) -> timedelta:
    """A positive duration. ValueError names the accepted forms."""
    match = re.fullmatch(rf"(\d{{1,9}})({'|'.join(_UNITS)})", value)
    if not match or int(match[1]) == 0:
        raise ValueError("must be a positive whole number followed by s, min, h or d, such as 30s, 15min, 1h or 1d")
    return timedelta(seconds=int(match[1]) * _UNITS[match[2]])


def value_type(parse: Callable[[str], _Value]) -> Callable[[str], _Value]:
    """A click type from a parser. The message of its ValueError becomes that of the usage error."""

    def convert(value: str) -> _Value:
        try:
            return parse(value)
        except ValueError as error:
            raise click.BadParameter(f"{value[:80]!r} {error}.") from None

    return convert
