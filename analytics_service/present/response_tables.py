"""Lists as CSV (RFC 4180): a row for each item, and a column for each field that its declaration has.

Fields within a field are columns with dotted names. A list within an item is JSON, in one column.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

import orjson
import polars as pl

from analytics_service.market.spreadsheets import csv_field
from analytics_service.present.shapes import ByShape, Flags, Many, Node, OneOf, Rendering, Scope, Shape

_END = "\r\n"
# Items that are rendered before they become text, which takes less memory.
_AT_ONCE = 1_000
# The columns of an object by their names, each with the columns within it.
_Columns = dict[str, "_Columns"]
# The names of what a field has that says so for each request.
Names = Mapping[str, Sequence[str]]


@dataclass(frozen=True, slots=True)
class ResponseTable:
    """The items of a list, of one declaration, and the scope in which they are rendered."""

    of: Node
    items: Sequence[Any]
    scope: Scope

    def encode(self, names: Names) -> bytes:
        """A header, which is the same without any item, and the rows."""
        columns = _columns(self.of, self.scope.flags, names)
        lines = [",".join(_names(columns)), *self._lines(columns)]
        return "".join(f"{line}{_END}" for line in lines).encode()

    def _lines(self, columns: _Columns) -> Iterator[str]:
        for start in range(0, len(self.items), _AT_ONCE):
            rows = [self.of.render(item, self.scope) for item in self.items[start : start + _AT_ONCE]]
            cells = [pl.Series([*map(_text, values)], dtype=pl.String) for values in _values(rows, columns)]
            frame = pl.DataFrame({str(number): column for number, column in enumerate(cells)})
            fields = [csv_field(pl.col(name)) for name in frame.columns]
            yield from frame.select(pl.concat_str(fields, separator=",")).to_series()


def response_table(node: Node, record: Any, scope: Scope, member: str) -> ResponseTable:
    """The list that an answer is, or else the one that its `member` of a name is."""
    if isinstance(node, ByShape):
        return response_table(node.choices[scope.flags.shape], record, scope, member)
    if isinstance(node, Shape):
        own = scope.of(attrgetter(node.asset)(record)) if node.asset else scope
        (field,) = (field for field in node.fields if field.name == member)
        return response_table(field.of, field.get(record), own, member)
    if not isinstance(node, Many):
        raise TypeError(f"{member or node} is no list")
    return ResponseTable(node.of, [*node.items(record)], scope)


def _columns(node: Node, flags: Flags, names: Names) -> _Columns:
    if isinstance(node, Shape):
        fields = {field.name: _columns(field.of, flags, names) for field in node.fields if not field.sometimes}
        named = {field.name: _named(names[field.name]) for field in node.fields if field.name in names}
        extra = _extra(node, flags, names)
        return {**fields, **named, **({"extra": extra} if extra else {})}
    if isinstance(node, ByShape):
        return _columns(node.choices[flags.shape], flags, names)
    if isinstance(node, OneOf):
        merged: _Columns = {}
        for choice in node.choices.values():
            _merge(merged, _columns(choice, flags, names))
        return merged
    if isinstance(node, Rendering) and not isinstance(node.schema, Mapping):
        # What is rendered by itself has no variants.
        return _columns(node.schema, Flags(), names)
    return {}


def _extra(shape: Shape, flags: Flags, names: Names) -> _Columns:
    """The variants that a request asks for."""
    extra: _Columns = {}
    for variant, fields in shape.variants.items():
        if getattr(flags, variant):
            listed = [*(field.name for field in fields if not field.sometimes), *(["price"] * (variant == "value"))]
            extra[variant] = _named(listed)
            if variant != "text" and flags.text:
                extra[variant]["extra"] = {"text": _named(listed)}
            extra[variant] |= {field.name: _named(names[field.name]) for field in fields if field.name in names}
    return extra


def _named(names: Iterable[str]) -> _Columns:
    return {name: {} for name in names}


def _merge(columns: _Columns, others: _Columns) -> None:
    for name, within in others.items():
        _merge(columns.setdefault(name, {}), within)


def _names(columns: _Columns, before: str = "") -> Iterator[str]:
    for name, within in columns.items():
        yield from _names(within, f"{before}{name}.") if within else [before + name]


def _values(objects: Sequence[Any], columns: _Columns) -> Iterator[Sequence[Any]]:
    """The values of each column."""
    for name, within in columns.items():
        values = [None if item is None else item.get(name) for item in objects]
        yield from _values(values, within) if within else [values]


def _text(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else orjson.dumps(value).decode()
