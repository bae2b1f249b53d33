"""A user position in responses, with the round numbers of the small protocol worked out by hand."""

from dataclasses import replace

from analytics_service.market.portfolio import Unlocks
from analytics_service.market.ptoken import unlock_amounts, unlock_groups
from analytics_service.present.positions import USER_POSITION
from analytics_service.present.ptoken import UNLOCKS_DISTRIBUTION, USER_UNLOCKS, UnlocksDistribution
from analytics_service.present.shapes import Flags, Scope
from tests.unit.rendering import USER, rendered
from tests.unit.small_protocol import ASSETS, AT, PRICES, PTK, RECEIPT, arrangement


def test_a_borrow_account_and_one_without_debt() -> None:
    account, free, _ = rendered(USER_POSITION, USER)["markets"]["borrow"]["accounts"]
    (collateral,) = account["collaterals"]
    assert (collateral["principal"], collateral["shares"]) == ("50000000", "40000000")
    assert collateral["extra"] == {
        "text": {"principal": "50.000 ORB", "shares": "40.000 ORB"},
        "value": {
            "principal": "400",
            "shares": "320",
            "price": "8",
            "extra": {"text": {"principal": "$400.00", "shares": "$320.00", "price": "$8.00"}},
        },
    }
    (debt,) = account["debts"]
    assert debt["market_rate"]["apr"] == account["debts_net_rate"]["apr"] == "0.1"
    assert account["health"] == {
        "base": "2.727272727272727273",
        "boost": "0.084",
        "result": "2.811272727272727273",
        "extra": {"text": {"base": "272.73%", "boost": "8.40%", "result": "281.13%"}},
    }
    assert free["health"] == {
        "base": "Infinity",
        "boost": "0",
        "result": "Infinity",
        "extra": {"text": {"base": "Infinity", "boost": "0.00%", "result": "Infinity"}},
    }


def test_lent_amounts_are_shown_in_receipt_tokens_and_in_the_asset() -> None:
    _, pool = rendered(USER_POSITION, USER)["markets"]["lend"]["asset_pools"]
    assert pool["receipt_amounts"]["total"] == "15000000"
    assert pool["receipt_amounts"]["extra"] == {
        "text": {"held": "10.00 rUSDT", "collateralized": "5.00 rUSDT", "total": "15.00 rUSDT"},
        "value": {
            "held": "12",
            "collateralized": "6",
            "total": "18",
            "price": "1.2",
            "extra": {"text": {"held": "$12.00", "collateralized": "$6.00", "total": "$18.00", "price": "$1.20"}},
        },
    }
    assert pool["origin_equivalent"] == {
        "held": "12000000",
        "collateralized": "6000000",
        "total": "18000000",
        "extra": {"text": {"held": "12.00 USDT", "collateralized": "6.00 USDT", "total": "18.00 USDT"}},
    }


def test_a_receipt_token_that_is_not_defined_has_no_value() -> None:
    """Not that of the lent asset."""
    assets = {asset_id: asset for asset_id, asset in ASSETS.items() if asset_id != RECEIPT}
    _, pool = USER_POSITION.render(USER, Scope(Flags(value=True), assets, PRICES))["markets"]["lend"]["asset_pools"]
    value = pool["receipt_amounts"]["extra"]["value"]
    assert (pool["receipt_amounts"]["total"], value["total"], value["price"]) == ("15000000", None, None)


def test_linear_and_lump_sum_arrangements() -> None:
    linear, lump = rendered(USER_POSITION, USER)["ptoken"]["unlocks"]["arrangements"]
    assert linear["schedule"] == {
        "kind": "linear",
        "duration": 31_536_000,
        "ends_at": "2026-01-01T00:00:00Z",
        "extra": {"text": {"duration": "1 year", "ends_at": "2026-01-01 00:00:00 UTC"}},
    }
    assert lump["schedule"] == {"kind": "lump_sum", "extra": {"text": {}}}
    assert linear["extra"]["text"] == {
        "begins_at": "2025-01-01 00:00:00 UTC",
        "expires_at": "N/A",
        "last_claimed_at": "2025-03-15 00:00:00 UTC",
    }
    assert linear["admin"] == {"address": "0x" + "2" * 40, "issued_reclaim": False}
    amounts = linear["amounts"]
    assert (amounts["claimable"], amounts["locked"]) == ("150000000", "800000000")
    assert amounts["extra"]["percent"]["extra"]["text"]["claimable"] == "15.00%"
    assert amounts["extra"]["value"]["amount"] == "420"


def test_a_reclaimed_amount_is_no_longer_locked_for_its_address_but_is_in_its_group() -> None:
    """A fifth of 1,000 PTK has unlocked when the rest is reclaimed."""
    reclaimed = replace(arrangement(), reclaimed_at=AT)
    found = Unlocks(PTK, (), unlock_amounts(reclaimed, AT), None)
    own = rendered(USER_UNLOCKS, found)["totals"]
    assert (own["locked"], own["reclaimed"]) == ("0", "800000000")
    distribution = UnlocksDistribution(PTK, unlock_groups([reclaimed], AT))
    team, *_ = rendered(UNLOCKS_DISTRIBUTION, distribution)["groups"]
    assert (team["amount_locked"], team["amount_reclaimed"]) == ("800000000", "800000000")
