"""Kinds of columns of a source's views: the types of ClickHouse that they may have, and how their values are read.

Every value arrives as text or as a whole number, so that nothing is rounded on the way.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from enum import StrEnum
from typing import Any

from analytics_service.market.instants import EPOCH
from analytics_service.market.kinds import AssetId

_WRAPPED = re.compile(r"(?:Nullable|LowCardinality)\((.*)\)")
_DIGITS = re.compile(r"[0-9]+")
_TEXT = r"String|Enum(8|16)\(.*\)|UUID"


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of column. `allowed` says in words which types it may have, `types` is the pattern of their names.

    `select` is SQL for a column `v.{}`. `decode` makes the value; its ValueError or ArithmeticError says what is wrong.
    """

    allowed: str
    types: str
    decode: Callable[[Any], Any]
    select: str = "toString(v.{})"

    def fits(self, type_name: str) -> bool:
        """Whether a column of this ClickHouse type can be read. Each may also be Nullable or LowCardinality."""
        while wrapped := _WRAPPED.fullmatch(type_name):
            type_name = wrapped[1]
        return re.fullmatch(self.types, type_name) is not None


def _whole(digits: str) -> int:
    if not _DIGITS.fullmatch(digits):
        raise ValueError("must be a whole number that is not negative")
    return int(digits)


def _decimal(digits: str) -> Decimal:
    try:
        return Decimal(digits)
    except ArithmeticError:
        raise ValueError("must be a decimal number, such as 1572.5") from None


def _instant(microseconds: int) -> datetime:
    return EPOCH + timedelta(microseconds=microseconds)


def word(words: type[StrEnum]) -> Kind:
    """The kind of a column whose values are members of an enum; empty text is no value."""

    def decode(value: str) -> StrEnum | None:
        try:
            return words(value) if value else None
        except ValueError:
            raise ValueError(f"must be one of {', '.join(words)}") from None

    return Kind("String", _TEXT, decode)


TEXT = Kind("String", _TEXT, str)
TEXT_OR_NONE = Kind("String", _TEXT, lambda text: text or None)
ASSET_ID = Kind("String", _TEXT, AssetId.encode)
WHOLE = Kind("a whole number, such as UInt256, or String", r"U?Int\d+|Decimal\(\d+, 0\)|String", _whole)
DECIMAL = Kind(
    "Decimal(38, 18) or another Decimal, a whole number, or String", r"Decimal\(\d+, \d+\)|U?Int\d+|String", _decimal
)
FLAG = Kind("Bool", r"Bool|UInt8", bool, "toUInt8(v.{})")
TIME = Kind(
    "DateTime or DateTime64",
    r"DateTime(64)?(\(.*\))?",
    _instant,
    "toUnixTimestamp64Micro(toDateTime64(v.{}, 6, 'UTC'))",
)
TEXTS = Kind("Array(String)", r"Array\((LowCardinality\()?String\)+", tuple, "v.{}")
