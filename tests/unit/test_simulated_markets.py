"""The simulated markets: sums over accounts, rates, interest."""

from collections import Counter
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analytics_service.market.assets import AssetKind
from analytics_service.market.markets import Market
from analytics_service.market.receipts import redemption_ratio, with_receipt_prices
from analytics_service.market.shares import debt_claims
from analytics_service.market.supply import market_supply
from analytics_service.market.values import total
from analytics_service.sources.simulated import accrual, census, holdings, people
from analytics_service.sources.simulated.source import SimulatedSource

LAUNCH = datetime(2025, 1, 1, tzinfo=UTC)
NOON = datetime(2025, 3, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
ASSETS = {asset.id: asset for asset in SimulatedSource("1").assets(NOON)}
IDS = {asset.symbol: asset.id for asset in ASSETS.values()}

# The first state of a seed takes a tenth of a second, so there are few.
few = settings(max_examples=3, deadline=None)
seeds = st.sampled_from(["1", "7", "winter"])
instants = st.datetimes(datetime(2025, 1, 1), datetime(2027, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001 - made aware


def markets(seed: str, at: datetime) -> dict[str, Market]:
    """Markets by symbol."""
    return {ASSETS[market.asset_id].symbol: market for market in SimulatedSource(seed).markets(at)}


def forget() -> None:
    """Empty every cache."""
    for cached in (
        accrual.accrued,
        accrual._sums,
        census.census,
        census._count_of,
        holdings.position,
        holdings._day_price,
        people.profile,
    ):
        cached.cache_clear()


def everything(seed: str, at: datetime) -> tuple[object, ...]:
    source = SimulatedSource(seed)
    return (
        source.markets(at),
        source.config(at),
        source.events(at - timedelta(hours=6), at),
        source.ptoken(at),
        source.arrangements(at),
        list(source.positions(at)),
        source.swaps(at),
    )


@few
@given(seeds, instants)
def test_the_same_seed_and_instant_give_the_same_state_whatever_was_asked_before(seed: str, at: datetime) -> None:
    first = everything(seed, at)
    forget()
    everything(seed, at + timedelta(days=40))
    assert everything(seed, at) == first


def test_another_seed_gives_another_state() -> None:
    one, two = markets("1", NOON), markets("2", NOON)
    assert one.keys() == two.keys()
    assert all(one[symbol] != two[symbol] for symbol in one)


@few
@given(seeds, instants)
def test_markets_are_the_sums_of_all_accounts(seed: str, at: datetime) -> None:
    posted: Counter[str] = Counter()
    owed: Counter[str] = Counter()
    receipts: Counter[str] = Counter()
    for position in SimulatedSource(seed).positions(at):
        for account in position.accounts:
            posted.update({held.asset_id: held.shares for held in account.collaterals})
            owed.update({held.asset_id: held.shares for held in account.debts})
        receipts.update({lent.asset_id: lent.held + lent.collateralized for lent in position.lends})
    for market in SimulatedSource(seed).markets(at):
        assert market.collateral is None or market.collateral.shares == posted.pop(market.asset_id, 0)
        assert market.debt is None or market.debt.shares == owed.pop(market.asset_id, 0)
        assert market.lend is None or market.lend.receipt_supply == receipts.pop(market.asset_id, 0)
    assert not posted
    assert not owed
    assert not receipts


@few
@given(seeds, instants)
def test_receipt_tokens_posted_are_collateral_of_the_same_address(seed: str, at: datetime) -> None:
    for position in SimulatedSource(seed).positions(at):
        posted = {
            ASSETS[held.asset_id].origin_asset: held.shares
            for account in position.accounts
            for held in account.collaterals
            if ASSETS[held.asset_id].kind is AssetKind.RECEIPT
        }
        assert posted == {one.asset_id: one.collateralized for one in position.lends if one.collateralized}


@few
@given(seeds, instants)
def test_accounts_never_owe_more_than_the_market_does(seed: str, at: datetime) -> None:
    by_id = {market.asset_id: market for market in SimulatedSource(seed).markets(at)}
    owed: Counter[str] = Counter()
    for position in SimulatedSource(seed).positions(at):
        for account in position.accounts:
            owed.update({one.asset_id: one.principal for one in debt_claims(account.debts, by_id)})
    for asset_id, principal in owed.items():
        debt = by_id[asset_id].debt
        assert debt
        # Each of at most 2,000 accounts is rounded down by less than one unit.
        assert debt.balance - 2_000 < principal <= debt.balance


@few
@given(seeds, instants)
def test_rates_follow_from_utilization_which_stays_below_one(seed: str, at: datetime) -> None:
    """ETH: 3.5 % at the kink of 0.85, 80 % more at 1. Lenders get what borrowers pay, less 15 %."""
    for market in markets(seed, at).values():
        if market.lend and market.debt:
            used = Fraction(market.debt.balance, market.lend.principal)
            assert used < 1
            kept = 1 - Fraction(market.debt.config.interest_fee)
            assert abs(Fraction(market.lend.apr) - Fraction(market.debt.apr) * used * kept) < Fraction(1, 10**16)
    ether = markets(seed, at)["ETH"]
    assert ether.lend
    assert ether.debt
    used, kink = Fraction(ether.debt.balance, ether.lend.principal), Fraction("0.85")
    below, above = min(used, kink), max(used - kink, Fraction(0))
    apr = Fraction("0.035") * below / kink + Fraction("0.8") * above / (1 - kink)
    assert abs(Fraction(ether.debt.apr) - apr) < Fraction(1, 10**16)


@few
@given(seeds, instants, st.integers(1, 10**7))
def test_debts_and_receipt_tokens_only_grow_by_interest(seed: str, at: datetime, seconds: int) -> None:
    before, after = markets(seed, at), markets(seed, at + timedelta(seconds=seconds))
    for symbol, then in before.items():
        now = after[symbol]
        if then.debt and now.debt and then.lend and now.lend:
            # Balances are rounded down to whole units, of which the smallest market has over 10^9.
            assert now.debt.balance / now.debt.shares > then.debt.balance / then.debt.shares - 1e-8
            assert redemption_ratio(now.lend) > redemption_ratio(then.lend) - Decimal("1e-8")
            assert now.debt.utilization_accumulator >= then.debt.utilization_accumulator


@pytest.mark.parametrize("symbol", ["ETH", "QRY"])
def test_interest_accrues_at_about_the_rates_shown(symbol: str) -> None:
    """Over 60 days the logarithm of what a share owes grows by the mean APR of every sixth hour, within 5 %."""
    hours = [markets("1", NOON + hour * HOUR)[symbol] for hour in range(0, 1441, 6)]
    first, last = hours[0].debt, hours[-1].debt
    assert first
    assert last
    grown = (Decimal(last.balance) / last.shares * first.shares / first.balance).ln()
    shown = total(one.debt.apr for one in hours if one.debt) / len(hours) * 60 / 365
    assert abs(grown / shown - 1) < Decimal("0.05")


def test_interest_is_distributed_every_minute() -> None:
    times = {
        market.debt.time_last_distributed_interest
        for market in markets("1", NOON + timedelta(seconds=59)).values()
        if market.debt
    }
    assert times == {NOON}


@few
@given(seeds, instants)
def test_supply_identities_hold(seed: str, at: datetime) -> None:
    source = SimulatedSource(seed)
    quoted = {price.asset_id: price.usd for price in source.prices(at)}
    listed = source.markets(at)
    prices = with_receipt_prices(quoted, ASSETS, listed)
    assert prices.keys() == ASSETS.keys()
    supply = market_supply(listed, ASSETS, prices)
    collateral = supply.borrow_collateral
    assert Fraction(collateral.total.balance) == Fraction(collateral.non_receipt.balance) + Fraction(
        collateral.receipt.balance
    )
    assert Fraction(supply.tvl.tvl) == Fraction(collateral.non_receipt.balance) + Fraction(supply.lend.principal)
    assert Fraction(supply.tvl.net_tvl) == Fraction(supply.tvl.tvl) - Fraction(supply.borrow_debt.balance)
    assert collateral.receipt.balance > 0


@few
@given(seeds, instants)
def test_no_cap_is_exceeded(seed: str, at: datetime) -> None:
    for market in markets(seed, at).values():
        if market.collateral and market.collateral.config.collateral_cap is not None:
            assert market.collateral.balance <= market.collateral.config.collateral_cap
        if market.debt and market.debt.config.borrow_cap is not None:
            assert market.debt.balance <= market.debt.config.borrow_cap


def test_markets_differ_in_what_they_offer() -> None:
    listed = markets("1", NOON)
    assert {symbol for symbol, one in listed.items() if one.lend} == {
        *("HEL", "ORB", "ETH", "BTC", "TIDE", "QRY", "USDT", "USDC", "HUSD")
    }
    assert listed["QRY"].collateral is None
    assert (listed["stETH"].lend, listed["stETH"].debt) == (None, None)
    assert (listed["rETH"].lend, listed["rETH"].debt) == (None, None)
    assert "rQRY" not in listed
    disabled = {s for s, one in listed.items() if one.collateral and not one.collateral.config.enabled}
    assert disabled == {"HUSD", "stORB", "rORB"}
    assert [s for s, one in listed.items() if one.debt and not one.debt.config.enabled] == ["TIDE"]
    assert listed["ETH"].collateral
    assert listed["ETH"].collateral.config.collateral_cap is None


def test_caps_are_whole_tokens_at_the_listing_price() -> None:
    """600 million dollars are 26,086,956 HEL at 23 dollars; its receipt token begins at par."""
    for symbol in ("HEL", "rHEL"):
        market = markets("1", NOON)[symbol]
        assert market.collateral
        assert market.collateral.config.collateral_cap == 26_086_956 * 10**18


def test_borrowing_of_tidewater_ends_in_mid_february_and_its_debts_stay() -> None:
    halt = datetime(2025, 2, 15, tzinfo=UTC)
    before, after, later = (
        markets("1", at)["TIDE"].debt for at in (halt - timedelta(seconds=1), halt, halt + timedelta(days=300))
    )
    assert before
    assert after
    assert later
    assert (before.config.enabled, after.config.enabled) == (True, False)
    assert before.shares == after.shares == later.shares > 0
    assert later.balance > after.balance


def test_before_launch_all_markets_exist_and_are_empty() -> None:
    for market in SimulatedSource("1").markets(LAUNCH - timedelta(seconds=1)):
        assert market.collateral is None or market.collateral.balance == 0
        assert market.debt is None or market.debt.shares == market.debt.balance == 0
        assert market.lend is None or market.lend.principal == market.lend.receipt_supply == 0
    assert not list(SimulatedSource("1").positions(LAUNCH - timedelta(seconds=1)))


def test_every_market_has_debt_from_launch_on() -> None:
    assert all(one.debt.balance > 0 for one in markets("3", LAUNCH).values() if one.debt)


def test_rules_of_borrowing_are_within_their_bounds() -> None:
    config = SimulatedSource("1").config(NOON)
    assert config.target_liquidation_health >= 1
    ratios = (
        config.liquidation_fee,
        config.flash_loan_fee,
        config.staking_health_modifier,
        config.stake_collateral_ratio,
        config.stake_flash_loan_ratio,
        config.dynamic_discount_width,
    )
    assert all(0 < ratio <= 1 for ratio in ratios)
    assert (config.hnative, config.ptoken) == (IDS["HEL"], IDS["PTK"])
