"""Digests of positions: the store keeps them, so they outlive the libraries that made them."""

from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal

import pytest
from xxhash import xxh3_64_intdigest

from analytics_service.market.positions import Account, Balance, Holding, Position, Stake
from analytics_service.store.datasets.positions import digests_of
from tests.stored import item_frame

STAKE = Stake(3, 2, 9, True, datetime(2026, 1, 1, tzinfo=UTC), Decimal("0.5"))
HELD = (Holding("native;a", 1),)


def of(**parts: object) -> Position:
    return Position("someone", **parts)  # type: ignore[arg-type]


def test_a_digest_is_made_from_these_bytes_in_any_order() -> None:
    items = item_frame([of(wallet=(Balance("native;usdc", 7),), stakes=(STAKE,)), Position("nobody")])
    wallet = xxh3_64_intdigest(b"wallet|0|0|0|7|false||0.000000000000000000|||native;usdc")
    stake = xxh3_64_intdigest(b"stake|2|3|0|9|true|1767225600|0.500000000000000000|||")
    assert wallet == 1585440874995925013
    assert digests_of(items).rows() == [("someone", wallet ^ stake)]
    assert digests_of(items.reverse()).rows() == [("someone", wallet ^ stake)]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (of(wallet=(Balance("native;a", 11),)), of(wallet=(Balance("native;a|1", 1),))),
        (of(accounts=(Account(1, HELD, ()),)), of(accounts=(Account(1, (), HELD),))),
        (
            of(accounts=(Account(1, HELD, ()),)),
            of(accounts=(Account(1, (replace(HELD[0], liquidation_ltv=Decimal(0)),)),)),
        ),
        (
            of(accounts=(Account(1, (replace(HELD[0], liquidation_ltv=Decimal(1)),)),)),
            of(accounts=(Account(1, (replace(HELD[0], allowable_ltv=Decimal(1)),)),)),
        ),
        (of(accounts=(Account(1, (), ()),)), of(accounts=(Account(11, (), ()),))),
        (of(unclaimed=5), of(claimable_rewards=5)),
        # Equal items are numbered, so two of them do not cancel out.
        (of(unclaimed=5, stakes=(STAKE,)), of(unclaimed=5, stakes=(STAKE,) * 3)),
        (of(unclaimed=5), of(unclaimed=5, stakes=(STAKE,) * 2)),
    ],
)
def test_different_positions_have_different_digests(one: Position, other: Position) -> None:
    assert digests_of(item_frame([one]))["digest"][0] != digests_of(item_frame([other]))["digest"][0]
