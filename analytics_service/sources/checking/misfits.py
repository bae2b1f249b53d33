"""Whether records have the types that the domain declares."""

from collections.abc import Iterator, Mapping
from dataclasses import is_dataclass
from datetime import datetime
from enum import StrEnum
from functools import cache
from types import UnionType
from typing import Any, NamedTuple, get_args, get_origin, get_type_hints

from analytics_service.market.kinds import with_article


class Misfit(NamedTuple):
    """A value that is not of its type. `path` is within its record, such as config.liquidation_ltv."""

    path: str
    value: Any
    allowed: str


def misfits(value: Any, declared: Any, path: str = "") -> Iterator[Misfit]:
    """Every value within a value of a declared type that is of another type. The domain's types are records, None,
    tuples, dicts and plain types; a list does for a tuple, and text for a word."""
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
        for name, kind in _hints(declared).items():  # type: ignore[arg-type]
            yield from misfits(getattr(value, name), kind, _within(path, name))
    elif not _fits(value, origin or declared):
        allowed = "an aware datetime" if declared is datetime else with_article(origin or declared)
        yield Misfit(path, value, allowed)


def _fits(value: Any, declared: type) -> bool:
    if issubclass(declared, StrEnum):
        return isinstance(value, str)
    if declared is int and isinstance(value, bool):
        return False
    if isinstance(value, datetime):
        return declared is datetime and value.utcoffset() is not None
    return isinstance(value, declared)


def _within(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


@cache
def _hints(record: Any) -> Mapping[str, Any]:
    """The types of a record's fields, which take longer to evaluate than to check."""
    return get_type_hints(record)
