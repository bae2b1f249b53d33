"""Column types: the meaning of a field, its types in ClickHouse and Polars, and the types that a source's view may use.

A record declares a field once: `principal: Annotated[int, Amount("Amount owed to lenders, in denom units")]`. Tables,
their comments, the views of a source, and checks of types and ranges follow.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from datetime import datetime, timedelta
from decimal import Decimal
from enum import StrEnum
from functools import cache, lru_cache
from operator import attrgetter
from types import NoneType
from typing import Annotated, Any, ClassVar, TypeVar, get_args, get_origin, get_type_hints

import polars as pl

from analytics_service.errors import OutOfRange
from analytics_service.market.decimals import DECIMALS, quantize, quantize_below_limit
from analytics_service.market.instants import EPOCH, from_unix, unix_second

DECIMAL = pl.Decimal(38, DECIMALS)
"""The Polars type of prices, rates and ratios."""
AMOUNT_LIMIT = 2**256
TIME_LIMIT = 2**32
# The last instant that can be stored: the greatest UInt32.
FOREVER = TIME_LIMIT - 1
# The APY of the greatest APR has 44 digits before the decimal point. At the lowest APR, all is lost within a year.
RATE_LIMIT, LOWEST_RATE = Decimal(100), Decimal(-1)
_WHOLE = re.compile(r"-?[0-9]+")
_WRAPPED = re.compile(r"(?:Nullable|LowCardinality)\((.*)\)")


class AssetGroup(StrEnum):
    """The domain in which an asset's key is unique."""

    NATIVE = "native"
    TOKEN = "token"


def split_id(asset_id: str) -> tuple[AssetGroup, str]:
    """The group and key of an asset id. ValueError if it is malformed."""
    group, separator, key = asset_id.partition(";")
    if not separator or not key:
        raise ValueError(f"{asset_id!r} is not of the form <group>;<group_key>")
    return AssetGroup(group), key


@lru_cache(maxsize=10_000)
def _checked_id(asset_id: str) -> str:
    try:
        split_id(asset_id)
    except (ValueError, AttributeError):
        raise OutOfRange(
            f"{asset_id!r} is not the id of an asset: it must be native;<denom> or token;<address>."
        ) from None
    return asset_id


def type_of(value: object) -> str:
    """The type of a value with its article, such as `an int`, or `None`."""
    return "None" if value is None else with_article(type(value))


def with_article(kind: type) -> str:
    """The name of a type with its article, such as `an int`."""
    return f"{'an' if kind.__name__[0] in 'aeiouAEIOU' else 'a'} {kind.__name__}"


@dataclass(frozen=True)
class ColumnType:
    """Base of all column types.

    `meaning` is the comment of the field's columns, with the unit. `column` is their name if it differs from the
    field's. `nullable` and the Python type `of` come from the record.
    """

    meaning: str = ""
    column: str = ""
    nullable: bool = False
    of: Any = str

    dtype: ClassVar[type[pl.DataType] | pl.DataType] = pl.String
    # ClickHouse's type, and its stand-in for a missing value if that is not NULL.
    sql: ClassVar[str] = "String"
    nothing: ClassVar[str | None] = None
    # The types that a column of a source's view may have, in words and as a pattern, and how a query selects it from
    # `v`: as text or as a whole number, so that nothing is rounded.
    allowed: ClassVar[str] = "String"
    pattern: ClassVar[str] = r"String|Enum(8|16)\(.*\)|UUID"
    select: ClassVar[str] = "toString(v.{})"

    def encode(self, value: Any, /) -> Any:
        """The value for the store. OutOfRange, or an error for a wrong type, if it cannot be stored."""
        return value

    def decode(self, stored: Any, /) -> Any:
        """The domain value of a stored value."""
        return stored

    def read(self, selected: Any, /) -> Any:
        """The domain value of a value that `select` returns. ValueError or OutOfRange says what is wrong."""
        return selected

    def fits(self, type_name: str) -> bool:
        """Whether a column of a source's view may have this type, which may be Nullable or LowCardinality."""
        while wrapped := _WRAPPED.fullmatch(type_name):
            type_name = wrapped[1]
        return re.fullmatch(self.pattern, type_name) is not None


class Text(ColumnType):
    """Text. In a source's view, an empty text of a nullable field is a missing value."""

    def read(self, selected: str, /) -> str | None:
        return selected or None if self.nullable else selected


class Texts(ColumnType):
    dtype = pl.List(pl.String)
    sql = allowed = "Array(String)"
    pattern = r"Array\((LowCardinality\()?String\)+"
    select = "v.{}"

    def encode(self, texts: Iterable[str], /) -> list[str]:
        return list(texts)

    def read(self, selected: Iterable[str], /) -> tuple[str, ...]:
        return tuple(selected)


class Address(ColumnType):
    """An address, stored in lower case."""

    def encode(self, address: str, /) -> str:
        return str.lower(address)


class AssetId(Text):
    """The id of an asset: `native;<denom>` or `token;<address>`."""

    @staticmethod
    def encode(asset_id: str, /) -> str:
        return _checked_id(asset_id)

    def read(self, selected: str, /) -> str | None:
        return None if self.nullable and not selected else self.encode(selected)


class Word(ColumnType):
    """A member of the enum that is the field's type; an empty text is a missing value."""

    nothing = ""

    def encode(self, value: str, /) -> str:
        if self.nullable and not value:
            return self.nothing
        try:
            return str(self.of(value))
        except ValueError:
            raise OutOfRange(f"{value!r} must be one of {', '.join(self.of)}.") from None

    def decode(self, stored: str, /) -> StrEnum | None:
        return self.of(stored) if stored else None

    def read(self, selected: str, /) -> StrEnum | None:
        try:
            return self.decode(selected)
        except ValueError:
            raise ValueError(f"must be one of {', '.join(self.of)}") from None


class Flag(ColumnType):
    dtype = pl.Boolean
    sql = allowed = "Bool"
    pattern = "Bool|UInt8"
    select = "toUInt8(v.{})"

    def read(self, selected: int, /) -> bool:
        return bool(selected)


class _Whole(ColumnType):
    allowed = "a whole number, such as UInt256, or String"
    pattern = r"U?Int\d+|Decimal\(\d+, 0\)|String"

    @staticmethod
    def read(selected: str, /) -> int:
        if not _WHOLE.fullmatch(selected):
            raise ValueError("must be a whole number")
        return int(selected)


class Amount(_Whole):
    """An amount in denom units. Polars cannot hold its 256 bits, so it is encoded as a string of digits."""

    sql = "UInt256"

    @staticmethod
    def encode(amount: int, /) -> str:
        """The digits. OutOfRange outside [0, 2^256), which ClickHouse would silently wrap around."""
        if type(amount) is not int:
            raise OutOfRange(f"{amount} is {type_of(amount)}; amounts are int, in denom units.")
        if not 0 <= amount < AMOUNT_LIMIT:
            raise OutOfRange(f"{amount} is not an amount: it must not be negative, and be below 2^256.")
        return str(amount)

    def decode(self, stored: str, /) -> int:
        return int(stored)


class Count(_Whole):
    """A whole number of 64 bits."""

    dtype: ClassVar[type[pl.DataType] | pl.DataType] = pl.UInt64
    sql = "UInt64"
    limit: ClassVar[int] = 2**64

    @classmethod
    def encode(cls, number: int, /) -> int:
        if type(number) is not int:
            raise OutOfRange(f"{number} is {type_of(number)}; it must be an int.")
        if not 0 <= number < cls.limit:
            raise OutOfRange(f"{number} cannot be stored: it must not be negative, and be below {cls.limit}.")
        return number


class Index(Count):
    """A whole number of 32 bits."""

    dtype = pl.UInt32
    sql = "UInt32"
    limit = 2**32


class Places(Count):
    dtype = pl.UInt8
    sql = "UInt8"
    limit = 2**8


class Number(ColumnType):
    """A number with 18 decimals, rounded half to even, in (-10^20, 10^20)."""

    dtype = DECIMAL
    sql = "Decimal(38, 18)"
    allowed = "Decimal(38, 18) or another Decimal, a whole number, or String"
    pattern = r"Decimal\(\d+, \d+\)|U?Int\d+|String"

    @staticmethod
    def encode(number: Decimal, /) -> Decimal:
        stored = quantize_below_limit(number)
        if stored is None:
            raise OutOfRange(f"{number} is not a number that can be stored: it must be finite and below 10^20.")
        return stored

    @staticmethod
    def read(selected: str, /) -> Decimal:
        try:
            return Decimal(selected)
        except ArithmeticError:
            raise ValueError("must be a decimal number, such as 1572.5") from None


class Ratio(Number):
    """A fraction: 0.05 means 5 %. It is rarely above 1."""


class Usd(Number):
    """A value in USD."""


class PriceType(Usd):
    """USD per standard unit (rule 2.12, whole seconds)."""

    @staticmethod
    def encode(usd: Decimal, /) -> Decimal:
        """The rounded price. OutOfRange outside [0, 10^20)."""
        price = quantize_below_limit(usd)
        if price is None or price < 0:
            raise OutOfRange(f"{usd} is not a price: it must be finite, not negative and below 10^20.")
        return price


class Rate(Number):
    """An APR: a fraction per year, without compounding."""

    @staticmethod
    def encode(apr: Decimal, /) -> Decimal:
        """The rounded APR. OutOfRange outside [-1, 100]."""
        if not apr.is_finite() or not LOWEST_RATE <= apr <= RATE_LIMIT:
            raise OutOfRange(f"{apr} is not an APR: it must be a fraction from {LOWEST_RATE} to {RATE_LIMIT}.")
        return quantize(apr)


class Time(ColumnType):
    """An instant, stored in whole seconds."""

    dtype = pl.UInt32
    sql = "DateTime('UTC')"
    allowed = "DateTime or DateTime64"
    pattern = r"DateTime(64)?(\(.*\))?"
    select = "toUnixTimestamp64Micro(toDateTime64(v.{}, 6, 'UTC'))"

    @staticmethod
    def encode(at: datetime, /) -> int:
        """The unix second of an aware instant. OutOfRange if ClickHouse's DateTime cannot hold it."""
        second = unix_second(at)
        if not 0 <= second < TIME_LIMIT:
            raise OutOfRange(f"{at} cannot be stored: times must be from 1970-01-01 to 2106-02-07T06:28:15Z.")
        return second

    def decode(self, stored: int, /) -> datetime:
        return from_unix(stored)

    @staticmethod
    def read(selected: int, /) -> datetime:
        """The instant of unix microseconds."""
        return EPOCH + timedelta(microseconds=selected)


_R = TypeVar("_R")


@cache
def kinds_of(record: Any) -> Mapping[str, Any]:
    """The column type of each field, completed by the field's name and type; for a nested record, its class."""
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


def columns_of(record: Any) -> Mapping[str, ColumnType]:
    """The column types of a record's fields and its nested records' fields, by column. Fields without a column type are
    not columns."""
    columns: dict[str, ColumnType] = {}
    for kind in kinds_of(record).values():
        columns |= {kind.column: kind} if isinstance(kind, ColumnType) else dict(columns_of(kind))
    return columns


def row_of(record: Any) -> dict[str, Any]:
    of: Any = type(record)
    return {column: value(record) for column, value in _getters(of).items()}


def record_of(record: Callable[..., _R], row: Mapping[str, Any], **others: Any) -> _R:
    """The record with the values of a row; `others` are fields without a column type."""
    values = {
        name: row[kind.column] if isinstance(kind, ColumnType) else record_of(kind, row)
        for name, kind in kinds_of(record).items()
    }
    return record(**values, **others)


@cache
def _getters(record: Any, path: str = "") -> Mapping[str, Callable[[Any], Any]]:
    getters: dict[str, Callable[[Any], Any]] = {}
    for name, kind in kinds_of(record).items():
        if isinstance(kind, ColumnType):
            getters[kind.column] = attrgetter(path + name)
        else:
            getters |= _getters(kind, f"{path}{name}.")
    return getters
