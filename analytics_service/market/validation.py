"""Validates records: values must have the declared type, and be in the range of their column type."""

import re
from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import is_dataclass
from datetime import datetime
from decimal import Decimal
from enum import StrEnum
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, NamedTuple, get_args, get_origin, get_type_hints

from analytics_service.errors import OutOfRange
from analytics_service.market.kinds import ColumnType, kinds_of, type_of, with_article

# The index of an item in a path.
_INDEX = re.compile(r"\.\d+\b")
# The number of ids that a message names.
_NAMED = 3
# Types whose every value is valid.
_PLAIN = (str, int, bool, Decimal, NoneType)
# Fields that identify a record, in order of preference.
_NAMING = ("id", "asset_id", "address")


class ValidationError(NamedTuple):
    """An invalid value: its path in a record, such as lend.apr, and the problem, as text that follows the name."""

    path: str
    value: Any
    problem: str

    def of(self, record: Any) -> str:
        """A message about a record, in one or two sentences."""
        return f"{f'{self.path} of {name_record(record)}' if self.path else 'a value'}{self.problem}"

    @property
    def cause(self) -> tuple[str, str]:
        """A key that does not depend on the value or its index in a list."""
        return _INDEX.sub("", self.path), self.problem.replace(str(self.value), "")


def validate(value: Any, declared: Any, path: str = "") -> Iterator[ValidationError]:
    """The invalid values within a value of a declared type. Types are records, None, tuples, dicts and plain types; a
    list is accepted as a tuple, and text as a word."""
    origin, inner = _parts(declared)
    if origin is UnionType:
        if value is not None:
            yield from validate(value, inner[0], path)
    elif origin is tuple and isinstance(value, (tuple, list)):
        for index, item in enumerate(value):
            yield from validate(item, inner[0], _within(path, index))
    elif origin is dict and isinstance(value, Mapping):
        for key, item in value.items():
            yield from validate(key, inner[0], path)
            yield from validate(item, inner[1], _within(path, key))
    elif is_dataclass(declared) and isinstance(value, declared):  # type: ignore[arg-type]
        for name, hint, valid, kind in _fields(type(value)):
            item = getattr(value, name)
            if type(item) not in valid and (found := list(validate(item, hint, _within(path, name)))):
                yield from found
            elif kind and item is not None:
                try:
                    kind.encode(item)
                except OutOfRange as fault:
                    yield ValidationError(_within(path, name), item, f": {fault}")
    elif not _fits(value, origin or declared):
        yield ValidationError(path, value, f" is {_mistyped(value, origin or declared)}")


def name_record(record: Any) -> str:
    """The name of a record in messages."""
    names = (getattr(record, name, None) for name in _NAMING)
    name = next((str(value) for value in names if value is not None), type(record).__name__)
    return f"{name} {record.index}" if hasattr(record, "index") else name


def list_in_words(names: Iterable[str]) -> str:
    """The first names, and the number of the others."""
    every = list(dict.fromkeys(names))
    rest = len(every) - _NAMED
    return ", ".join(every[:_NAMED]) + (f" and {rest} more" if rest > 0 else "")


def _fits(value: Any, declared: type) -> bool:
    if issubclass(declared, StrEnum):
        return isinstance(value, str)
    if declared is int and isinstance(value, bool):
        return False
    if isinstance(value, datetime):
        return declared is datetime and value.utcoffset() is not None
    return isinstance(value, declared)


def _mistyped(value: Any, declared: type) -> str:
    if isinstance(value, float):
        return (
            f"the float {value!r}. Floats are not exact. Make amounts int and all else Decimal, made from text, not "
            "from floats."
        )
    if isinstance(value, datetime) and value.utcoffset() is None:
        return f"{value}, without a time zone. Use UTC."
    allowed = "an aware datetime" if declared is datetime else with_article(declared)
    hint = " Amounts are int, in denom units." if isinstance(value, Decimal) else ""
    stated = f"{value!r:.40}, {type_of(value)}" if isinstance(value, str) else type_of(value)
    return f"{stated}; it must be {allowed}.{hint}"


def _within(path: str, name: object) -> str:
    return f"{path}.{name}" if path else str(name)


@cache
def _parts(declared: Any) -> tuple[Any, tuple[Any, ...]]:
    return get_origin(declared), get_args(declared)


@cache
def _fields(record: Any) -> list[tuple[str, Any, Set[type], ColumnType | None]]:
    """Name, type, valid types and column type of a record's fields and annotated properties. Any value of a valid type
    has the right type, which saves time for most of the ten thousand prices of a tick."""
    kinds = {name: kind for name, kind in kinds_of(record).items() if isinstance(kind, ColumnType)}
    named = [(name, hint, kinds.get(name)) for name, hint in get_type_hints(record).items()]
    getters = ((name, member.fget) for name, member in vars(record).items() if isinstance(member, property))
    hints = ((name, get_type_hints(getter, include_extras=True)["return"]) for name, getter in getters)
    named += [(name, *get_args(hint)) for name, hint in hints if get_origin(hint) is Annotated]
    return [(name, hint, _valid_types(hint), kind) for name, hint, kind in named]


def _valid_types(hint: Any) -> Set[type]:
    """The types whose every value is valid for a type."""
    origin, inner = _parts(hint)
    types = inner if origin is UnionType else (hint,)
    return {of for of in types if of in _PLAIN or (isinstance(of, type) and issubclass(of, StrEnum))}
