"""Lists as CSV (RFC 4180): a row for each item, a column for each declared field (rule 7.6, lists as files).

Nested fields are columns with dotted names. A list within an item is one column with JSON.
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
# Items that are rendered and converted at once; more would take more memory.
_AT_ONCE = 1_000
# The columns of an object by name, each with its nested columns.
_Columns = dict[str, "_Columns"]
# Nested names of the fields whose nested names depend on the request.
Names = Mapping[str, Sequence[str]]


@dataclass(frozen=True, slots=True)
class ResponseTable:
    """The items of a list, their declaration, and the scope in which they are rendered."""

    of: Node
    items: Sequence[Any]
    scope: Scope

    def encode(self, names: Names) -> bytes:
        """The header, which does not depend on the items, and the rows."""
        columns = _columns(self.of, self.scope.flags, names)
        lines = [",".join(_names(columns)), *self._lines(columns)]
        return "".join(f"{line}{_END}" for line in lines).encode()

    def _lines(self, columns: _Columns) -> Iterator[str]:
        for start in range(0, len(self.items), _AT_ONCE):
            rows = [self.of.render(item, self.scope) for item in self.items[start : start + _AT_ONCE]]
            texts = [pl.Series([*map(_text, values)], dtype=pl.String) for values in _values(rows, columns)]
            frame = pl.DataFrame({str(number): column for number, column in enumerate(texts)})
            fields = [csv_field(pl.col(name)) for name in frame.columns]
            yield from frame.select(pl.concat_str(fields, separator=",")).to_series()


def response_table(node: Node, record: Any, scope: Scope, member: str) -> ResponseTable:
    """The list of an answer: the answer itself, or its member called `member`."""
    if isinstance(node, ByShape):
        return response_table(node.choices[scope.flags.shape], record, scope, member)
    if isinstance(node, Shape):
        own = scope.of(attrgetter(node.asset)(record)) if node.asset else scope
        (field,) = (field for field in node.fields if field.name == member)
        return response_table(field.of, field.get(record), own, member)
    if not isinstance(node, Many):
        raise TypeError(f"{member or node} is not a list")
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
        # It is rendered outside of the scope, without variants.
        return _columns(node.schema, Flags(), names)
    return {}


def _extra(shape: Shape, flags: Flags, names: Names) -> _Columns:
    """The requested variants."""
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
