"""What there is to say about a source, and how to find values of wrong types or ranges, and answers that differ."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from datetime import datetime
from decimal import Decimal
from enum import StrEnum
from functools import cache, partial
from types import UnionType
from typing import Any, get_args, get_origin, get_type_hints

from analytics_service.errors import OutOfRange
from analytics_service.market.fields import kinds_of
from analytics_service.market.kinds import Kind, type_of, with_article

# How many ids a message names.
_NAMED = 3
# A record's field that identifies it, apart from its index, in the order in which they are looked for.
_NAMING = ("id", "asset_id", "address")
Records = Sequence[Any]


class Level(StrEnum):
    """How serious a finding is: data is lost or wrong, data is probably wrong, or something is not shown."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


@dataclass(frozen=True, slots=True)
class Finding:
    """What is wrong with a source, and what to do, in one or two sentences."""

    level: Level
    message: str


error, warning, note = (partial(Finding, level) for level in Level)


def sentence(words: object) -> str:
    """The words of others, such as those of an exception, with a single full stop."""
    return f"{str(words).rstrip('. ')}."


def listed(names: Iterable[str]) -> str:
    """The first names, and the number of the others."""
    every = list(dict.fromkeys(names))
    rest = len(every) - _NAMED
    return ", ".join(every[:_NAMED]) + (f" and {rest} more" if rest > 0 else "")


def misfit(part: str, records: Records, of: Any) -> Finding | None:
    """What is wrong with the type or range of a record, if anything is: then the part's snapshot is lost."""
    for record in records:
        for path, problem in _misfits(record, of):
            return error(f"{part}: {f'{path} of {named(record)}' if path else 'a value'}{problem}")
    return None


def _misfits(value: Any, declared: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """The path, such as lend.apr, and the problem of every value within a value of a declared type that is of another
    type or out of range. The domain's types are records, None, tuples, dicts and plain types; a list does for a tuple,
    and text for a word."""
    origin, inner = get_origin(declared), get_args(declared)
    if origin is UnionType:
        if value is not None:
            yield from _misfits(value, inner[0], path)
    elif origin is tuple and isinstance(value, (tuple, list)):
        for index, item in enumerate(value):
            yield from _misfits(item, inner[0], _within(path, index))
    elif origin is dict and isinstance(value, Mapping):
        for key, item in value.items():
            yield from _misfits(key, inner[0], path)
            yield from _misfits(item, inner[1], _within(path, key))
    elif is_dataclass(declared) and isinstance(value, declared):  # type: ignore[arg-type]
        for name, hint, kind in _fields(type(value)):
            item, within = getattr(value, name), _within(path, name)
            if found := list(_misfits(item, hint, within)):
                yield from found
            elif kind and item is not None:
                try:
                    kind.encode(item)
                except OutOfRange as fault:
                    yield within, f": {fault} The whole snapshot is lost."
    elif not _fits(value, origin or declared):
        yield path, f" is {_mistyped(value, origin or declared)}"


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


def _within(path: str, name: object) -> str:
    return f"{path}.{name}" if path else str(name)


@cache
def _fields(record: Any) -> list[tuple[str, Any, Kind | None]]:
    """Name, type and kind of a record's fields."""
    kinds = {name: kind for name, kind in kinds_of(record).items() if isinstance(kind, Kind)}
    return [(name, hint, kinds.get(name)) for name, hint in get_type_hints(record).items()]


def difference(first: Records, second: Records) -> str:
    """How two answers differ, in words; empty if they have the same records, in any order."""
    earlier, later = ({named(record): record for record in records} for records in (first, second))
    for name in [*earlier, *later]:
        if (name in earlier) != (name in later):
            return f"{name} was {'there, and then was not' if name in earlier else 'not there, and then was'}"
        for field in fields(earlier[name]):
            was, now = (getattr(answer[name], field.name) for answer in (earlier, later))
            if was != now:
                return f"{field.name} of {name} was {was}, and then {now}"
    return ""


def named(record: Any) -> str:
    """A record, by the fields that identify it."""
    names = (getattr(record, name, None) for name in _NAMING)
    name = next((str(value) for value in names if value is not None), type(record).__name__)
    return f"{name} {record.index}" if hasattr(record, "index") else name
