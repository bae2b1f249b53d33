"""The fields that records declare with kinds, as columns of a table."""

from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass, replace
from functools import cache
from operator import attrgetter
from types import NoneType
from typing import Annotated, Any, TypeVar, get_args, get_origin, get_type_hints

from analytics_service.market.kinds import Kind

_R = TypeVar("_R")


@cache
def kinds_of(record: Any) -> Mapping[str, Any]:
    """The kind of each field, with its column and what its type says, and the type of each record within the record."""
    hints = get_type_hints(record, include_extras=True)
    declared: dict[str, Any] = {}
    for name in (field.name for field in fields(record)):
        hint = hints[name]
        if is_dataclass(hint):
            declared[name] = hint
        elif get_origin(hint) is Annotated:
            plain, kind = get_args(hint)
            of = get_args(plain) or (plain,)
            declared[name] = replace(kind, column=kind.column or name, nullable=NoneType in of, of=of[0])
    return declared


def columns_of(record: Any) -> Mapping[str, Kind]:
    """The kinds of a record's fields by the name of their column, those of a record within it included. Fields without
    a kind are no columns."""
    columns: dict[str, Kind] = {}
    for kind in kinds_of(record).values():
        columns |= {kind.column: kind} if isinstance(kind, Kind) else dict(columns_of(kind))
    return columns


def row_of(record: Any) -> dict[str, Any]:
    of: Any = type(record)
    return {column: value(record) for column, value in _getters(of).items()}


def record_of(record: Callable[..., _R], row: Mapping[str, Any], **others: Any) -> _R:
    """The record with the values of a row; `others` are fields without a kind."""
    values = {
        name: row[kind.column] if isinstance(kind, Kind) else record_of(kind, row)
        for name, kind in kinds_of(record).items()
    }
    return record(**values, **others)


@cache
def _getters(record: Any, path: str = "") -> Mapping[str, Callable[[Any], Any]]:
    getters: dict[str, Callable[[Any], Any]] = {}
    for name, kind in kinds_of(record).items():
        if isinstance(kind, Kind):
            getters[kind.column] = attrgetter(path + name)
        else:
            getters |= _getters(kind, f"{path}{name}.")
    return getters
