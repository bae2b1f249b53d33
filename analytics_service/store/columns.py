"""Kinds of columns: how the domain's values travel to ClickHouse and back.

Amounts have up to 256 bits, which Polars cannot hold: they travel as text, and queries give them out as text.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import polars as pl

from analytics_service.market.values import quantized_below
from analytics_service.store.connection import Store

AMOUNT_LIMIT = 2**256
RATIO_LIMIT = Decimal(10) ** 20


@dataclass(frozen=True, slots=True)
class Column:
    """A kind of column: its type in Polars, and the way of a value that is not null there and back."""

    dtype: type[pl.DataType] | pl.DataType
    encode: Callable[[Any], Any] = lambda value: value
    decode: Callable[[Any], Any] = lambda value: value


def amount_text(amount: int) -> str:
    """A whole amount as text. ValueError outside [0, 2^256), which ClickHouse would wrap around without a word."""
    if not 0 <= amount < AMOUNT_LIMIT:
        raise ValueError(f"{amount} is not an amount: it must not be negative, and be below 2^256")
    return str(amount)


def quantize_ratio(ratio: Decimal) -> Decimal:
    """The number with 18 decimals, rounded half to even. ValueError outside (-10^20, 10^20)."""
    stored = quantized_below(ratio, RATIO_LIMIT)
    if stored is None:
        raise ValueError(f"{ratio} is not a number that can be stored: it must be finite and below 10^20")
    return stored


def whole_second(at: datetime) -> int:
    """Unix second that an aware instant falls into."""
    return int(at.timestamp())


def instant(second: int) -> datetime:
    """Begin of a unix second, aware."""
    return datetime.fromtimestamp(second, UTC)


TEXT = Column(pl.String)
FLAG = Column(pl.Boolean)
COUNT = Column(pl.UInt64)
INDEX = Column(pl.UInt32)
AMOUNT = Column(pl.String, amount_text, int)
RATIO = Column(pl.Decimal(38, 18), quantize_ratio)
TIME = Column(pl.UInt32, whole_second, instant)

Columns = Mapping[str, Column]
Row = Mapping[str, Any]
# What every row of a snapshot carries besides its own columns.
SNAPSHOT: Columns = {"observed_at": TIME, "version": COUNT}


def fields_of(record: Any) -> dict[str, Any]:
    """The fields of a dataclass record, by name; nested records stay records."""
    return {name: getattr(record, name) for name in record.__dataclass_fields__}


def encoded(rows: Iterable[Row], columns: Columns) -> pl.DataFrame:
    """Rows of the domain's values as a batch. ValueError for a value that the store cannot hold."""
    kept = list(rows)
    data = {name: [_some(column.encode, row[name]) for row in kept] for name, column in columns.items()}
    return pl.DataFrame(data, schema={name: column.dtype for name, column in columns.items()})


def snapshot_frame(rows: Iterable[Row], columns: Columns, at: datetime, version: int) -> pl.DataFrame:
    """Rows of one snapshot as a batch, each with its instant and version."""
    stamp = {"observed_at": at, "version": version}
    return encoded(({**row, **stamp} for row in rows), {**columns, **SNAPSHOT})


def decoded(store: Store, query: str, columns: Columns, **parameters: int | str) -> Iterator[dict[str, Any]]:
    """The rows that a named query answers, as the domain's values."""
    for row in store.frame(query, (), **parameters).iter_rows(named=True):
        yield {name: _some(column.decode, row[name]) for name, column in columns.items()}


def _some(convert: Callable[[Any], Any], value: Any) -> Any:
    return None if value is None else convert(value)
