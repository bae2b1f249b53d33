"""The simulated source."""

import re
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from hashlib import blake2b, sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analytics_service.market.assets import Asset, AssetKind
from analytics_service.sources.simulated import universe
from analytics_service.sources.simulated.source import SimulatedSource

NOON = datetime(2025, 3, 1, 12, tzinfo=UTC)
ASSETS = SimulatedSource("1").assets(NOON)
BY_SYMBOL = {asset.symbol: asset for asset in ASSETS}

seeds = st.text(st.characters(codec="utf-8", exclude_categories=("Z", "C"), exclude_characters=":"), min_size=1)
instants = st.datetimes(datetime(1970, 1, 2), datetime(2100, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001 - made aware


def usd(at: datetime, seed: str = "1") -> dict[str, Decimal]:
    """Prices by symbol."""
    symbols = {asset.id: asset.symbol for asset in ASSETS}
    return {symbols[price.asset_id]: price.usd for price in SimulatedSource(seed).prices(at)}


def of_kind(kind: AssetKind) -> list[Asset]:
    return [asset for asset in ASSETS if asset.kind is kind]


@given(seeds, instants)
def test_the_same_seed_and_instant_give_the_same_snapshot_whatever_was_asked_before(seed: str, at: datetime) -> None:
    first = SimulatedSource(seed).prices(at)
    universe._octaves.cache_clear()
    universe.usd_price.cache_clear()
    SimulatedSource(seed).prices(at + timedelta(days=1))
    assert SimulatedSource(seed).prices(at) == first
    assert SimulatedSource(seed).assets(at) == ASSETS


def test_prices_are_the_sum_of_hashed_octaves_on_every_platform() -> None:
    """Bitcoin swings around 60,000 by 60 % a year; recomputed here with binary floats from the same hashes."""
    second = int(NOON.timestamp())

    def drawn(key: str) -> int:
        return int.from_bytes(blake2b(key.encode(), digest_size=8).digest(), "big")

    logarithm = 0.0
    for octave in range(8):
        period = 1_920 * 4**octave
        key = f"7|{BY_SYMBOL['BTC'].id}|{period}"
        index, within = divmod(second + (drawn(key) * period >> 64), period)
        low, high = (drawn(f"{key}|{i}") / 2**63 - 1 for i in (index, index + 1))
        x = within / period
        logarithm += 0.6 / 2 ** (7 - octave) * (low + (high - low) * (3 * x**2 - 2 * x**3))
    assert float(usd(NOON, "7")["BTC"]) == pytest.approx(60_000 * (1 + logarithm / 16) ** 16, rel=1e-7)


@given(seeds, instants)
def test_every_price_is_positive_with_18_decimals(seed: str, at: datetime) -> None:
    for price in SimulatedSource(seed).prices(at):
        assert 0 < price.usd < 10**20
        assert price.usd.as_tuple().exponent == -18


def test_there_are_enough_assets_of_every_kind_with_unique_ids_of_the_form_of_their_group() -> None:
    assert len({asset.id for asset in ASSETS}) == len({asset.symbol for asset in ASSETS}) == len(ASSETS) >= 16
    assert {asset.group for asset in ASSETS} == {"native", "token"}
    assert {asset.kind for asset in ASSETS} == set(AssetKind)
    assert {6, 8, 18} <= {asset.decimals_denom for asset in ASSETS} <= set(range(6, 19))
    assert all(0 < asset.decimals_display <= asset.decimals_denom for asset in ASSETS)
    form = re.compile(r"native;[a-z]+|token;0x[0-9a-f]{40}")
    assert all(form.fullmatch(asset.id) for asset in ASSETS)
    assert BY_SYMBOL["BTC"].id == "token;0x" + sha256(b"BTC").hexdigest()[:40]


def test_every_asset_but_the_protocol_token_is_lent_and_linked_with_its_receipt_token_both_ways() -> None:
    by_id = {asset.id: asset for asset in ASSETS}
    regular = of_kind(AssetKind.REGULAR)
    assert [asset.symbol for asset in regular if asset.receipt_asset is None] == ["PTK"]
    links = {asset.id: asset.receipt_asset for asset in regular if asset.receipt_asset}
    assert {receipt.origin_asset: receipt.id for receipt in of_kind(AssetKind.RECEIPT)} == links
    assert all(by_id[receipt].decimals_denom == by_id[origin].decimals_denom for origin, receipt in links.items())
    assert all(asset.origin_asset is None for asset in regular)
    assert all(asset.receipt_asset is None for asset in ASSETS if asset.kind is not AssetKind.REGULAR)
