"""Parsers of parameters. They raise a ValueError that says what is allowed (rule 3.3, literal forms)."""

import re
from collections.abc import Callable
from decimal import Decimal
from functools import lru_cache
from typing import TypeVar
from zoneinfo import ZoneInfo

from analytics_service.config.parsers import INTEGER, MAX_DIGITS, zone
from analytics_service.history.grid import Period
from analytics_service.history.times import Ago
from analytics_service.market.assets import is_id
from analytics_service.market.risk import PriceChange

_Word = TypeVar("_Word", bound=str)
# Pattern of a decimal below the limit of prices.
_DECIMAL = r"-?[0-9]{1,20}(\.[0-9]{1,18})?"
# Limits of assumed prices, and of price changes, in a request.
MAX_PRICES = 50
MAX_CHANGES = 5
# How many of each unit fit in 400 days.
_LONGEST = {
    Period.MINUTE: 576_000,
    Period.HOUR: 9_600,
    Period.DAY: 400,
    Period.WEEK: 57,
    Period.MONTH: 13,
    Period.YEAR: 1,
}
# Patterns of a length of time, and of a denom.
SPAN = f"[1-9][0-9]{{0,5}}({'|'.join(_LONGEST)})"
DENOM = "[A-Za-z0-9][A-Za-z0-9/:._-]{0,199}"


def integer(low: int, high: int) -> Callable[[str], int]:
    """Parses an integer from `low` to `high`: decimal digits with an optional minus sign."""

    def parse(value: str) -> int:
        if not re.fullmatch(INTEGER, value):
            raise ValueError("must be a whole number in decimal digits")
        if len(value) > MAX_DIGITS or not low <= int(value) <= high:
            raise ValueError(f"must be from {low} to {high}")
        return int(value)

    return parse


def decimal(low: Decimal, high: Decimal) -> Callable[[str], Decimal]:

    def parse(value: str) -> Decimal:
        if not re.fullmatch(_DECIMAL, value):
            raise ValueError("must be a number such as 1.1 with at most 18 decimals")
        if not low <= Decimal(value) <= high:
            raise ValueError(f"must be from {low} to {high}")
        return Decimal(value)

    return parse


def price_changes(value: str) -> list[PriceChange]:
    """Parses assumed prices of assets, separated by commas."""
    parts = value.split(",")
    if len(parts) > MAX_PRICES:
        raise ValueError(f"must be at most {MAX_PRICES} prices")
    return [_price_change(part) for part in parts]


def _price_change(part: str) -> PriceChange:
    # The key in an asset id may have colons.
    name, _, change = part.rpartition(":")
    # In a query, + means a space.
    match = re.fullmatch(rf"(?:[+ ](?!-))?({_DECIMAL})(%?)", change)
    signed = change[:1] in ("+", " ", "-")
    if not (name and match) or (signed and not match[3]) or Decimal(match[1]) < -100:
        raise ValueError(
            "must be SYMBOL_OR_ID:CHANGE, separated by commas; CHANGE is -20% (-100% or more), +5%, or a price in USD "
            "such as 60000"
        )
    return PriceChange(name, Decimal(match[1]), bool(match[3]))


def parse_spans(value: str) -> dict[str, Ago]:
    """Parses lengths of time, separated by commas. Keys are the caller's texts."""
    parts = value.split(",")
    if len(parts) > MAX_CHANGES:
        raise ValueError(f"must be at most {MAX_CHANGES} lengths of time")
    if repeated := next((part for part in parts if parts.count(part) > 1), None):
        raise ValueError(f"repeats {repeated[:20]!r}")
    return {part: _span(part) for part in parts}


def _span(part: str) -> Ago:
    if not re.fullmatch(SPAN, part):
        raise ValueError(
            f"{part[:20]!r} must be a number and a unit, such as 24h or 7d; the units are {', '.join(_LONGEST)}"
        )
    unit = Period(part.lstrip("0123456789"))
    count = int(part.removesuffix(unit))
    if count > _LONGEST[unit]:
        raise ValueError(f"{part!r} must be at most 400 days, {_LONGEST[unit]}{unit}")
    return Ago(count, unit)


def several_of(*words: _Word) -> Callable[[str], list[_Word]]:
    """Parses some of these words, separated by commas. The result has no repeats, and follows the order of `words`."""

    def parse(value: str) -> list[_Word]:
        parts = set(value.split(","))
        if not parts <= set(words):
            raise ValueError(f"must be one or more of {', '.join(words)}, separated by commas")
        return [word for word in words if word in parts]

    return parse


@lru_cache(maxsize=1_000)
def time_zone(value: str) -> ZoneInfo:
    """Parses an IANA time zone. Cached, because reading its rules takes longer than a page of days."""
    return ZoneInfo(zone(value))


def asset_id(value: str) -> str:
    """Checks an asset id, or a symbol in its place."""
    if "," in value:
        raise ValueError("must be one asset id, without commas")
    if not value or (";" in value and not is_id(value)):
        raise ValueError("must be an asset id, native;<denom> or token;<contract>, or a symbol")
    return value


def asset_ids(value: str) -> list[str]:
    """Parses asset ids or symbols, separated by commas, and drops repeats."""
    return list(dict.fromkeys(map(asset_id, _names(value))))


def symbol(value: str) -> str:
    if not value or "," in value:
        raise ValueError("must be one symbol, without commas")
    return value


def symbols(value: str) -> list[str]:
    names = _names(value)
    if not all(names):
        raise ValueError("must be symbols, separated by commas")
    return names


def _names(value: str) -> list[str]:
    """Splits names at commas, without the blanks that people type after commas."""
    return [name.strip(" ") for name in value.split(",")]


def denom(value: str) -> str:
    """Checks a plain chain denom, which is not an asset id."""
    if re.match(r"(native|token);", value):
        raise ValueError("must be a plain chain denom, not an asset id")
    if not re.fullmatch(DENOM, value):
        raise ValueError("must be a chain denom of letters, digits and / : . _ -")
    return value


def uuid(value: str) -> str:
    """A UUID in lower case."""
    if not re.fullmatch(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", value.lower()):
        raise ValueError("must be a UUID such as 00000000-0000-5000-8000-000000000000")
    return value.lower()
