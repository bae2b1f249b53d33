"""A user's holdings between two trades: a pure function of the user and the number of the first trade."""

from dataclasses import replace
from decimal import Decimal
from functools import lru_cache

from analytics_service.market.instants import DAY, instant
from analytics_service.market.positions import (
    Account,
    Balance,
    Holding,
    LendPosition,
    Position,
    Stake,
    Unbonding,
)
from analytics_service.sources.simulated import prices
from analytics_service.sources.simulated.accrual import accrued
from analytics_service.sources.simulated.draws import Draws
from analytics_service.sources.simulated.emission import stake_acc
from analytics_service.sources.simulated.noise import UNIT
from analytics_service.sources.simulated.people import AccountPlan, LendPlan, Profile, profile
from analytics_service.sources.simulated.terms import HALTED, ID_OF, TERMS
from analytics_service.sources.simulated.universe import LISTINGS

_PTOKEN_UNIT = 10 ** LISTINGS[ID_OF["PTK"]].asset.decimals_denom


def trade(user: Profile, second: int) -> int:
    """The number of the user's last trade, from 0; negative before the user joined."""
    return (second - user.joined) // user.period


def traded_at(user: Profile, number: int) -> int:
    """The second of a trade."""
    return user.joined + number * user.period


@lru_cache(maxsize=8_192)
def position(seed: str, user_number: int, number: int) -> Position:
    """The user's holdings from a trade until the next. Amounts depend on the prices at the start of the day."""
    user = profile(seed, user_number)
    at = traded_at(user, number)
    draws = Draws(f"{seed}|user|{user_number}|{number}")
    lends = tuple(_lend(seed, user, plan, at, draws) for plan in user.lends)
    accounts = tuple(_account(seed, user, plan, lends, at, draws) for plan in user.accounts)
    if number and any(HALTED in plan.debts for plan in user.accounts):
        accounts = _unhalted(accounts, position(seed, user_number, 0).accounts)
    return Position(
        user.address,
        accounts,
        lends,
        _wallet(seed, user, lends, at, draws),
        _stakes(user, at, draws),
        *_rewards(user, at, draws),
    )


def units(seed: str, asset_id: str, cents: int, second: int) -> int:
    """Denom units of an asset that an amount of US cents buys at the price at the start of the day, rounded down."""
    standard_unit: int = 10 ** LISTINGS[asset_id].asset.decimals_denom
    return cents * standard_unit * UNIT // (_day_price(seed, asset_id, second - second % DAY) * 100)


def cents(seed: str, asset_id: str, amount: int, second: int) -> int:
    """US cents that an amount in denom units is worth at the price at the start of the day, rounded down."""
    standard_unit: int = 10 ** LISTINGS[asset_id].asset.decimals_denom
    return amount * _day_price(seed, asset_id, second - second % DAY) * 100 // (standard_unit * UNIT)


@lru_cache(maxsize=20_000)
def _day_price(seed: str, asset_id: str, second: int) -> int:
    return int(prices.usd(seed, LISTINGS[asset_id], second).scaleb(18))


def _varied(user: Profile, amount: int, draws: Draws) -> int:
    """The amount, up to a third more or less."""
    return amount if user.steady else amount * draws.between(667, 1_333) // 1_000


def _lend(seed: str, user: Profile, plan: LendPlan, at: int, draws: Draws) -> LendPosition:
    cents = _varied(user, plan.usd * 100, draws)
    receipts = units(seed, plan.asset_id, cents, at) * UNIT // accrued(seed, plan.asset_id, at).lend_index
    posted = receipts * plan.posted // 100
    return LendPosition(plan.asset_id, receipts - posted, posted)


def _account(
    seed: str, user: Profile, plan: AccountPlan, lends: tuple[LendPosition, ...], at: int, draws: Draws
) -> Account:
    collaterals: list[Holding] = []
    allowed = Decimal(0)
    for asset_id in plan.collaterals:
        cents = _varied(user, plan.usd * 100 // len(plan.collaterals), draws)
        collaterals.append(Holding(asset_id, units(seed, asset_id, cents, at)))
        config = TERMS[asset_id].collateral
        allowed += cents * config.allowable_ltv if config else 0
    for lent, intent in zip(lends, user.lends, strict=True):
        receipt = LISTINGS[lent.asset_id].asset.receipt_asset
        if receipt and lent.collateralized and intent.account_index == plan.index:
            collaterals.append(Holding(receipt, lent.collateralized))
    owed = _varied(user, int(allowed) * plan.percent // 100, draws)
    debts = tuple(
        Holding(asset_id, _debt_shares(seed, asset_id, owed // len(plan.debts), at)) for asset_id in plan.debts
    )
    return Account(plan.index, tuple(collaterals), debts)


def _debt_shares(seed: str, asset_id: str, cents: int, at: int) -> int:
    return units(seed, asset_id, cents, at) * UNIT // accrued(seed, asset_id, at).debt_index


def _unhalted(accounts: tuple[Account, ...], first: tuple[Account, ...]) -> tuple[Account, ...]:
    """The accounts, with their initial debts in the asset that can no longer be borrowed."""
    return tuple(
        replace(now, debts=tuple(map(_unless_halted, now.debts, then.debts)))
        for now, then in zip(accounts, first, strict=True)
    )


def _unless_halted(now: Holding, then: Holding) -> Holding:
    return then if then.asset_id == HALTED else now


def _wallet(seed: str, user: Profile, lends: tuple[LendPosition, ...], at: int, draws: Draws) -> tuple[Balance, ...]:
    balances = [
        Balance(asset_id, units(seed, asset_id, _varied(user, usd * 100, draws), at)) for asset_id, usd in user.wallet
    ]
    receipts = [
        Balance(receipt, lent.held)
        for lent in lends
        if lent.held and (receipt := LISTINGS[lent.asset_id].asset.receipt_asset)
    ]
    return (*balances, *receipts, *(Balance(asset_id, amount) for asset_id, amount in user.unknown))


def _stakes(user: Profile, at: int, draws: Draws) -> tuple[Stake, ...]:
    # A cascade is always due after the next trade, which postpones it.
    moves_at = instant(at + user.period + 7 * DAY)
    return tuple(
        Stake(
            plan.pool,
            plan.account_index,
            _varied(user, plan.tokens * _PTOKEN_UNIT, draws),
            plan.cascade,
            moves_at if plan.cascade else None,
            stake_acc(at),
        )
        for plan in user.stakes
    )


def _rewards(user: Profile, at: int, draws: Draws) -> tuple[tuple[Unbonding, ...], int, int]:
    """Unbondings, unclaimed and claimable rewards: all in proportion to the stakes.

    Unbonding ends before the next trade, which takes the claimable amounts.
    """
    staked = sum(plan.tokens for plan in user.stakes) * _PTOKEN_UNIT
    unbondings = tuple(
        Unbonding(staked * draws.between(1, 20) // 100, instant(at + draws.between(1, user.period - 1)))
        for _ in range(draws.pick((0, 0, 1, 2)) if staked else 0)
    )
    return unbondings, staked * draws.below(100) // 10_000, staked * draws.below(300) // 10_000
