"""Parsers of parameters: text to a value, or a ValueError that says what is allowed (rule 3.3)."""

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Final
from zoneinfo import ZoneInfo

from analytics_service.history.candles import Aggregate
from analytics_service.history.formats.base import Format
from analytics_service.history.formats.registry import FORMATS
from analytics_service.history.grid import Period
from analytics_service.market.assets import split_id
from analytics_service.market.events import Action
from analytics_service.setting_values import zone

AUTO: Final = "auto"
# The pattern of a whole number.
WHOLE = "-?[0-9]+"
# The pattern of a denom.
DENOM = "[A-Za-z0-9][A-Za-z0-9/:._-]{0,199}"


def integer(low: int, high: int) -> Callable[[str], int]:
    """An integer from `low` to `high`: decimal digits with an optional minus sign (rule 3.3)."""

    def parse(value: str) -> int:
        if not re.fullmatch(WHOLE, value):
            raise ValueError("must be a whole number in decimal digits")
        number = whole(value)
        if number is None or not low <= number <= high:
            raise ValueError(f"must be from {low} to {high}")
        return number

    return parse


def whole(digits: str) -> int | None:
    """The number that has these digits; None beyond 18 of them, which no bound has. Python refuses to convert thousands
    of digits, even of zeros."""
    significant = digits.lstrip("-0")
    if len(significant) > 18:
        return None
    return int(significant or 0) * (-1 if digits.startswith("-") else 1)


def one_of(*choices: str) -> Callable[[str], str]:
    """One of several words."""

    def parse(value: str) -> str:
        if value not in choices:
            raise ValueError(f"must be one of {', '.join(choices)}")
        return value

    return parse


# Made once, as listing the members of an enumeration takes longer than comparing them.
_period = one_of(*Period, AUTO)
_format = one_of(*FORMATS)
_aggregate = one_of(*Aggregate)
_action = one_of(*Action)


def period(value: str) -> Period | None:
    """A bucket's unit; None for `auto`."""
    return None if _period(value) == AUTO else Period(value)


def page_format(value: str) -> Format:
    """A format of history pages."""
    return FORMATS[_format(value)]


def aggregate(value: str) -> Aggregate:
    """How a point summarizes its bucket."""
    return Aggregate(_aggregate(value))


def action(value: str) -> Action:
    """What an address did."""
    return Action(_action(value))


@lru_cache(maxsize=1_000)
def time_zone(value: str) -> ZoneInfo:
    """An IANA time zone. Kept, because reading its rules again takes longer than calculating a page of days."""
    return ZoneInfo(zone(value))


def asset_id(value: str) -> str:
    """An asset id."""
    if "," in value:
        raise ValueError("must be one asset id, without commas")
    try:
        split_id(value)
    except ValueError:
        raise ValueError("must be an asset id, native;<denom> or token;<contract>") from None
    return value


def asset_ids(value: str) -> list[str]:
    """Asset ids separated by commas, without repeats."""
    return list(dict.fromkeys(asset_id(part) for part in value.split(",")))


def symbols(value: str) -> list[str]:
    """Symbols of assets separated by commas."""
    found = value.split(",")
    if not all(found):
        raise ValueError("must be symbols of assets, separated by commas")
    return found


def denom(value: str) -> str:
    """A plain chain denom, not an asset id."""
    if re.match(r"(native|token);", value):
        raise ValueError("must be a plain chain denom, not an asset id")
    if not re.fullmatch(DENOM, value):
        raise ValueError("must be a chain denom of letters, digits and / : . _ -")
    return value


def uuid(value: str) -> str:
    """A UUID in its usual form; in lower case."""
    if not re.fullmatch(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", value.lower()):
        raise ValueError("must be a UUID such as 00000000-0000-5000-8000-000000000000")
    return value.lower()
