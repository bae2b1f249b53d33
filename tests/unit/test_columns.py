"""Values that the store cannot hold are refused by name, and never wrapped around."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest

from analytics_service.clickhouse.columns import encode_rows
from analytics_service.errors import OutOfRange
from analytics_service.market.kinds import Amount, AssetId, ColumnType, Count, Index, Ratio, Text, Time, Word
from analytics_service.market.positions import Account, Balance, Holding, Position, Unbonding
from analytics_service.market.ptoken import MemberClass
from tests.stored import item_frame

FIRST, LAST = datetime(1970, 1, 1, tzinfo=UTC), datetime(2106, 2, 7, 6, 28, 15, tzinfo=UTC)


@pytest.mark.parametrize(
    ("kind", "least", "greatest"), [(Index, 0, 2**32 - 1), (Count, 0, 2**64 - 1), (Time, FIRST, LAST)]
)
def test_the_least_and_the_greatest_value_are_stored(kind: type[ColumnType], least: object, greatest: object) -> None:
    rows = encode_rows([{"x": least}, {"x": greatest}, {"x": None}], {"x": kind(nullable=True)})["x"].to_list()
    assert [value if value is None else kind().decode(value) for value in rows] == [least, greatest, None]


@pytest.mark.parametrize(
    ("kind", "value", "named"),
    [
        (Index, -1, "-1 cannot be stored"),
        (Index, 2**32, "4294967296 cannot be stored"),
        (Count, -1, "-1 cannot be stored"),
        (Count, 2**64, "18446744073709551616 cannot be stored"),
        (Amount, Decimal("1.5"), r"1\.5 is a Decimal; amounts are int, in denom units"),
        (Amount, True, "True is a bool; amounts are int"),
        (Index, Decimal(1), "1 is a Decimal; it must be an int"),
        (Time, FIRST - timedelta(microseconds=1), "1969-12-31 23:59:59.999999"),
        (Time, LAST + timedelta(seconds=1), "2106-02-07 06:28:16"),
    ],
)
def test_others_are_refused_by_name(kind: type[ColumnType], value: object, named: str) -> None:
    with pytest.raises(OutOfRange, match=named):
        encode_rows([{"x": value}], {"x": kind()})


@pytest.mark.parametrize("asset_id", ["", "native;", "erc20;gone", 7])
def test_an_id_that_no_page_could_show_is_refused(asset_id: object) -> None:
    with pytest.raises(OutOfRange, match="is not the id of an asset: it must be native;<denom> or token;<address>"):
        encode_rows([{"asset_id": asset_id}], {"asset_id": AssetId()})


def test_a_word_that_could_not_be_read_again_is_refused() -> None:
    column = Word(of=MemberClass)
    assert encode_rows([{"x": MemberClass.TEAM}, {"x": "advisor"}], {"x": column})["x"].to_list() == ["team", "advisor"]
    with pytest.raises(OutOfRange, match="'founder' must be one of team, advisor, investor"):
        encode_rows([{"x": "founder"}], {"x": column})


@pytest.mark.parametrize("apr", [Decimal("NaN"), 0.5, [1], None])
def test_a_message_says_whose_value_it_is(apr: object) -> None:
    rows = [{"id": "1", "asset_id": "token;a", "apr": Decimal(1)}, {"id": "2", "asset_id": "token;b", "apr": apr}]
    with pytest.raises(OutOfRange, match=r"^apr of id 2, asset_id token;b: ") as refused:
        encode_rows(rows, {"id": Text(), "asset_id": AssetId(), "apr": Ratio()})
    assert str(apr) in str(refused.value)


@pytest.mark.parametrize(
    "position",
    [
        Position("someone", wallet=(Balance("usdc", 1),)),
        Position("someone", wallet=(Balance("native;usdc", -1),)),
        Position("someone", (Account(2**40, (Holding("native;a", 1),), ()),)),
        Position("someone", (Account(-1, (), ()),)),
        Position("someone", (Account(0, (Holding("native;a", 1, liquidation_ltv=Decimal(10) ** 20),)),)),
        Position("someone", (Account(0, (Holding("native;a", 1, Decimal("NaN")),)),)),
        Position("someone", unbondings=(Unbonding(1, datetime(2200, 1, 1, tzinfo=UTC)),)),
    ],
)
def test_a_position_that_cannot_be_stored_is_left_out(position: Position) -> None:
    unfit: list[Position] = []
    items = item_frame([Position("other", wallet=(Balance("native;usdc", 1),)), position], unfit)
    assert (items["address"].to_list(), unfit) == (["other"], [position])
