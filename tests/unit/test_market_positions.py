"""Claims behind shares, health of accounts, and addresses."""

from datetime import UTC, datetime
from decimal import Decimal

import pytest
from bech32 import bech32_encode
from hypothesis import given
from hypothesis import strategies as st

from analytics_service.market.assets import bech32_address, parse_address
from analytics_service.market.markets import (
    DebtConfig,
    DebtMarket,
)
from analytics_service.market.receipts import principal_of

D = Decimal
HALF = D("0.5")
DEBT = DebtConfig(True, None, HALF, HALF)
NOON = datetime(2025, 3, 1, 12, tzinfo=UTC)


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
