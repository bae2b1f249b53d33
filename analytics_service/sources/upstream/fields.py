"""Typed fields of an answer. A missing or malformed field is a SourceError that names path and field.

Numbers may come as strings, and strings of digits as numbers. Other fields are ignored, and ranges of values are
checked before they are stored.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, is_dataclass
from datetime import datetime
from decimal import Decimal
from functools import cache
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

from analytics_service.errors import OutOfRange, SourceError
from analytics_service.market.instants import from_unix, unix_second
from analytics_service.market.kinds import TIME_LIMIT, Amount, AssetId, ColumnType, Flag, Number, Time, kinds_of

_R = TypeVar("_R")
# By field, the members that may have its value.
Names = Mapping[str, tuple[str, ...]]
_AMOUNT, _NUMBER, _ASSET_ID, _TEXT = Amount(), Number(), AssetId(), ColumnType()


@dataclass(frozen=True, slots=True)
class AnswerField:
    """A value in an answer. `place` locates it, as `https://a.b: /api/v1/markets: answer.data.lend`."""

    value: Any
    place: str

    def __getitem__(self, name: str) -> "AnswerField":
        """A required member, not null."""
        field = self.get(name)
        if field is None:
            raise SourceError(f"{self.place}.{name} is missing.")
        return field

    def get(self, *names: str) -> "AnswerField | None":
        """The first of several members that exists and is not null, or None."""
        if not isinstance(self.value, dict):
            raise self.error("must be an object")
        found = (AnswerField(self.value[name], f"{self.place}.{name}") for name in names if name in self.value)
        return next((field for field in found if field.value is not None), None)

    def items(self) -> "list[AnswerField]":
        """The items of an array, or of an object's array `contents`."""
        if isinstance(self.value, dict) and "contents" in self.value:
            return self["contents"].items()
        if not isinstance(self.value, list):
            raise self.error("must be an array")
        return [AnswerField(item, f"{self.place}[{index}]") for index, item in enumerate(self.value)]

    def by_asset(self, read: "Callable[[AnswerField], _R]") -> dict[str, _R]:
        """The value of each item, by the id of its asset, which must be unique."""
        by_id: dict[str, _R] = {}
        for item in self.items():
            if (asset_id := item.asset_id()) in by_id:
                raise item.error(f"{asset_id} occurs twice")
            by_id[asset_id] = read(item)
        return by_id

    def asset_id(self) -> str:
        """The id of an AssetSpec, or of the AssetSpec within an object."""
        field = self
        while inner := field.get("asset_info", "asset"):
            field = inner
        asset_id: str = field["id"].read(_ASSET_ID)
        return asset_id

    def text(self) -> str:
        return str(self.read(_TEXT))

    def whole(self) -> int:
        return int(self.read(_AMOUNT))

    def decimal(self) -> Decimal:
        number: Decimal = self.read(_NUMBER)
        return number

    def read(self, kind: ColumnType) -> Any:
        """The value as a column type, which may be out of its range."""
        value = self.value
        if isinstance(kind, AssetId) and isinstance(value, dict):
            return self.asset_id()
        if isinstance(value, bool) != isinstance(kind, Flag) or not isinstance(value, (str, int, Decimal)):
            raise self.error("has the wrong type")
        if isinstance(value, bool):
            return value
        try:
            return _instant(str(value)) if isinstance(kind, Time) else kind.read(str(value))
        except (ValueError, OutOfRange) as error:
            raise self.error(str(error)) from None

    def record(
        self, of: Callable[..., _R], *others: "AnswerField | None", names: Names | None = None, **values: Any
    ) -> _R:
        """A record from the members of this object and `others`. Members have the names of its fields, except for
        `names`, and are read by the types of the fields: column types, records, and tuples of records. `values` are
        fields that come from elsewhere."""
        places = [self, *filter(None, others)]
        for name, declared in _types_of(of).items():
            if name in values:
                continue
            if name == "asset_id":
                values[name] = self.asset_id()
                continue
            members = (names or {}).get(name, (name,))
            field = next(filter(None, (place.get(*members) for place in places)), None)
            if isinstance(declared, ColumnType):
                is_null = field is None and declared.nullable
                values[name] = None if is_null else (field or self[members[0]]).read(declared)
            elif isinstance(declared, tuple):
                values[name] = (field or self[name]).records(declared[0])
            else:
                # A missing record is read as empty: all of its fields must be nullable.
                values[name] = (field or AnswerField({}, f"{self.place}.{name}")).record(declared)
        return of(**values)

    def records(self, of: Callable[..., _R], *groups: str) -> tuple[_R, ...]:
        """A record from each item, with the members of the objects `groups` within it."""
        return tuple(item.record(of, *map(item.__getitem__, groups)) for item in self.items())

    def error(self, problem: str) -> SourceError:
        return SourceError(f"{self.place} is {self.value!r:.60}: {problem.rstrip('.')}.")


def _instant(text: str) -> datetime:
    """An instant in RFC 3339 with an offset, or in unix seconds; fractions of a second are dropped."""
    try:
        return from_unix(int(min(Decimal(text), Decimal(TIME_LIMIT))))
    except ArithmeticError:
        at = datetime.fromisoformat(text)
    if at.tzinfo is None:
        raise ValueError("must be a time with an offset from UTC")
    return from_unix(unix_second(at))


@cache
def _types_of(record: Any) -> Mapping[str, Any]:
    """By field: its column type, the class of a nested record, or a tuple with the class of several records."""
    hints = {name: get_args(hint) for name, hint in get_type_hints(record).items() if get_origin(hint) is tuple}
    return {**kinds_of(record), **{name: of[:1] for name, of in hints.items() if is_dataclass(of[0])}}
