"""Portfolios of an address, with the round numbers of the small protocol worked out by hand."""

from dataclasses import replace
from datetime import timedelta
from decimal import Decimal

from analytics_service.market.account_health import INFINITE
from analytics_service.market.portfolio import (
    AccountClaim,
    AssetPosition,
    Collateral,
    Debt,
    Portfolio,
    SplitAmount,
    unlocks_at,
)
from analytics_service.market.positions import Account, Balance, Holding, LendPosition, Position, Unbonding
from analytics_service.market.ptoken import UnlockAmounts
from analytics_service.market.receipts import LenderClaim
from tests.unit.small_protocol import (
    AT,
    CONTEXT,
    HEL,
    HEL_MARKET,
    ORB,
    ORB_MARKET,
    POSITION,
    PTK,
    USDT,
    arrangement,
    rate,
)

D = Decimal

PORTFOLIO = Portfolio(POSITION, CONTEXT)
# 100 of 800 million shares of 880 USDT; 0.03 * 10^18 of 20 * 10^18 shares of 30 HEL.
USDT_DEBT = Debt(USDT, 110_000_000, 100_000_000, rate("0.1"))
HEL_DEBT = Debt(HEL, 45 * 10**15, 3 * 10**16, rate("0.3"))


def test_the_net_rate_of_debts_is_weighted_by_the_value_of_what_is_owed() -> None:
    """110 USD at 10 % and 90 USD at 30 % cost 11 + 27 = 38 USD a year on 200. Weighted by shares it would be 0.175.

    Compounded they cost 110 * 0.1051709 + 90 * 0.3498588 = 43.0561 USD. The APY of 19 % would be 0.2092.
    """
    totals = PORTFOLIO.accounts[2].totals
    assert totals.debts == (HEL_DEBT, USDT_DEBT)
    assert totals.debts_net_rate.apr == D("0.19")
    assert abs(totals.debts_net_rate.apy - D("0.2152805")) < D("1e-7")


def test_totals_sum_claims_and_debts_by_asset_over_all_accounts() -> None:
    """220 USD at 10 % and 90 USD at 30 % cost 22 + 27 = 49 USD a year on 310."""
    totals = PORTFOLIO.totals
    assert totals.collaterals == (LenderClaim(ORB, 70_000_000, 56_000_000),)
    assert totals.debts == (HEL_DEBT, Debt(USDT, 220_000_000, 200_000_000, rate("0.1")))
    assert totals.debts_net_rate.apr == D("0.158064516129032258")


def test_health_is_secured_value_over_debt_plus_a_boost_for_staking() -> None:
    health = PORTFOLIO.accounts[0].health
    # 50 ORB at 8 USD and 75 % secure 300 USD of a debt of 110 USD.
    assert health.base == D("2.727272727272727273")
    # 100 PTK at 0.42 USD count double: 84 of the 200 USD (half the collateral) that earn the full boost of 0.2.
    assert health.boost == D("0.084")
    assert health.result == D("2.811272727272727273")


def test_health_divides_values_that_are_not_rounded() -> None:
    """A token of 18 decimals at 0.7 USD: 7 units secure 3.675E-18 USD at 75 %, and 3 units are a debt of 2.1E-18 USD.

    That is 1.75. Rounded to 18 decimals the values would be 5E-18 USD, which secures 3.75E-18, and 2E-18: 1.875.
    """
    dust = replace(HEL_MARKET, collateral=ORB_MARKET.collateral)
    context = replace(CONTEXT, markets={HEL: dust}, prices={HEL: D("0.7")})
    # 6 shares of collateral represent 7.5 units, rounded down, and 2 of debt represent 3.
    accounts = (Account(0, (Holding(HEL, 6),), (Holding(HEL, 2),)),)
    health = Portfolio(Position("a", accounts), context).accounts[0].health
    assert (health.base, health.boost, health.result) == (D("1.75"), D(0), D("1.75"))


def test_receipts_are_converted_to_the_lent_asset_at_its_own_redemption_ratio() -> None:
    """1.2 USDT and 2.5 HEL for each receipt."""
    helion, tether = PORTFOLIO.lends
    assert (helion.asset_id, tether.asset_id) == (HEL, USDT)
    assert tether.receipt_amounts == SplitAmount(10_000_000, 5_000_000)
    assert tether.origin_equivalent == SplitAmount(12_000_000, 6_000_000)
    assert tether.origin_equivalent.total == 18_000_000
    assert tether.market_rate == rate("0.05")
    assert helion.receipt_amounts == SplitAmount(6 * 10**15, 24 * 10**14)
    assert helion.origin_equivalent == SplitAmount(15 * 10**15, 6 * 10**15)
    assert helion.market_rate == rate("0.02")


def test_receipts_count_once_wherever_they_are() -> None:
    """All that are in the wallet and among collateral, also those that the source does not state, or not all of."""
    receipt, posted = "native;rusdt", replace(ORB_MARKET, asset_id="native;rusdt", lend=None, debt=None)
    assets = {**CONTEXT.assets, USDT: replace(CONTEXT.assets[USDT], receipt_asset=receipt)}
    context = replace(CONTEXT, assets=assets, markets={**CONTEXT.markets, receipt: posted})
    # 40 of 400 million shares of 500 million.
    accounts, wallet = (Account(0, (Holding(receipt, 40_000_000),)),), (Balance(receipt, 10_000_000),)
    for held, collateralized in ((0, 0), (10_000_000, 0), (9_000_000, 50_000_000), (10_000_000, 50_000_000)):
        lends = (LendPosition(USDT, held, collateralized),) if held else ()
        (lent,) = Portfolio(Position("a", accounts, lends, wallet), context).lends
        assert (lent.asset_id, lent.receipt_amounts) == (USDT, SplitAmount(10_000_000, 50_000_000))
        # 1.2 USDT each.
        assert lent.origin_equivalent == SplitAmount(12_000_000, 60_000_000)
    (lent,) = Portfolio(Position("a", lends=(LendPosition(USDT, 11_000_000, 0),), wallet=wallet), context).lends
    assert lent.receipt_amounts == SplitAmount(11_000_000, 0)


def test_the_net_rate_of_lends_is_weighted_by_the_value_of_the_lent_assets() -> None:
    """18 USD at 5 % and 42 USD at 2 % earn 0.90 + 0.84 = 1.74 USD a year on 60.

    Receipts counted as if they were the asset would weigh 15 and 16.80 USD: 0.034.
    """
    assert PORTFOLIO.lend_net_rate.apr == D("0.029")


def test_an_asset_without_a_price_does_not_count_in_a_net_rate() -> None:
    unpriced = {asset_id: price for asset_id, price in CONTEXT.prices.items() if asset_id != HEL}
    context = replace(CONTEXT, prices=unpriced)
    found = Portfolio(POSITION, context)
    assert found.lend_net_rate == rate("0.05")
    assert found.totals.debts_net_rate == rate("0.1")


def test_what_includes_a_price_that_is_not_known_any_more_is_unknown() -> None:
    """Account 2 owes HEL, account 0 does not, and account 1 owes nothing. HEL is lent, too; the wallet has none."""
    found = Portfolio(POSITION, replace(CONTEXT, prices={**CONTEXT.prices, HEL: None}))
    healths = [account.health.result for account in found.accounts]
    assert healths == [D("2.811272727272727273"), INFINITE, None]
    rates = [account.totals.debts_net_rate.apr for account in found.accounts]
    assert (rates, found.totals.debts_net_rate.apy, found.lend_net_rate.apr) == ([D("0.1"), 0, None], None, None)
    assert found.wallet_value == D("1234.5")
    dark = Portfolio(POSITION, replace(CONTEXT, prices={**CONTEXT.prices, USDT: None, ORB: None}))
    assert (dark.wallet_value, dark.accounts[0].health.result, dark.accounts[1].health.result) == (None, None, INFINITE)


def test_a_stake_that_lost_its_price_makes_health_unknown_if_it_counts() -> None:
    """Not where nothing is owed, in an account without a stake, or where stakes add nothing."""
    lost = replace(CONTEXT, prices={**CONTEXT.prices, PTK: None})
    healths = [account.health.result for account in Portfolio(POSITION, lost).accounts]
    assert healths == [None, INFINITE, D("0.6")]
    no_boost = replace(lost, config=replace(CONTEXT.config, staking_health_modifier=D(0)))
    assert Portfolio(POSITION, no_boost).accounts[0].health.result == D("2.727272727272727273")
    never = {asset_id: price for asset_id, price in CONTEXT.prices.items() if asset_id != PTK}
    assert Portfolio(POSITION, replace(CONTEXT, prices=never)).accounts[0].health.boost == 0


def test_collateral_that_never_had_a_price_is_worth_nothing_but_such_a_debt_is_unknown() -> None:
    without = {
        lost: replace(CONTEXT, prices={name: usd for name, usd in CONTEXT.prices.items() if name != lost})
        for lost in (ORB, USDT)
    }
    assert Portfolio(POSITION, without[ORB]).accounts[0].health.result == 0
    assert Portfolio(POSITION, without[USDT]).accounts[0].health.result is None


def test_staking_lists_only_pools_with_a_stake() -> None:
    staking = PORTFOLIO.staking
    assert (staking.asset_id, staking.bonding_sum, staking.unbonding_sum) == (PTK, 100_000_000, 2_000_000)
    assert [(pool.pool.index, pool.amount_sum) for pool in staking.pools] == [(1, 100_000_000)]


def test_unbondings_are_in_the_order_in_which_they_unlock() -> None:
    last, first, second = (Unbonding(n, AT + timedelta(days=days)) for n, days in ((1, 9), (7, 1), (8, 1)))
    found = Portfolio(replace(POSITION, unbondings=(last, second, first)), CONTEXT)
    assert found.staking.unbondings == [first, second, last]


def test_the_last_claim_is_the_latest_over_all_arrangements() -> None:
    earlier = arrangement(last_claimed_at=AT - timedelta(days=1))
    never = arrangement(last_claimed_at=None)
    assert unlocks_at([earlier, arrangement(), never], PTK, AT).last_claimed_at == AT
    assert unlocks_at([never], PTK, AT).last_claimed_at is None


def test_the_same_position_asset_by_asset_names_the_accounts_that_have_each_asset() -> None:
    """Accounts 0 and 2 have posted 40 and 16 million shares of ORB, 1.25 of it each; both owe 110 USDT."""
    hel, orb, usdt = PORTFOLIO.by_asset
    assert [one.asset_id for one in (hel, orb, usdt)] == [HEL, ORB, USDT]
    posted = [
        AccountClaim(0, Collateral(ORB, 50_000_000, 40_000_000, POSITION.accounts[0].collaterals[0])),
        AccountClaim(2, Collateral(ORB, 20_000_000, 16_000_000, POSITION.accounts[2].collaterals[0])),
    ]
    assert orb == AssetPosition(ORB, posted, (), None)
    assert usdt.debts == [AccountClaim(0, USDT_DEBT), AccountClaim(2, USDT_DEBT)]
    assert hel.debts == [AccountClaim(2, HEL_DEBT)]
    assert [hel.lend, usdt.lend] == PORTFOLIO.lends


def test_an_address_without_a_position_has_an_empty_portfolio() -> None:
    empty = Portfolio(Position("a"), CONTEXT)
    assert (empty.accounts, empty.lends, empty.by_asset, empty.wallet_value) == ((), [], [], D(0))
    assert (empty.totals.collaterals, empty.totals.debts) == ((), ())
    assert empty.totals.debts_net_rate == rate("0")
    assert (empty.staking.pools, empty.staking.bonding_sum) == ([], 0)
    unlocks = unlocks_at([], PTK, AT)
    assert (unlocks.arrangements, unlocks.totals) == ((), UnlockAmounts())
