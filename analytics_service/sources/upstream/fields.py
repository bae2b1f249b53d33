"""Typed fields of an answer. Whatever is missing or malformed is a SourceError that names path and field.

Numbers may come as strings, and strings of digits as numbers. Fields that nobody asks for do not matter.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass
from datetime import datetime
from decimal import Decimal
from functools import cache
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

from analytics_service.errors import OutOfRange, SourceError
from analytics_service.market.fields import kinds_of
from analytics_service.market.instants import instant, unix_second
from analytics_service.market.kinds import TIME_LIMIT, Amount, AssetId, Flag, Kind, Number, Text, Time, Usd

_R = TypeVar("_R")
# The members that a field may be, by its name.
Names = Mapping[str, tuple[str, ...]]
_JSON = {dict: "an object", list: "an array", str: "text", bool: "a boolean", type(None): "null"}
# Characters of a number or a word.
_LONGEST = 200
_AMOUNT, _NUMBER, _TEXT, _ASSET_ID = Amount(), Number(), Text(), AssetId()


@dataclass(frozen=True, slots=True)
class AnswerField:
    """A value in an answer. `answer` says whose and which, `where` is the place in its `data`, as in [3].state.apr."""

    value: Any
    answer: str
    where: str = ""

    def __getitem__(self, name: str) -> "AnswerField":
        """A member that must be there, and not be null."""
        field = self.get(name)
        if field is None:
            missing = AnswerField(None, self.answer, self._below(name))
            raise missing.error("is null" if name in self.value else "is missing")
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
        """The items of an array, or of the array `contents` of an object that has sums beside it."""
        if isinstance(self.value, dict) and "contents" in self.value:
            return self["contents"].items()
        if not isinstance(self.value, list):
            raise self.error("is not an array")
        return [AnswerField(item, self.answer, f"{self.where}[{index}]") for index, item in enumerate(self.value)]

    def by_asset(self, read: "Callable[[AnswerField], _R]") -> dict[str, _R]:
        """What is read from each item, by the id of its asset, which no other item has."""
        by_id: dict[str, _R] = {}
        for item in self.items():
            asset_id = item.asset_id()
            if asset_id in by_id:
                raise item._id().error("occurs twice")
            by_id[asset_id] = read(item)
        return by_id

    def asset_id(self) -> str:
        """The id of an AssetSpec, or of that within an object."""
        asset_id: str = self._id().read(_ASSET_ID)
        return asset_id

    def text(self) -> str:
        return str(self.read(_TEXT))

    def whole(self) -> int:
        """An amount, or another whole number that is not negative."""
        return int(self.read(_AMOUNT))

    def decimal(self) -> Decimal:
        """A number with any number of decimals, of a magnitude below 10^20."""
        number: Decimal = self.read(_NUMBER)
        return number

    def read(self, kind: Kind, *, strict: bool = True) -> Any:
        """A value of a kind, within its range. If it is not `strict`, a value out of range stays as it is: whoever
        stores it leaves out what cannot be stored, and nothing else."""
        if isinstance(kind, AssetId) and isinstance(self.value, dict):
            return self.asset_id()
        try:
            value: Any = self._second() if isinstance(kind, Time) else kind.read(self._selected(kind))
            if strict:
                kind.encode(value)
        except OutOfRange as error:
            raise SourceError(f"{self._place()}: {error}") from None
        except ValueError as error:
            raise self.error(str(error)) from None
        if strict and isinstance(kind, Usd) and value < 0:
            raise self.error("must not be negative")
        return value

    def record(
        self,
        of: Callable[..., _R],
        *others: "AnswerField | None",
        names: Names | None = None,
        strict: bool = False,
        **values: Any,
    ) -> _R:
        """A record of the members of this object and others. They bear the names of its fields, apart from those in
        `names`, and are read by the types of the fields: kinds, records, and tuples of records. `values` are the fields
        that come from elsewhere. Of a record that is neither of an asset nor of an address, a value out of range costs
        the snapshot: it is `strict`."""
        places = [self, *filter(None, others)]
        for name, declared in _types_of(of).items():
            if name in values:
                continue
            if name == "asset_id":
                values[name] = self.asset_id()
                continue
            members = (names or {}).get(name, (name,))
            field = next(filter(None, (place.get(*members) for place in places)), None)
            if isinstance(declared, Kind):
                is_null = field is None and declared.nullable
                values[name] = None if is_null else (field or self[members[0]]).read(declared, strict=strict)
            elif isinstance(declared, tuple):
                values[name] = (field or self[name]).records(declared[0], strict=strict)
            # A record that is not there has its default, if it has one.
            elif field or name not in _defaults(of):
                values[name] = (field or places[-1][name]).record(declared, strict=strict)
        return of(**values)

    def records(self, of: Callable[..., _R], *groups: str, strict: bool = False) -> tuple[_R, ...]:
        """A record of each item, with the members of some objects within it."""
        return tuple(item.record(of, *map(item.__getitem__, groups), strict=strict) for item in self.items())

    def error(self, problem: str) -> SourceError:
        """An error that says what is wrong with this field."""
        subject = "it" if problem in ("is missing", "is null") else self._shown()
        return SourceError(f"{self._place()}: {subject} {problem}.")

    def _place(self) -> str:
        return f"{self.answer}, field {self.where or 'data'}"

    def _id(self) -> "AnswerField":
        field = self
        while inner := field.get("asset_info", "asset"):
            field = inner
        return field["id"]

    def _selected(self, kind: Kind) -> Any:
        """The value as `kind.read` takes it from a view of a source."""
        for read, of, words in ((Flag, bool, "true or false"), (Text, str, "text")):
            if isinstance(kind, read):
                if not isinstance(self.value, of):
                    raise ValueError(f"must be {words}")
                return self.value
        if isinstance(self.value, bool) or not isinstance(self.value, (str, int, Decimal)):
            raise ValueError("must be a number, or text")
        if len(selected := str(self.value)) > _LONGEST:
            raise ValueError(f"must not be longer than {_LONGEST} characters")
        return selected

    def _second(self) -> datetime:
        """An instant in RFC 3339 with an offset, or in unix seconds; fractions of a second are dropped."""
        if isinstance(self.value, str) and not self.value.isdigit():
            try:
                return instant(unix_second(datetime.fromisoformat(self.value)))
            except (ValueError, TypeError):
                raise ValueError("must be a time with an offset from UTC") from None
        number = _NUMBER.read(self._selected(_NUMBER))
        return instant(int(number) if 0 <= number < TIME_LIMIT else TIME_LIMIT)

    def _below(self, name: str) -> str:
        return f"{self.where}.{name}" if self.where else name

    def _shown(self) -> str:
        if isinstance(self.value, (int, Decimal)) and not isinstance(self.value, bool):
            return f"{self.value!s:.40}"
        if isinstance(self.value, str):
            return json.dumps(self.value if len(self.value) <= 60 else f"{self.value[:60]}...")
        return _JSON[type(self.value)]


@cache
def _types_of(record: Any) -> Mapping[str, Any]:
    """By field: its kind, the type of a record within the record, or a tuple with the type of several records."""
    hints = {name: get_args(hint) for name, hint in get_type_hints(record).items() if get_origin(hint) is tuple}
    return {**kinds_of(record), **{name: of[:1] for name, of in hints.items() if is_dataclass(of[0])}}


@cache
def _defaults(record: Any) -> frozenset[str]:
    return frozenset(field.name for field in fields(record) if field.default is not MISSING)
