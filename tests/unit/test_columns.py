"""Values that the store cannot hold are refused by name, and never wrapped around."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest

from analytics_service.errors import OutOfRange
from analytics_service.market.positions import Account, Balance, Holding, Position, Unbonding
from analytics_service.market.ptoken import MemberClass
from analytics_service.store.columns import AMOUNT, ASSET_ID, COUNT, INDEX, RATIO, TEXT, TIME, Column, encoded, word
from analytics_service.store.positions import item_frame

FIRST, LAST = datetime(1970, 1, 1, tzinfo=UTC), datetime(2106, 2, 7, 6, 28, 15, tzinfo=UTC)


@pytest.mark.parametrize(
    ("column", "least", "greatest"), [(INDEX, 0, 2**32 - 1), (COUNT, 0, 2**64 - 1), (TIME, FIRST, LAST)]
)
def test_the_least_and_the_greatest_value_are_stored(column: Column, least: object, greatest: object) -> None:
    rows = encoded([{"x": least}, {"x": greatest}, {"x": None}], {"x": column.or_null})["x"].to_list()
    assert [value if value is None else column.decode(value) for value in rows] == [least, greatest, None]


@pytest.mark.parametrize(
    ("column", "value", "named"),
    [
        (INDEX, -1, "-1 cannot be stored"),
        (INDEX, 2**32, "4294967296 cannot be stored"),
        (COUNT, -1, "-1 cannot be stored"),
        (COUNT, 2**64, "18446744073709551616 cannot be stored"),
        (AMOUNT, Decimal("1.5"), r"1\.5 is a Decimal; amounts are int, in denom units"),
        (AMOUNT, True, "True is a bool; amounts are int"),
        (INDEX, Decimal(1), "1 is a Decimal; it must be an int"),
        (TIME, FIRST - timedelta(microseconds=1), "1969-12-31 23:59:59.999999"),
        (TIME, LAST + timedelta(seconds=1), "2106-02-07 06:28:16"),
    ],
)
def test_others_are_refused_by_name(column: Column, value: object, named: str) -> None:
    with pytest.raises(OutOfRange, match=named):
        encoded([{"x": value}], {"x": column})


@pytest.mark.parametrize("asset_id", ["", "native;", "erc20;gone", 7])
def test_an_id_that_no_page_could_show_is_refused(asset_id: object) -> None:
    with pytest.raises(OutOfRange, match="is not the id of an asset: it must be native;<denom> or token;<address>"):
        encoded([{"asset_id": asset_id}], {"asset_id": ASSET_ID})


def test_a_word_that_could_not_be_read_again_is_refused() -> None:
    column = word(MemberClass)
    assert encoded([{"x": MemberClass.TEAM}, {"x": "advisor"}], {"x": column})["x"].to_list() == ["team", "advisor"]
    with pytest.raises(OutOfRange, match="'founder' is none of team, advisor, investor"):
        encoded([{"x": "founder"}], {"x": column})


@pytest.mark.parametrize("apr", [Decimal("NaN"), 0.5, [1], None])
def test_a_message_says_whose_value_it_is(apr: object) -> None:
    rows = [{"id": "1", "asset_id": "token;a", "apr": Decimal(1)}, {"id": "2", "asset_id": "token;b", "apr": apr}]
    with pytest.raises(OutOfRange, match=r"^apr of id 2, asset_id token;b: ") as refused:
        encoded(rows, {"id": TEXT, "asset_id": ASSET_ID, "apr": RATIO})
    assert str(apr) in str(refused.value)


@pytest.mark.parametrize(
    "position",
    [
        Position("someone", wallet=(Balance("usdc", 1),)),
        Position("someone", wallet=(Balance("native;usdc", -1),)),
        Position("someone", (Account(2**40, (Holding("native;a", 1),), ()),)),
        Position("someone", (Account(-1, (), ()),)),
        Position("someone", unbondings=(Unbonding(1, datetime(2200, 1, 1, tzinfo=UTC)),)),
    ],
)
def test_a_position_that_cannot_be_stored_is_refused_by_its_address(position: Position) -> None:
    with pytest.raises(OutOfRange, match=r"^The position of someone: "):
        item_frame([Position("other", wallet=(Balance("native;usdc", 1),)), position])
