"""Everything of one address worked out: what its position stands for, earns, costs and unlocks (decisions 6)."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Literal

from analytics_service.market.assets import Asset
from analytics_service.market.health import Health, account_health
from analytics_service.market.markets import GlobalConfig, LendMarket, Market
from analytics_service.market.positions import Account, LendPosition, Position, Stake, Unbonding
from analytics_service.market.ptoken import Arrangement, Ptoken, StakingPool
from analytics_service.market.rates import MarketRate, net_rate
from analytics_service.market.shares import Claim, claim_totals, collateral_claims, debt_claims
from analytics_service.market.staking import health_weighted_value, staked_in_pool
from analytics_service.market.unlocks import UnlockAmounts, unlock_amounts, unlock_totals
from analytics_service.market.values import ZERO, origin_equivalent, total, usd_value

_NO_RATE = MarketRate(ZERO)


@dataclass(frozen=True, slots=True)
class World:
    """What positions are seen against: the newest snapshots. Mappings are by asset id.

    An asset that is not in `assets` or has no price counts as worth nothing in sums, means and health.
    """

    assets: Mapping[str, Asset]
    prices: Mapping[str, Decimal]
    markets: Mapping[str, Market]
    config: GlobalConfig
    ptoken: Ptoken

    def value(self, amount: int, asset_id: str) -> Decimal:
        """USD of an amount in denom units."""
        asset, price = self.assets.get(asset_id), self.prices.get(asset_id)
        return ZERO if asset is None or price is None else usd_value(amount, asset.decimals_denom, price)


@dataclass(frozen=True, slots=True)
class Debt:
    """What is owed of an asset, and at what rate."""

    asset_id: str
    principal: int
    shares: int
    market_rate: MarketRate


@dataclass(frozen=True, slots=True)
class BorrowTotals:
    """Collaterals and debts, and the mean rate of the debts weighted by value."""

    collaterals: tuple[Claim, ...]
    debts: tuple[Debt, ...]
    debts_net_rate: MarketRate


@dataclass(frozen=True, slots=True)
class BorrowAccount:
    """A borrow account, its collaterals and debts, and its health."""

    index: int
    own: BorrowTotals
    health: Health


@dataclass(frozen=True, slots=True)
class Receipts:
    """An amount in the wallet and one posted as collateral."""

    held: int
    collateralized: int

    @property
    def total(self) -> int:
        """Both together."""
        return self.held + self.collateralized


@dataclass(frozen=True, slots=True)
class LendPool:
    """A lent asset: its receipt tokens, and how much of the asset those redeem."""

    asset_id: str
    market_rate: MarketRate
    receipt_amounts: Receipts
    origin_equivalent: Receipts


@dataclass(frozen=True, slots=True)
class WalletBalance:
    """An amount in the wallet; `kind` says whether the service knows the asset."""

    asset_id: str
    amount: int
    kind: Literal["known", "unknown"]


@dataclass(frozen=True, slots=True)
class StakedPool:
    """An address's stakes in one staking pool."""

    pool: StakingPool
    amount_sum: int
    contents: tuple[Stake, ...]


@dataclass(frozen=True, slots=True)
class Staking:
    """An address's protocol token at stake, on its way out, and earned."""

    asset_id: str
    bonding_sum: int
    pools: tuple[StakedPool, ...]
    unbonding_sum: int
    unbondings: tuple[Unbonding, ...]
    unclaimed: int
    claimable_rewards: int
    claimable_unbonding: int


@dataclass(frozen=True, slots=True)
class Unlock:
    """An unlock arrangement and its amounts as of an instant."""

    arrangement: Arrangement
    amounts: UnlockAmounts


@dataclass(frozen=True, slots=True)
class Unlocks:
    """An address's unlock arrangements, their sums, and when it last claimed; never is None."""

    asset_id: str
    arrangements: tuple[Unlock, ...]
    totals: UnlockAmounts
    last_claimed_at: datetime | None


@dataclass(frozen=True, slots=True)
class Portfolio:
    """Everything of one address. `wallet_value` is the USD of its known balances."""

    accounts: tuple[BorrowAccount, ...]
    totals: BorrowTotals
    lends: tuple[LendPool, ...]
    lend_net_rate: MarketRate
    wallet: tuple[WalletBalance, ...]
    wallet_value: Decimal
    staking: Staking
    unlocks: Unlocks


def portfolio(position: Position, arrangements: Sequence[Arrangement], world: World, at: datetime) -> Portfolio:
    """The portfolio of a position; `arrangements` are the address's own, their amounts are as of `at`."""
    accounts = tuple(_account(account, position.stakes, world) for account in position.accounts)
    lends = tuple(_lend_pool(lent, world) for lent in position.lends)
    wallet = tuple(
        WalletBalance(one.asset_id, one.amount, "known" if one.asset_id in world.assets else "unknown")
        for one in position.wallet
    )
    return Portfolio(
        accounts=accounts,
        totals=_borrow_totals(
            claim_totals(claim for account in accounts for claim in account.own.collaterals),
            claim_totals(Claim(debt.asset_id, debt.principal, debt.shares) for a in accounts for debt in a.own.debts),
            world,
        ),
        lends=lends,
        lend_net_rate=net_rate(
            (world.value(lent.origin_equivalent.total, lent.asset_id), lent.market_rate.apr) for lent in lends
        ),
        wallet=wallet,
        wallet_value=total(world.value(one.amount, one.asset_id) for one in wallet),
        staking=_staking(position, world.ptoken),
        unlocks=_unlocks(arrangements, world.ptoken.asset_id, at),
    )


def _account(account: Account, stakes: tuple[Stake, ...], world: World) -> BorrowAccount:
    own = _borrow_totals(
        collateral_claims(account.collaterals, world.markets),
        debt_claims(account.debts, world.markets),
        world,
    )
    return BorrowAccount(account.index, own, _health(account.index, own, stakes, world))


def _health(index: int, own: BorrowTotals, stakes: tuple[Stake, ...], world: World) -> Health:
    ptoken = world.ptoken
    decimals, price = world.assets[ptoken.asset_id].decimals_denom, world.prices.get(ptoken.asset_id, ZERO)
    pools = {pool.index: pool for pool in ptoken.pools}
    return account_health(
        [(world.value(one.principal, one.asset_id), _liquidation_ltv(one, world)) for one in own.collaterals],
        total(world.value(debt.principal, debt.asset_id) for debt in own.debts),
        health_weighted_value(stakes, index, pools, decimals, price),
        world.config,
    )


def _liquidation_ltv(claim: Claim, world: World) -> Decimal:
    market = world.markets.get(claim.asset_id)
    return market.collateral.config.liquidation_ltv if market and market.collateral else ZERO


def _borrow_totals(collaterals: tuple[Claim, ...], debts: Iterable[Claim], world: World) -> BorrowTotals:
    owed = tuple(
        Debt(one.asset_id, one.principal, one.shares, _debt_rate(world.markets.get(one.asset_id))) for one in debts
    )
    net = net_rate((world.value(debt.principal, debt.asset_id), debt.market_rate.apr) for debt in owed)
    return BorrowTotals(collaterals, owed, net)


def _debt_rate(market: Market | None) -> MarketRate:
    return MarketRate(market.debt.apr) if market and market.debt else _NO_RATE


def _lend_pool(lent: LendPosition, world: World) -> LendPool:
    market = world.markets.get(lent.asset_id)
    lend = market.lend if market else None
    return LendPool(
        asset_id=lent.asset_id,
        market_rate=MarketRate(lend.apr) if lend else _NO_RATE,
        receipt_amounts=Receipts(lent.held, lent.collateralized),
        origin_equivalent=Receipts(_redeemed(lent.held, lend), _redeemed(lent.collateralized, lend)),
    )


def _redeemed(receipts: int, lend: LendMarket | None) -> int:
    return origin_equivalent(receipts, lend) if lend else 0


def _staking(position: Position, ptoken: Ptoken) -> Staking:
    """Pools in which the address has no stake are left out."""
    stakes = position.stakes
    return Staking(
        asset_id=ptoken.asset_id,
        bonding_sum=sum(stake.amount for stake in stakes),
        pools=tuple(
            StakedPool(
                pool,
                staked_in_pool(stakes, pool.index),
                tuple(one for one in stakes if one.pool == pool.index),
            )
            for pool in ptoken.pools
            if any(stake.pool == pool.index for stake in stakes)
        ),
        unbonding_sum=sum(one.amount for one in position.unbondings),
        unbondings=position.unbondings,
        unclaimed=position.unclaimed,
        claimable_rewards=position.claimable_rewards,
        claimable_unbonding=position.claimable_unbonding,
    )


def _unlocks(arrangements: Sequence[Arrangement], asset_id: str, at: datetime) -> Unlocks:
    unlocks = tuple(Unlock(one, unlock_amounts(one, at)) for one in arrangements)
    return Unlocks(
        asset_id=asset_id,
        arrangements=unlocks,
        totals=unlock_totals(unlock.amounts for unlock in unlocks),
        last_claimed_at=max((one.last_claimed_at for one in arrangements if one.last_claimed_at), default=None),
    )
