"""Everything of one address, worked out by hand on round numbers."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal

from analytics_service.market.portfolio import BorrowTotals, Debt, Receipts, WalletBalance, portfolio
from analytics_service.market.positions import Account, Holding, Position, Stake
from analytics_service.market.rates import MarketRate
from analytics_service.market.shares import Claim
from analytics_service.market.unlocks import UnlockAmounts
from tests.unit.world import AT, ORB, POSITION, PTK, USDT, WORLD, arrangement

D = Decimal

PORTFOLIO = portfolio(POSITION, [arrangement()], WORLD, AT)


def test_shares_stand_for_their_part_of_the_balance() -> None:
    own = PORTFOLIO.accounts[0].own
    # 40 of 400 million shares of 500 ORB; 100 of 800 million shares of 880 USDT.
    assert own.collaterals == (Claim(ORB, 50_000_000, 40_000_000),)
    assert own.debts == (Debt(USDT, 110_000_000, 100_000_000, MarketRate(D("0.1"))),)
    assert own.debts_net_rate == MarketRate(D("0.1"))


def test_health_is_secured_value_over_debt_and_a_boost_for_staking() -> None:
    health = PORTFOLIO.accounts[0].health
    # 50 ORB at 8 USD and 75% secure 300 USD of a debt of 110 USD.
    assert health.base == D("2.727272727272727273")
    # 100 PTK at 0.42 USD weigh double: 84 of the 200 USD that half the collateral asks for, of at most 0.2.
    assert health.boost == D("0.084")
    assert health.result == D("2.811272727272727273")


def test_an_account_without_debt_has_infinite_health() -> None:
    health = PORTFOLIO.accounts[1].health
    assert (str(health.base), health.boost, str(health.result)) == ("Infinity", D(0), "Infinity")


def test_totals_sum_over_accounts_by_asset() -> None:
    accounts = (
        Account(0, (Holding(ORB, 40_000_000),), (Holding(USDT, 100_000_000),)),
        Account(1, (Holding(ORB, 8_000_000),), (Holding(USDT, 200_000_000),)),
    )
    totals = portfolio(Position("a", accounts), [], WORLD, AT).totals
    assert totals.collaterals == (Claim(ORB, 60_000_000, 48_000_000),)
    assert totals.debts == (Debt(USDT, 330_000_000, 300_000_000, MarketRate(D("0.1"))),)


def test_lent_assets_are_what_their_receipts_redeem() -> None:
    (lent,) = PORTFOLIO.lends
    assert lent.receipt_amounts == Receipts(10_000_000, 5_000_000)
    assert lent.origin_equivalent == Receipts(12_000_000, 6_000_000)
    assert lent.origin_equivalent.total == 18_000_000
    assert lent.market_rate == PORTFOLIO.lend_net_rate == MarketRate(D("0.05"))


def test_a_wallet_is_worth_what_its_known_balances_are() -> None:
    assert PORTFOLIO.wallet == (
        WalletBalance(USDT, 1_234_500_000, "known"),
        WalletBalance("native;mystery", 7, "unknown"),
    )
    assert PORTFOLIO.wallet_value == D("1234.5")


def test_staking_lists_pools_with_a_stake() -> None:
    staking = PORTFOLIO.staking
    assert (staking.asset_id, staking.bonding_sum, staking.unbonding_sum) == (PTK, 100_000_000, 2_000_000)
    assert [(pool.pool.index, pool.amount_sum) for pool in staking.pools] == [(1, 100_000_000)]


def test_stakes_for_another_account_do_not_boost() -> None:
    accounts = (Account(0, (Holding(ORB, 40_000_000),), (Holding(USDT, 100_000_000),)),)
    stakes = (Stake(1, 5, 100_000_000, False, None, D(0)),)
    assert portfolio(Position("a", accounts, stakes=stakes), [], WORLD, AT).accounts[0].health.boost == 0


def test_unlocks_are_as_of_the_instant_asked_for() -> None:
    unlocks = PORTFOLIO.unlocks
    expected = UnlockAmounts(
        amount=1_000_000_000,
        claimed=50_000_000,
        claimable=150_000_000,
        unlocked=200_000_000,
        locked=800_000_000,
    )
    assert (unlocks.arrangements[0].amounts, unlocks.totals) == (expected, expected)


def test_the_last_claim_is_the_newest_of_all_arrangements() -> None:
    earlier = arrangement(last_claimed_at=AT - timedelta(days=1))
    never = arrangement(last_claimed_at=None)
    assert portfolio(POSITION, [earlier, arrangement(), never], WORLD, AT).unlocks.last_claimed_at == AT
    assert portfolio(POSITION, [never], WORLD, AT).unlocks.last_claimed_at is None


def test_an_address_without_a_position_has_nothing() -> None:
    nothing = portfolio(Position("a"), [], WORLD, datetime(2026, 1, 1, tzinfo=UTC))
    assert (nothing.accounts, nothing.lends, nothing.wallet, nothing.wallet_value) == ((), (), (), D(0))
    assert nothing.totals == BorrowTotals((), (), MarketRate(D(0)))
    assert (nothing.staking.pools, nothing.staking.bonding_sum) == ((), 0)
    assert (nothing.unlocks.arrangements, nothing.unlocks.totals) == ((), UnlockAmounts())
