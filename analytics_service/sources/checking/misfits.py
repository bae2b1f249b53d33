"""Whether records have the types and ranges that the domain declares."""

from collections.abc import Iterator, Mapping
from dataclasses import is_dataclass
from datetime import datetime
from decimal import Decimal
from enum import StrEnum
from functools import cache
from types import UnionType
from typing import Any, NamedTuple, get_args, get_origin, get_type_hints

from analytics_service.errors import OutOfRange
from analytics_service.market.fields import kinds_of
from analytics_service.market.kinds import Kind, type_of, with_article


class Misfit(NamedTuple):
    """A value that is not of its type, or out of range. `path` is within its record, such as lend.apr."""

    path: str
    problem: str


def misfits(value: Any, declared: Any, path: str = "") -> Iterator[Misfit]:
    """Every value within a value of a declared type that is of another type or out of range. The domain's types are
    records, None, tuples, dicts and plain types; a list does for a tuple, and text for a word."""
    origin, inner = get_origin(declared), get_args(declared)
    if origin is UnionType:
        if value is not None:
            yield from misfits(value, inner[0], path)
    elif origin is tuple and isinstance(value, (tuple, list)):
        for index, item in enumerate(value):
            yield from misfits(item, inner[0], _within(path, str(index)))
    elif origin is dict and isinstance(value, Mapping):
        for key, item in value.items():
            yield from misfits(key, inner[0], path)
            yield from misfits(item, inner[1], _within(path, str(key)))
    elif is_dataclass(declared) and isinstance(value, declared):  # type: ignore[arg-type]
        for name, hint, kind in _fields(declared):  # type: ignore[arg-type]
            yield from _misfits_of_field(getattr(value, name), hint, kind, _within(path, name))
    elif not _fits(value, origin or declared):
        yield Misfit(path, f" is {_mistyped(value, origin or declared)}")


def _misfits_of_field(value: Any, hint: Any, kind: Kind | None, path: str) -> Iterator[Misfit]:
    # Most fields are of a plain type, which is fast to see.
    found = [] if kind and type(value) is hint is not datetime else list(misfits(value, hint, path))
    yield from found
    if kind and value is not None and not found:
        try:
            kind.encode(value)
        except OutOfRange as error:
            yield Misfit(path, f": {error} The whole snapshot is lost.")


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
            f"the float {value!r}. Floats are not exact. Make amounts int and all else Decimal, from text and not from "
            "floats."
        )
    if isinstance(value, datetime) and value.utcoffset() is None:
        return f"{value}, without a time zone. Use UTC."
    allowed = "an aware datetime" if declared is datetime else with_article(declared)
    hint = " Amounts are int, in denom units." if isinstance(value, Decimal) else ""
    return f"{type_of(value)}; it must be {allowed}.{hint}"


def _within(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


@cache
def _fields(record: Any) -> list[tuple[str, Any, Kind | None]]:
    """Name, type and kind of a record's fields."""
    kinds = {name: kind for name, kind in kinds_of(record).items() if isinstance(kind, Kind)}
    return [(name, hint, kinds.get(name)) for name, hint in get_type_hints(record).items()]
