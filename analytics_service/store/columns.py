"""Kinds of columns: how values of the domain are sent to ClickHouse and read back.

Amounts have up to 256 bits, which Polars cannot hold, so they are text in both directions.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from operator import attrgetter
from typing import Any

import polars as pl

from analytics_service.errors import OutOfRange
from analytics_service.market.instants import instant, unix_second
from analytics_service.market.values import quantized_below

AMOUNT_LIMIT = 2**256
RATIO_LIMIT = Decimal(10) ** 20
TIME_LIMIT = 2**32
# Columns that say when something was observed, or happened.
TIMES = ("observed_at", "at")


def _itself(value: Any) -> Any:
    return value


@dataclass(frozen=True, slots=True)
class Column:
    """A kind of column: its type in Polars, and how a value that is not null is encoded and decoded."""

    dtype: type[pl.DataType] | pl.DataType
    encode: Callable[[Any], Any] = _itself
    decode: Callable[[Any], Any] = _itself


def amount_text(amount: int) -> str:
    """A whole amount as text. OutOfRange outside [0, 2^256), which ClickHouse would silently wrap around."""
    if not 0 <= amount < AMOUNT_LIMIT:
        raise OutOfRange(f"{amount} is not an amount: it must not be negative, and be below 2^256.")
    return str(amount)


def quantize_ratio(ratio: Decimal) -> Decimal:
    """The number with 18 decimals, rounded half to even. OutOfRange outside (-10^20, 10^20)."""
    stored = quantized_below(ratio, RATIO_LIMIT)
    if stored is None:
        raise OutOfRange(f"{ratio} is not a number that can be stored: it must be finite and below 10^20.")
    return stored


def stored_second(at: datetime) -> int:
    """The unix second of an aware instant. OutOfRange outside of those that ClickHouse's DateTime holds."""
    second = unix_second(at)
    if not 0 <= second < TIME_LIMIT:
        raise OutOfRange(f"{at} cannot be stored: times must be from 1970-01-01 to 2106-02-07T06:28:15Z.")
    return second


def _whole(limit: int) -> Callable[[int], int]:
    def checked(number: int) -> int:
        if not 0 <= number < limit:
            raise OutOfRange(f"{number} cannot be stored: it must not be negative, and be below {limit}.")
        return number

    return checked


TEXT = Column(pl.String)
FLAG = Column(pl.Boolean)
COUNT = Column(pl.UInt64, _whole(2**64))
INDEX = Column(pl.UInt32, _whole(2**32))
AMOUNT = Column(pl.String, amount_text, int)
RATIO = Column(pl.Decimal(38, 18), quantize_ratio)
TIME = Column(pl.UInt32, stored_second, instant)

Columns = Mapping[str, Column]
Row = Mapping[str, Any]


def fields_of(record: Any) -> dict[str, Any]:
    """The fields of a dataclass record by name; nested records stay records."""
    return {name: getattr(record, name) for name in record.__dataclass_fields__}


def schema_of(columns: Columns) -> dict[str, type[pl.DataType] | pl.DataType]:
    """The Polars types of columns by name."""
    return {name: column.dtype for name, column in columns.items()}


def select_list(columns: Columns) -> str:
    """The columns as a query selects them: amounts as text."""
    return ", ".join(f"toString({name}) AS {name}" if column is AMOUNT else name for name, column in columns.items())


def encoded(rows: Iterable[Row], columns: Columns) -> pl.DataFrame:
    """Rows of the domain's values as a batch to insert. OutOfRange for a value that the store cannot hold."""
    kept = list(rows)
    data = {name: _encoded(column, [row[name] for row in kept]) for name, column in columns.items()}
    return pl.DataFrame(data, schema=schema_of(columns))


def encoded_records(records: Sequence[Any], columns: Columns) -> pl.DataFrame:
    """Records, with an attribute for each column, as a batch to insert; faster than `encoded` where there are many."""
    data = {name: _encoded(column, list(map(attrgetter(name), records))) for name, column in columns.items()}
    return pl.DataFrame(data, schema=schema_of(columns))


def decoded(row: Row, columns: Columns) -> dict[str, Any]:
    """A stored row as values of the domain."""
    return {name: None if row[name] is None else column.decode(row[name]) for name, column in columns.items()}


def versioned(rows: pl.DataFrame, version: int) -> pl.DataFrame:
    """Rows with the version of the run that writes them."""
    return rows.with_columns(version=pl.lit(version, pl.UInt64))


def _encoded(column: Column, values: list[Any]) -> list[Any]:
    encode = column.encode
    return values if encode is _itself else [None if value is None else encode(value) for value in values]
