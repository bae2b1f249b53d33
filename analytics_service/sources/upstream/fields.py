"""Typed fields of an answer. Whatever is missing or malformed is a SourceError that names path and field.

Numbers may come as strings, and strings of digits as numbers. Fields that nobody asks for do not matter.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from enum import StrEnum
from typing import Any, TypeVar

from analytics_service.errors import SourceError
from analytics_service.market.assets import split_id
from analytics_service.market.fields import kinds_of
from analytics_service.market.instants import instant, unix_second
from analytics_service.market.kinds import (
    AMOUNT_LIMIT,
    RATE_LIMIT,
    TIME_LIMIT,
    Amount,
    AssetId,
    Count,
    Flag,
    Kind,
    Number,
    Price,
    Rate,
    Ratio,
    Text,
    Time,
    Usd,
    Word,
)
from analytics_service.market.values import LIMIT

_R = TypeVar("_R")
_W = TypeVar("_W", bound=StrEnum)
# The members that a field may be, by its name.
Names = Mapping[str, Sequence[str]]
_NUMBER = re.compile(r"-?[0-9]{1,200}(\.[0-9]{1,200})?([eE][+-]?[0-9]{1,3})?")
# Digits of the greatest amount. A number with more cannot be an amount, and might take gigabytes to write out.
_MOST_DIGITS = len(str(AMOUNT_LIMIT))
_NAMES = {dict: "an object", list: "an array", str: "text", bool: "a boolean", type(None): "null"}


@dataclass(frozen=True, slots=True)
class AnswerField:
    """A value in an answer. `answer` says whose and which, `where` is the place in its `data`, as in [3].state.apr."""

    value: Any
    answer: str
    where: str = ""

    def __getitem__(self, name: str) -> "AnswerField":
        """A member that must be there."""
        return self.either(name)

    def either(self, *names: str) -> "AnswerField":
        """The first of several members, of which one must be there and not be null."""
        field = self.get(*names)
        if field is None:
            missing = AnswerField(None, self.answer, self._below(names[0]))
            raise missing.error("is null" if names[0] in self.value else "is missing")
        return field

    def get(self, *names: str) -> "AnswerField | None":
        """The first of several members that is there and not null, if any is."""
        if not isinstance(self.value, dict):
            raise self.error("is not an object")
        for name in names:
            if self.value.get(name) is not None:
                return AnswerField(self.value[name], self.answer, self._below(name))
        return None

    def items(self) -> "list[AnswerField]":
        """The items of an array."""
        if not isinstance(self.value, list):
            raise self.error("is not an array")
        return [AnswerField(item, self.answer, f"{self.where}[{index}]") for index, item in enumerate(self.value)]

    def contents(self) -> "list[AnswerField]":
        """The items of an array, or of the array `contents` of an object that has sums beside it."""
        return self["contents"].items() if isinstance(self.value, dict) else self.items()

    def text(self) -> str:
        """Text."""
        if not isinstance(self.value, str):
            raise self.error("is not text")
        return self.value

    def flag(self) -> bool:
        """A boolean."""
        if not isinstance(self.value, bool):
            raise self.error("is not true or false")
        return self.value

    def whole(self, limit: int = AMOUNT_LIMIT) -> int:
        """A whole number, not negative and below `limit`; an amount unless told otherwise."""
        number = self._number("is not a whole number")
        if number.adjusted() >= _MOST_DIGITS or number != number.to_integral_value():
            raise self.error("is not a whole number")
        if not 0 <= number < limit:
            raise self.error(f"is negative or not below {limit}")
        return int(number)

    def decimal(self) -> Decimal:
        """A number with any number of decimals, of a magnitude below 10^20."""
        number = self._number("is not a number")
        if number.copy_abs() >= LIMIT:
            raise self.error("is not below 10^20")
        return number

    def not_negative(self) -> Decimal:
        """A number as `decimal` reads it, not below 0."""
        number = self.decimal()
        if number < 0:
            raise self.error("is negative")
        return number

    def time(self) -> datetime:
        """An instant in RFC 3339 with an offset, or in unix seconds; fractions of a second are dropped."""
        if isinstance(self.value, str) and not self.value.isdigit():
            second = self._rfc_second()
        else:
            number = self._number("is not a time")
            second = int(number) if number.adjusted() < _MOST_DIGITS else TIME_LIMIT
        if not 0 <= second < TIME_LIMIT:
            raise self.error("is not a time from 1970 to 2106")
        return instant(second)

    def rate(self) -> Decimal:
        """An APR."""
        apr = self.decimal()
        if not 0 <= apr <= RATE_LIMIT:
            raise self.error(f"is not an APR, a fraction from 0 to {RATE_LIMIT}")
        return apr

    def word(self, words: type[_W]) -> _W:
        """One of several words."""
        try:
            return words(self.text())
        except ValueError:
            raise self.error(f"is none of {', '.join(words)}") from None

    def asset_id(self) -> str:
        """The id of an AssetSpec."""
        asset_id = self["id"].text()
        try:
            split_id(asset_id)
        except ValueError:
            raise self["id"].error("is not the id of an asset") from None
        return asset_id

    def record(self, of: Callable[..., _R], names: Names | None = None, **others: Any) -> _R:
        """A record of this object's members. They bear the names of its fields, apart from those in `names`, and are
        read by the kinds of the fields. `others` are the fields that come from elsewhere."""
        for name, kind in kinds_of(of).items():
            if name not in others and isinstance(kind, Kind):
                members = (names or {}).get(name, (name,))
                field = self.get(*members) if kind.nullable else self.either(*members)
                others[name] = None if field is None else _read(field, kind)
        return of(**others)

    def error(self, problem: str) -> SourceError:
        """An error that says what is wrong with this field."""
        subject = "it" if problem in ("is missing", "is null") else self._shown()
        return SourceError(f"{self.answer}, field {self.where or 'data'}: {subject} {problem}.")

    def _number(self, problem: str) -> Decimal:
        if isinstance(self.value, str) and _NUMBER.fullmatch(self.value):
            return Decimal(self.value)
        if isinstance(self.value, (int, Decimal)) and not isinstance(self.value, bool):
            return Decimal(self.value)
        raise self.error(problem)

    def _rfc_second(self) -> int:
        try:
            at = datetime.fromisoformat(self.value)
        except ValueError:
            raise self.error("is not a time") from None
        if at.tzinfo is None:
            raise self.error("has no offset from UTC")
        return unix_second(at)

    def _below(self, name: str) -> str:
        return f"{self.where}.{name}" if self.where else name

    def _shown(self) -> str:
        if isinstance(self.value, (int, Decimal)) and not isinstance(self.value, bool):
            return f"{self.value!s:.40}"
        if isinstance(self.value, str):
            return json.dumps(self.value if len(self.value) <= 60 else f"{self.value[:60]}...")
        return _NAMES[type(self.value)]


def _read(field: AnswerField, kind: Kind) -> Any:
    if isinstance(kind, Count):
        return field.whole(kind.limit)
    return field.word(kind.of) if isinstance(kind, Word) else _READERS[type(kind)](field)


_READERS: Mapping[type[Kind], Callable[[AnswerField], Any]] = {
    Amount: AnswerField.whole,
    AssetId: AnswerField.asset_id,
    Flag: AnswerField.flag,
    Number: AnswerField.decimal,
    Price: AnswerField.not_negative,
    Rate: AnswerField.rate,
    Ratio: AnswerField.decimal,
    Text: AnswerField.text,
    Time: AnswerField.time,
    Usd: AnswerField.not_negative,
}


def optional(field: AnswerField | None, read: Callable[[AnswerField], Any]) -> Any:
    """What a field holds; None if it is not there or null."""
    return None if field is None else read(field)


def unique(items: Mapping[str, Any] | set[str], key: str, field: AnswerField) -> str:
    """A key that must not have been there before."""
    if key in items:
        raise field.error("occurs twice")
    return key
