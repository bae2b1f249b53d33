"""Kinds of columns: how values of the domain are sent to ClickHouse and read back.

Amounts have up to 256 bits, which Polars cannot hold, so they are strings of digits in both directions.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal
from enum import StrEnum
from functools import lru_cache
from operator import attrgetter
from typing import Any

import polars as pl

from analytics_service.errors import OutOfRange
from analytics_service.market.assets import split_id
from analytics_service.market.instants import instant, unix_second
from analytics_service.market.prices import quantize_price
from analytics_service.market.rates import quantize_rate
from analytics_service.market.values import DECIMALS, quantized_below_limit

DECIMAL = pl.Decimal(38, DECIMALS)
"""The type of prices, rates and ratios."""
AMOUNT_LIMIT = 2**256
TIME_LIMIT = 2**32
# Columns whose values identify the row in a message about a value that cannot be stored.
_NAMING = ("id", "asset_id", "address", "contract", "arrangement", "pool")
# Raised for values that a column cannot hold, wrong types included.
_UNFIT = (OutOfRange, TypeError, ValueError, AttributeError, OverflowError, ArithmeticError, pl.exceptions.PolarsError)
# Columns with the time of an observation or an event.
TIMES = ("observed_at", "at")


def _identity(value: Any) -> Any:
    return value


@dataclass(frozen=True, slots=True)
class Column:
    """A kind of column: its type in Polars, how values other than null are encoded and decoded, and whether values may
    be null."""

    dtype: type[pl.DataType] | pl.DataType
    encode: Callable[[Any], Any] = _identity
    decode: Callable[[Any], Any] = _identity
    nullable: bool = False

    @property
    def or_null(self) -> "Column":
        """The same column, nullable."""
        return replace(self, nullable=True)


def type_of(value: object) -> str:
    """The type of a value in words, such as `an int`; None is its own."""
    return "None" if value is None else with_article(type(value))


def with_article(kind: type) -> str:
    """The name of a type, such as `an int`."""
    return f"{'an' if kind.__name__[0] in 'aeiouAEIOU' else 'a'} {kind.__name__}"


def amount_digits(amount: int) -> str:
    """A whole amount as digits. OutOfRange for other numbers, and outside [0, 2^256), which ClickHouse would silently
    wrap around."""
    if type(amount) is not int:
        raise OutOfRange(f"{amount} is {type_of(amount)}; amounts are int, in denom units.")
    if not 0 <= amount < AMOUNT_LIMIT:
        raise OutOfRange(f"{amount} is not an amount: it must not be negative, and be below 2^256.")
    return str(amount)


def quantize_ratio(ratio: Decimal) -> Decimal:
    """The number with 18 decimals, rounded half to even. OutOfRange outside (-10^20, 10^20)."""
    stored = quantized_below_limit(ratio)
    if stored is None:
        raise OutOfRange(f"{ratio} is not a number that can be stored: it must be finite and below 10^20.")
    return stored


def stored_second(at: datetime) -> int:
    """The unix second of an aware instant. OutOfRange if ClickHouse's DateTime cannot hold it."""
    second = unix_second(at)
    if not 0 <= second < TIME_LIMIT:
        raise OutOfRange(f"{at} cannot be stored: times must be from 1970-01-01 to 2106-02-07T06:28:15Z.")
    return second


def _integer_below(limit: int) -> Callable[[int], int]:
    def checked(number: int) -> int:
        if type(number) is not int:
            raise OutOfRange(f"{number} is {type_of(number)}; it must be an int.")
        if not 0 <= number < limit:
            raise OutOfRange(f"{number} cannot be stored: it must not be negative, and be below {limit}.")
        return number

    return checked


@lru_cache(maxsize=10_000)
def checked_id(asset_id: str) -> str:
    """The id of an asset. OutOfRange unless it is `native;<denom>` or `token;<address>`."""
    try:
        split_id(asset_id)
    except (ValueError, AttributeError):
        raise OutOfRange(
            f"{asset_id!r} is not the id of an asset: it must be native;<denom> or token;<address>."
        ) from None
    return asset_id


def word(words: type[StrEnum]) -> "Column":
    """The kind of a column that holds a member of an enum."""

    def checked(value: str) -> str:
        try:
            return str(words(value))
        except ValueError:
            raise OutOfRange(f"{value!r} is none of {', '.join(words)}.") from None

    return Column(pl.String, checked, words)


TEXT = Column(pl.String)
ASSET_ID = Column(pl.String, checked_id)
FLAG = Column(pl.Boolean)
COUNT = Column(pl.UInt64, _integer_below(2**64))
INDEX = Column(pl.UInt32, _integer_below(2**32))
BYTE = Column(pl.UInt8, _integer_below(2**8))
AMOUNT = Column(pl.String, amount_digits, int)
RATIO = Column(DECIMAL, quantize_ratio)
RATE = Column(DECIMAL, quantize_rate)
PRICE = Column(DECIMAL, quantize_price)
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
    """The columns as a query selects them: amounts as strings."""
    return ", ".join(
        f"toString({name}) AS {name}" if column.encode is amount_digits else name for name, column in columns.items()
    )


def encoded(rows: Iterable[Row], columns: Columns) -> pl.DataFrame:
    """Rows of the domain's values as a batch to insert. OutOfRange, identifying the row, for a value that the store
    cannot hold."""
    kept = list(rows)
    return _frame({name: [row[name] for row in kept] for name in columns}, columns)


def encoded_records(records: Sequence[Any], columns: Columns) -> pl.DataFrame:
    """Records, with an attribute for each column, as a batch to insert; faster than `encoded` for many rows."""
    return _frame({name: list(map(attrgetter(name), records)) for name in columns}, columns)


def decoded(row: Row, columns: Columns) -> dict[str, Any]:
    """A stored row as values of the domain."""
    return {name: None if row[name] is None else column.decode(row[name]) for name, column in columns.items()}


def versioned(rows: pl.DataFrame, version: int) -> pl.DataFrame:
    """Rows with the version of the run that writes them."""
    return rows.with_columns(version=pl.lit(version, pl.UInt64))


def _frame(data: Mapping[str, list[Any]], columns: Columns) -> pl.DataFrame:
    return pl.DataFrame([_series(name, columns[name], values, data) for name, values in data.items()])


def _series(name: str, column: Column, values: list[Any], data: Mapping[str, list[Any]]) -> pl.Series:
    try:
        return _fit(name, column, values)
    except _UNFIT:
        for index, value in enumerate(values):
            _require_fit(name, column, value, {key: data[key][index] for key in _NAMING if key in data})
        raise


def _require_fit(name: str, column: Column, value: Any, naming: Mapping[str, Any]) -> None:
    """OutOfRange, identifying the row, for a value that the column cannot hold."""
    try:
        _fit(name, column, [value])
    except _UNFIT as error:
        whose = ", ".join(f"{key} {identifier}" for key, identifier in naming.items() if key != name)
        reason = error if isinstance(error, OutOfRange) else f"{value!r} cannot be stored: {error}"
        raise OutOfRange(f"{name}{f' of {whose}' if whose else ''}: {reason}") from error


def _fit(name: str, column: Column, values: list[Any]) -> pl.Series:
    series = pl.Series(name, _encoded(column, values), dtype=column.dtype)
    if series.has_nulls() and not column.nullable:
        raise OutOfRange("None cannot be stored: there must be a value.")
    return series


def _encoded(column: Column, values: list[Any]) -> list[Any]:
    encode = column.encode
    return values if encode is _identity else [None if value is None else encode(value) for value in values]
