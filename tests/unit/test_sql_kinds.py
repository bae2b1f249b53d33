"""Which types the columns of a source's views may have, and what their values become."""

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest

from analytics_service.errors import OutOfRange
from analytics_service.market.events import Action
from analytics_service.market.kinds import Amount, AssetId, ColumnType, Flag, Number, Text, Texts, Time, Word


@pytest.mark.parametrize(
    ("kind", "exact", "others"),
    [
        (
            Text(),
            ["String", "LowCardinality(String)", "LowCardinality(Nullable(String))", "Enum8('a' = 1)", "UUID"],
            ["UInt8", "FixedString(4)", "Array(String)"],
        ),
        (
            Amount(),
            ["UInt8", "Int64", "UInt256", "Nullable(UInt256)", "Decimal(76, 0)", "String"],
            ["Float64", "Decimal(38, 18)", "BFloat16", "Bool"],
        ),
        (
            Number(),
            ["Decimal(38, 18)", "Nullable(Decimal(9, 2))", "UInt64", "Int8", "LowCardinality(String)"],
            ["Float32", "Nullable(Float64)", "DateTime"],
        ),
        (Flag(), ["Bool", "UInt8", "Nullable(Bool)"], ["String", "UInt64"]),
        (
            Time(),
            ["DateTime", "DateTime('UTC')", "DateTime64(3)", "Nullable(DateTime64(9, 'Asia/Kathmandu'))"],
            ["UInt32", "Date", "String", "Int64"],
        ),
        (
            Texts(),
            ["Array(String)", "Array(LowCardinality(String))"],
            ["String", "Array(UInt8)", "Array(Nullable(String))"],
        ),
    ],
)
def test_a_type_is_read_only_if_it_is_exact(kind: ColumnType, exact: list[str], others: list[str]) -> None:
    assert [name for name in exact + others if kind.fits(name)] == exact


@pytest.mark.parametrize(
    ("kind", "stored", "value"),
    [
        (Amount(), "115792089237316195423570985008687907853269984665640564039457584007913129639935", 2**256 - 1),
        (Number(), "0.000000000000000001", Decimal(1).scaleb(-18)),
        (Number(), "-1.50", Decimal("-1.5")),
        (Flag(), 1, True),
        (Time(), 1_772_366_400_250_000, datetime(2026, 3, 1, 12, 0, 0, 250_000, UTC)),
        (Word(of=Action), "borrow", Action.BORROW),
        (Word(of=Action), "", None),
        (Texts(), ["a", "b"], ("a", "b")),
        (AssetId(), "native;ua", "native;ua"),
    ],
)
def test_a_value_keeps_every_digit(kind: ColumnType, stored: Any, value: object) -> None:
    assert kind.read(stored) == value


@pytest.mark.parametrize(
    ("kind", "stored", "message"),
    [
        (Amount(), "1.0", "must be a whole number"),
        (Amount(), "1_000", "must be a whole number"),
        (Number(), "1,5", r"must be a decimal number, such as 1572\.5"),
        (Word(of=Action), "lending", "must be one of borrow_flash_loan, return_flash_loan, "),
    ],
)
def test_a_value_that_is_none_is_explained(kind: ColumnType, stored: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        kind.read(stored)


def test_an_id_must_be_that_of_an_asset() -> None:
    with pytest.raises(OutOfRange, match="must be native;<denom> or token;<address>"):
        AssetId().read("ua")
