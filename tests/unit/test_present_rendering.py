"""Records in responses, with the round numbers of the small protocol worked out by hand."""

from dataclasses import replace
from decimal import Decimal
from itertools import product
from types import SimpleNamespace
from typing import Any

import jsonschema_rs
import pytest

from analytics_service.market.markets import LendConfig, LendMarket, Market
from analytics_service.market.positions import Activity
from analytics_service.market.ptoken import MemberClass, UnlockAmounts, UnlockGroup
from analytics_service.market.supply import market_supply
from analytics_service.present.analytics import MARKET_STATE
from analytics_service.present.assets import ASSET_INFO, PRICED_ASSET, PricedAsset, Quote
from analytics_service.present.json_schema import Components, schema_of
from analytics_service.present.markets import (
    COLLATERAL_LOOKUP,
    DEBT_LOOKUP,
    GLOBAL_CONFIG,
    LEND_LOOKUP,
    LEND_MARKET,
    MERGED_MARKET,
)
from analytics_service.present.overview import (
    COLLATERAL_MARKETS,
    DEBT_MARKETS,
    LEND_MARKETS,
    OLDER_TVL,
    OVERVIEW,
    SUPPLY,
)
from analytics_service.present.positions import USER_POSITION
from analytics_service.present.ptoken import (
    PTOKEN_PARAMS,
    PTOKEN_STAKING,
    PTOKEN_STATE,
    UNLOCKS_DISTRIBUTION,
    UnlocksDistribution,
)
from analytics_service.present.shapes import Flags, Many, Node
from analytics_service.present.status import STATUS
from analytics_service.state.health import Dataset, Status
from analytics_service.store.datasets.sums import Loans
from tests.unit.rendering import EMPTY_USER, USER, rendered
from tests.unit.small_protocol import (
    ASSETS,
    AT,
    CONFIG,
    HEL,
    MARKETS,
    ORB_MARKET,
    PRICES,
    PTK,
    PTOKEN,
    USDT,
    USDT_MARKET,
)

D = Decimal

MARKET_SUPPLY = market_supply(MARKETS.values(), ASSETS, PRICES)
ALL_MARKETS = SimpleNamespace(markets=MARKETS, supply=MARKET_SUPPLY, config=CONFIG)
GROUP = UnlockGroup(
    MemberClass.TEAM,
    UnlockAmounts(
        amount=1_000_000_000,
        claimed=50_000_000,
        claimable=150_000_000,
        unlocked=200_000_000,
        locked=800_000_000,
        reclaimed=0,
        expired=0,
    ),
    staked=100_000_000,
    held=0,
)
EMPTY_GROUP = UnlockGroup(MemberClass.ADVISOR, UnlockAmounts(), staked=0, held=0)
LOANS = SimpleNamespace(
    activity=Activity(1, 2, 3),
    loans=Loans(D("100.5"), {USDT: D("0.5"), PTK: D(100)}, D("12.5"), 3),
    interest_paid={USDT: 10**36},
)

SAMPLES: tuple[tuple[Node, Any], ...] = (
    (Many(ASSET_INFO), ASSETS.values()),
    (PRICED_ASSET, PricedAsset(ASSETS[USDT], Quote(D("1.0002"), AT))),
    (Many(MERGED_MARKET), MARKETS.values()),
    (GLOBAL_CONFIG, CONFIG),
    (SUPPLY, MARKET_SUPPLY),
    (OLDER_TVL, MARKET_SUPPLY),
    (OVERVIEW, ALL_MARKETS),
    (PTOKEN_PARAMS, PTOKEN),
    (PTOKEN_STATE, PTOKEN),
    (PTOKEN_STAKING, PTOKEN),
    (UNLOCKS_DISTRIBUTION, UnlocksDistribution(PTK, (GROUP, EMPTY_GROUP))),
    (MARKET_STATE, LOANS),
    (USER_POSITION, USER),
    (USER_POSITION, EMPTY_USER),
    (STATUS, Status(AT, True, True, (Dataset("prices", None, None, False),))),
)


@pytest.mark.parametrize(("shape", "record"), SAMPLES)
def test_every_combination_of_variants_matches_the_schema(shape: Node, record: Any) -> None:
    schema = {**schema_of(shape), "components": {"schemas": Components([shape]).schemas}}
    validator = jsonschema_rs.Draft202012Validator(schema, validate_formats=True)
    no_prices: dict[str, Decimal] = {}
    for text, value, percent, prices in product((True, False), (True, False), (True, False), (PRICES, no_prices)):
        validator.validate(rendered(shape, record, Flags(text, value, percent), prices))
        validator.validate(rendered(shape, record, Flags(text, value, percent, "older"), prices))


def test_a_lend_market() -> None:
    stated = LendConfig(supply_cap=2_000_000_000, frozen=True)
    assert rendered(LEND_MARKET, replace(USDT_MARKET, lend=replace(USDT_MARKET.lend, config=stated))) == {
        "asset_info": {
            "asset": {"id": "native;uusdt", "group": "native", "group_key": "uusdt"},
            "classification": {
                "kind": "regular",
                "protocol_receipt_asset": {"id": "token;0xr", "group": "token", "group_key": "0xr"},
            },
            "metadata": {
                "decimals_denom": 6,
                "decimals_display": 2,
                "name": "Tether USD",
                "symbol": "USDT",
                "symbol_denom": "uusdt",
            },
        },
        "rate": {
            "apr": "0.05",
            # e^0.05 - 1, less 0.00000000004 because compounding is per second and not continuous.
            "apy": "0.051271096334354555",
            "extra": {"text": {"apr": "5.00%", "apy": "5.13%"}},
        },
        "config": {
            "supply_cap": "2000000000",
            "paused": None,
            "frozen": True,
            "extra": {
                "text": {"supply_cap": "2,000.00 USDT"},
                "value": {
                    "supply_cap": "2000",
                    "price": "1",
                    "extra": {"text": {"supply_cap": "$2,000.00", "price": "$1.00"}},
                },
            },
        },
        "state": {
            "principal_sum": "1200000000",
            "receipt_total_supply": "1000000000",
            "redemption_ratio": "1.2",
            "extra": {
                "text": {
                    "principal_sum": "1,200.00 USDT",
                    "receipt_total_supply": "1,000.00 rUSDT",
                    "redemption_ratio": "120.00%",
                },
                "value": {
                    "principal_sum": "1200",
                    "price": "1",
                    "extra": {"text": {"principal_sum": "$1,200.00", "price": "$1.00"}},
                },
            },
        },
    }


def test_variants_are_null_unless_requested() -> None:
    state = rendered(LEND_MARKET, USDT_MARKET, Flags())["state"]
    assert state["extra"] == {"text": None, "value": None}
    assert rendered(GLOBAL_CONFIG, CONFIG, Flags())["extra"] == {"text": None}
    (group,) = rendered(UNLOCKS_DISTRIBUTION, UnlocksDistribution(PTK, (GROUP,)), Flags())["groups"]
    assert group["extra"] == {"text": None, "percent": None, "value": None}


def test_a_value_has_texts_if_they_are_requested_too() -> None:
    value = rendered(LEND_MARKET, USDT_MARKET, Flags(value=True))["state"]["extra"]["value"]
    assert value == {"principal_sum": "1200", "price": "1", "extra": {"text": None}}


def test_an_asset_without_a_price_has_null_values() -> None:
    state = rendered(LEND_MARKET, USDT_MARKET, prices={})["state"]
    assert state["extra"]["value"] == {
        "principal_sum": None,
        "price": None,
        "extra": {"text": {"principal_sum": "N/A", "price": "N/A"}},
    }


def test_both_shapes_show_the_same_amounts_under_their_own_names() -> None:
    newer = rendered(OVERVIEW, ALL_MARKETS, Flags())
    older = rendered(OVERVIEW, ALL_MARKETS, Flags(shape="older"))
    extra = {"text": None, "value": None}
    times = {"time_last_distributed_interest": "2025-03-15T00:00:00Z", "utilization_accumulator": "1.5"}

    (collateral,) = newer["borrow"]["collaterals"]["contents"]
    assert collateral["state"] == {"shares": "400000000", "balance": "500000000", "extra": extra}
    (collateral,) = older["borrow"]["collaterals"]
    assert collateral["state"] == {"balance": "500000000", "collateral_sum": "500000000", "extra": extra}

    _, debt = newer["borrow"]["debts"]["contents"]
    assert debt["state"] == {"shares": "800000000", "balance": "880000000", **times, "extra": extra}
    _, debt = older["borrow"]["debts"]
    assert debt["state"] == {"principal_sum": "800000000", "balance_sum": "880000000", **times, "extra": extra}

    _, lend = newer["lend"]["contents"]
    assert (lend["state"]["principal"], "principal_sum" in lend["state"]) == ("1200000000", False)
    _, lend = older["lend"]
    assert (lend["state"]["principal_sum"], "principal" in lend["state"]) == ("1200000000", False)
    assert ("tvl" in newer, "tvl" in older) == (True, False)


@pytest.mark.parametrize(
    ("shape", "lookup", "part", "market"),
    [
        (LEND_MARKETS, LEND_LOOKUP, ("lend",), USDT_MARKET),
        (DEBT_MARKETS, DEBT_LOOKUP, ("borrow", "debts"), USDT_MARKET),
        (COLLATERAL_MARKETS, COLLATERAL_LOOKUP, ("borrow", "collaterals"), ORB_MARKET),
    ],
)
def test_lists_and_lookups_show_what_the_overview_shows_in_both_shapes(
    shape: Node, lookup: Node, part: tuple[str, ...], market: Market
) -> None:
    """The markets of USDT and ORB are the last ones of their lists."""
    for flags in (Flags(text=True, value=True), Flags(text=True, value=True, shape="older")):
        expected = rendered(OVERVIEW, ALL_MARKETS, flags)
        for name in part:
            expected = expected[name]
        assert rendered(shape, ALL_MARKETS, flags) == expected
        contents = expected if flags.shape == "older" else expected["contents"]
        assert rendered(lookup, market, flags) == contents[-1]


def test_supply_and_tvl() -> None:
    supply = rendered(SUPPLY, MARKET_SUPPLY)
    # Collateral: 500 ORB at 8 USD, with 400 shares. Debt: 880 USDT and 30 HEL at 2,000 USD, with 800 and 20 shares.
    # Lent: 1,200 USDT and 250 HEL.
    pool = {"balance": "4000", "shares": "3200", "extra": {"text": {"balance": "$4,000.00", "shares": "$3,200.00"}}}
    nothing = {"balance": "0", "shares": "0", "extra": {"text": {"balance": "$0.00", "shares": "$0.00"}}}
    assert supply["borrow_collateral"] == {"non_receipt": pool, "receipt": nothing, "total": pool}
    assert (supply["borrow_debt"]["balance"], supply["borrow_debt"]["shares"]) == ("60880", "40800")
    assert supply["lend"] == {"principal": "501200", "extra": {"text": {"principal": "$501,200.00"}}}
    texts = {"tvl": "$505,200.00", "net_tvl": "$444,320.00"}
    assert supply["tvl"] == {"tvl": "505200", "net_tvl": "444320", "extra": {"text": texts}}


def test_an_unlock_group() -> None:
    distribution = rendered(UNLOCKS_DISTRIBUTION, UnlocksDistribution(PTK, (GROUP, EMPTY_GROUP)))
    team, advisors = distribution["groups"]
    assert (team["member_class"], team["amount"], team["amount_held"]) == ("team", "1000000000", "0")
    assert team["extra"]["text"]["member_class"] == "Team"
    assert team["extra"]["text"]["amount_claimable"] == "150.00 PTK"
    fractions = {name: share for name, share in team["extra"]["percent"].items() if name != "extra"}
    assert fractions == {
        "amount_claimed": "0.05",
        "amount_claimable": "0.15",
        "amount_unlocked": "0.2",
        "amount_locked": "0.8",
        "amount_reclaimed": "0",
        "amount_expired": "0",
    }
    assert team["extra"]["value"]["amount_claimable"] == "63"
    # Fractions of an amount of 0 are 0.
    assert advisors["extra"]["percent"]["amount_locked"] == "0"


def test_huge_and_tiny_amounts_stay_exact() -> None:
    huge = Market(HEL, LendMarket(D(0), 10**36 + 1, 10**36), None, None)
    tiny = Market(HEL, LendMarket(D(0), 1, 1), None, None)
    prices = {HEL: D("0.333333333333333333")}
    state = rendered(LEND_MARKET, huge, prices=prices)["state"]
    assert state["principal_sum"] == "1000000000000000000000000000000000001"
    assert state["extra"]["text"]["principal_sum"] == "1,000,000,000,000,000,000.0000 HEL"
    # (10^18 + 10^-18) * 0.333333333333333333, rounded to 18 decimals.
    assert state["extra"]["value"]["principal_sum"] == "333333333333333333"
    assert state["extra"]["value"]["extra"]["text"]["principal_sum"] == "$333,333,333,333,333,333.00"
    state = rendered(LEND_MARKET, tiny, prices=prices)["state"]
    assert state["extra"]["text"]["principal_sum"] == "<0.0001 HEL"
    # 10^-18 * 0.33 rounds to 0 at 18 decimals.
    assert state["extra"]["value"]["principal_sum"] == "0"
