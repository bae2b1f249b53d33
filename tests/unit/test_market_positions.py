"""Claims behind shares, health of accounts, and addresses."""

from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal

import pytest
from bech32 import bech32_encode
from hypothesis import given
from hypothesis import strategies as st

from analytics_service.market.account_health import Health, account_health
from analytics_service.market.assets import bech32_address, parse_address
from analytics_service.market.markets import (
    CollateralConfig,
    CollateralMarket,
    DebtConfig,
    DebtMarket,
    GlobalConfig,
    Market,
)
from analytics_service.market.positions import Holding
from analytics_service.market.receipts import LenderClaim, claim_totals, claims_of, principal_of

D = Decimal
HALF = D("0.5")
COLLATERAL = CollateralConfig(True, HALF, HALF, None, HALF, HALF)
DEBT = DebtConfig(True, None, HALF, HALF)
NOON = datetime(2025, 3, 1, 12, tzinfo=UTC)
CONFIG = GlobalConfig(
    time_window_nanos=1,
    partial_liquidation_threshold=D(100),
    target_liquidation_health=D("1.1"),
    liquidation_fee=HALF,
    flash_loans_enabled=True,
    flash_loan_fee=HALF,
    staking_health_modifier=D("0.1"),
    stake_collateral_ratio=D("0.05"),
    stake_flash_loan_ratio=HALF,
    dynamic_discount_width=HALF,
    hnative="native;a",
    ptoken="native;p",
)


def debt_market(balance: int, shares: int) -> DebtMarket:
    return DebtMarket(DEBT, D(0), balance, shares, NOON, D(0))


def test_shares_represent_their_part_of_the_balance_rounded_down() -> None:
    """With a balance of 10 and 3 shares, one share is 3.33 and two are 6.67."""
    assert [principal_of(shares, debt_market(10, 3)) for shares in (0, 1, 2, 3)] == [0, 3, 6, 10]


def test_shares_of_an_empty_or_missing_market_represent_nothing() -> None:
    assert principal_of(5, debt_market(0, 0)) == 0
    assert principal_of(5, None) == 0


@given(
    st.lists(st.integers(0, 2**128), min_size=1),
    st.integers(0, 2**256),
)
def test_all_accounts_together_never_owe_more_than_the_balance(shares: list[int], balance: int) -> None:
    market = debt_market(balance, sum(shares))
    owed = sum(principal_of(part, market) for part in shares)
    assert owed <= balance
    assert market.shares == 0 or owed > balance - len(shares)


def test_collateral_and_debt_claims_come_from_their_own_market() -> None:
    market = Market("a", None, CollateralMarket(COLLATERAL, 40, 40), debt_market(30, 20))
    holdings = (Holding("a", 10), Holding("gone", 7))
    assert claims_of(holdings, {"a": market}, "collateral") == (LenderClaim("a", 10, 10), LenderClaim("gone", 0, 7))
    assert claims_of(holdings, {"a": market}, "debt") == (LenderClaim("a", 15, 10), LenderClaim("gone", 0, 7))


def test_claim_totals_are_sums_by_asset_in_order_of_id() -> None:
    claims = [LenderClaim("b", 1, 2), LenderClaim("a", 10, 20), LenderClaim("b", 100, 200)]
    assert claim_totals(claims) == (LenderClaim("a", 10, 20), LenderClaim("b", 101, 202))


@pytest.mark.parametrize(
    ("collaterals", "debt", "staked", "base", "boost"),
    [
        # (1000 * 0.8 + 500 * 0.6) / 400. The full boost of 0.1 takes 5 % of 1500 = 75 USD; 30 USD are 0.4 of it.
        ([(D(1000), D("0.8")), (D(500), D("0.6"))], D(400), D(30), "2.75", "0.04"),
        ([(D(100), HALF)], D(50), D(0), "1", "0"),
        ([(D(100), HALF)], D(50), D(5), "1", "0.1"),
        ([(D(100), HALF)], D(50), D(1000), "1", "0.1"),
        ([(D(100), HALF)], D(0), D(50), "Infinity", "0"),
        ([], D(10), D(50), "0", "0"),
    ],
)
def test_health_is_secured_value_over_debt_plus_the_boost_of_the_stake(
    collaterals: list[tuple[Decimal, Decimal]], debt: Decimal, staked: Decimal, base: str, boost: str
) -> None:
    health = account_health(collaterals, debt, staked, CONFIG)
    assert (health, health.result) == (Health(D(base), D(boost)), D(base) + D(boost))


def test_the_boost_is_full_if_no_stake_is_required() -> None:
    free = replace(CONFIG, stake_collateral_ratio=D(0))
    assert account_health([(D(100), HALF)], D(60), D(0), free).boost == D("0.1")


@pytest.mark.parametrize(
    ("given", "stored"),
    [
        ("A12UEL5L", "a12uel5l"),
        ("abcdef1qpzry9x8gf2tvdw0s3jn54khce6mua7lmqqqxw", "abcdef1qpzry9x8gf2tvdw0s3jn54khce6mua7lmqqqxw"),
        ("0x" + "Ab" * 20, "0x" + "ab" * 20),
    ],
)
def test_bech32_and_hex_addresses_are_stored_in_lower_case(given: str, stored: str) -> None:
    """The bech32 strings are valid examples of BIP 173."""
    assert parse_address(given) == stored


@pytest.mark.parametrize(
    "text",
    ["", "a12uel5m", "A12uEL5L", "a12uel5l\n", "ä12uel5l", "0X" + "a" * 40]
    + ["0x" + digits for digits in ("a" * 39, "a" * 41, "g" * 40, "a" * 40 + "\n")],
)
def test_anything_else_is_not_an_address(text: str) -> None:
    """Also a wrong checksum, and mixed case, which BIP 173 rules out."""
    with pytest.raises(ValueError, match="must be bech32 with a valid checksum, or 0x and 40 hex digits"):
        parse_address(text)


def test_an_address_has_at_most_90_characters() -> None:
    """20 bytes are 32 characters, and a separator and 6 characters of the checksum come to the prefix."""
    longest, longer = (bech32_encode("p" * length, [0] * 32) for length in (51, 52))
    assert parse_address(longest) == longest
    with pytest.raises(ValueError, match="must be bech32"):
        parse_address(longer)


@given(st.binary(min_size=1, max_size=40))
def test_an_encoded_address_is_valid_and_a_wrong_character_is_detected(payload: bytes) -> None:
    address = bech32_address("ptcl", payload)
    assert parse_address(address) == parse_address(address.upper()) == address
    wrong = "q" if address[-1] != "q" else "p"
    with pytest.raises(ValueError, match="must be bech32"):
        parse_address(address[:-1] + wrong)


def test_an_address_is_encoded_as_bip_173_does() -> None:
    """The witness program of BIP 173's first example is 0014751e76e8199196d454941c45d1b3a323f1433bd6."""
    payload = bytes.fromhex("751e76e8199196d454941c45d1b3a323f1433bd6")
    assert bech32_address("bc", payload)[3:-6] == "w508d6qejxtdg4y5r3zarvary0c5xw7k"


def test_a_payload_that_is_too_long_for_an_address_is_refused() -> None:
    with pytest.raises(ValueError, match="60 bytes do not fit"):
        bech32_address("ptcl", bytes(60))
