"""The portfolio of an address: its position with calculated amounts, rates and health (rules 6.4 and 6.5)."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from operator import attrgetter
from typing import Annotated, Literal, Protocol

from analytics_service.market.assets import Asset, unknown_asset
from analytics_service.market.health import Health, account_health, health_weighted_value
from analytics_service.market.kinds import Amount, AssetId
from analytics_service.market.markets import GlobalConfig, LendMarket, Market
from analytics_service.market.positions import Account, Balance, LendPosition, Position, Stake, Unbonding
from analytics_service.market.ptoken import Arrangement, Ptoken, StakingPool
from analytics_service.market.rates import MarketRate, NetRate, net_rate
from analytics_service.market.share import Part
from analytics_service.market.shares import Claim, claim_totals, collateral_claims, debt_claims, origin_equivalent
from analytics_service.market.unlocks import UnlockAmounts, unlock_amounts, unlock_totals
from analytics_service.market.values import ZERO, exact_value, rounded, total

_NO_RATE = MarketRate(ZERO)


class MarketContext(Protocol):
    """Everything that a portfolio depends on, other than the position itself. Mappings are by asset id.

    In sums, means and health, unknown assets and assets without a price count as 0 USD. Each mapping is read only if a
    part of the portfolio needs it.
    """

    @property
    def assets(self) -> Mapping[str, Asset]: ...

    @property
    def prices(self) -> Mapping[str, Decimal]: ...

    @property
    def markets(self) -> Mapping[str, Market]: ...

    @property
    def config(self) -> GlobalConfig: ...

    @property
    def ptoken(self) -> Ptoken: ...


@dataclass(frozen=True, slots=True)
class Debt(Claim):
    """Debt in an asset, and its rate."""

    market_rate: MarketRate


@dataclass(frozen=True)
class BorrowTotals:
    """Collaterals and debts."""

    collaterals: tuple[Claim, ...]
    debts: tuple[Debt, ...]
    context: MarketContext

    @Part
    def debts_net_rate(self) -> NetRate:
        return net_rate((_value(debt.principal, debt.asset_id, self.context), debt.market_rate) for debt in self.debts)


@dataclass(frozen=True)
class BorrowAccount:
    """A borrow account: its collaterals and debts, and its health. Both are calculated on first use.

    `stakes` are all stakes of the address, also those for its other accounts.
    """

    account: Account
    stakes: tuple[Stake, ...]
    context: MarketContext

    @property
    def index(self) -> int:
        return self.account.index

    @Part
    def totals(self) -> BorrowTotals:
        return _borrow_totals(
            collateral_claims(self.account.collaterals, self.context.markets),
            debt_claims(self.account.debts, self.context.markets),
            self.context,
        )

    @Part
    def health(self) -> Health:
        return _health(self.index, self.totals, self.stakes, self.context)


@dataclass(frozen=True, slots=True)
class SplitAmount:
    """Two parts of an amount."""

    held: Annotated[int, Amount("In the wallet")]
    collateralized: Annotated[int, Amount("Posted as collateral")]

    @property
    def total(self) -> int:
        return self.held + self.collateralized


@dataclass(frozen=True, slots=True)
class LendPool:
    """A lent asset: its receipt tokens, and the amount of the asset that they redeem."""

    asset_id: str
    market_rate: MarketRate
    receipt_amounts: SplitAmount
    origin_equivalent: SplitAmount


@dataclass(frozen=True, slots=True)
class WalletBalance:
    """A wallet's amount of an asset; `kind` says whether the service knows the asset."""

    asset_id: Annotated[str, AssetId("The asset")]
    amount: Annotated[int, Amount("The amount")]
    kind: Literal["known", "unknown"]


@dataclass(frozen=True, slots=True)
class StakedPool:
    """An address's stakes in a staking pool. `asset_id` is that of the protocol token."""

    asset_id: str
    pool: StakingPool
    amount_sum: Annotated[int, Amount("Sum of the stakes")]
    contents: tuple[Stake, ...]


@dataclass(frozen=True, slots=True)
class Staking:
    """An address's staked, unstaking and earned protocol token."""

    asset_id: str
    bonding_sum: Annotated[int, Amount("Sum of all stakes")]
    pools: tuple[StakedPool, ...]
    unbonding_sum: Annotated[int, Amount("Sum of the amounts")]
    unbondings: tuple[Unbonding, ...]
    position: Position


@dataclass(frozen=True, slots=True)
class Unlock:
    """An unlock arrangement and its amounts at an instant."""

    arrangement: Arrangement
    amounts: UnlockAmounts


@dataclass(frozen=True, slots=True)
class Unlocks:
    """An address's unlock arrangements, their sums, and the time of its last claim, if any."""

    asset_id: str
    arrangements: tuple[Unlock, ...]
    totals: UnlockAmounts
    last_claimed_at: datetime | None


@dataclass(frozen=True)
class Portfolio:
    """The position of an address with values, rates and health. Each part is calculated on first use."""

    position: Position
    context: MarketContext

    @Part
    def accounts(self) -> tuple[BorrowAccount, ...]:
        return tuple(BorrowAccount(account, self.position.stakes, self.context) for account in self.position.accounts)

    @Part
    def totals(self) -> BorrowTotals:
        return _totals_over(self.accounts, self.context)

    @Part
    def lends(self) -> tuple[LendPool, ...]:
        return tuple(_lend_pool(lend, self.context) for lend in self.position.lends)

    @Part
    def lend_net_rate(self) -> NetRate:
        return net_rate(
            (_value(lend.origin_equivalent.total, lend.asset_id, self.context), lend.market_rate) for lend in self.lends
        )

    @Part
    def wallet(self) -> tuple[WalletBalance, ...]:
        return tuple(_wallet_balance(balance, self.context) for balance in self.position.wallet)

    @Part
    def wallet_value(self) -> Decimal:
        """USD value of the balances of known assets."""
        return total(_value(balance.amount, balance.asset_id, self.context) for balance in self.wallet)

    @Part
    def staking(self) -> Staking:
        return _staking(self.position, self.context.ptoken)


@dataclass(frozen=True, slots=True)
class User:
    """Everything that an address has."""

    portfolio: Portfolio
    unlocks: Unlocks


def unlocks_at(arrangements: Sequence[Arrangement], asset_id: str, at: datetime) -> Unlocks:
    """The unlock arrangements of an address, with their amounts at an instant (rule 6.3).

    `asset_id` is that of the protocol token.
    """
    unlocks = tuple(Unlock(arrangement, unlock_amounts(arrangement, at)) for arrangement in arrangements)
    return Unlocks(
        asset_id=asset_id,
        arrangements=unlocks,
        totals=unlock_totals(unlock.amounts for unlock in unlocks),
        last_claimed_at=max(
            (arrangement.last_claimed_at for arrangement in arrangements if arrangement.last_claimed_at), default=None
        ),
    )


def _value(amount: int, asset_id: str, context: MarketContext) -> Decimal:
    return rounded(_exact_value(amount, asset_id, context))


def _exact_value(amount: int, asset_id: str, context: MarketContext) -> Decimal:
    asset, price = context.assets.get(asset_id), context.prices.get(asset_id)
    return ZERO if asset is None or price is None else exact_value(amount, asset.decimals_denom, price)


def _totals_over(accounts: Sequence[BorrowAccount], context: MarketContext) -> BorrowTotals:
    return _borrow_totals(
        claim_totals(claim for account in accounts for claim in account.totals.collaterals),
        claim_totals(debt for account in accounts for debt in account.totals.debts),
        context,
    )


def _health(index: int, totals: BorrowTotals, stakes: tuple[Stake, ...], context: MarketContext) -> Health:
    ptoken = context.ptoken
    asset = context.assets.get(ptoken.asset_id) or unknown_asset(ptoken.asset_id)
    price = context.prices.get(ptoken.asset_id, ZERO)
    pools = {pool.index: pool for pool in ptoken.pools}
    return account_health(
        [
            (_exact_value(claim.principal, claim.asset_id, context), _liquidation_ltv(claim, context))
            for claim in totals.collaterals
        ],
        total(_exact_value(debt.principal, debt.asset_id, context) for debt in totals.debts),
        health_weighted_value(stakes, index, pools, asset.decimals_denom, price),
        context.config,
    )


def _liquidation_ltv(claim: Claim, context: MarketContext) -> Decimal:
    market = context.markets.get(claim.asset_id)
    return market.collateral.config.liquidation_ltv if market and market.collateral else ZERO


def _borrow_totals(collaterals: tuple[Claim, ...], claims: Iterable[Claim], context: MarketContext) -> BorrowTotals:
    debts = tuple(
        Debt(claim.asset_id, claim.principal, claim.shares, _debt_rate(context.markets.get(claim.asset_id)))
        for claim in claims
    )
    return BorrowTotals(collaterals, debts, context)


def _debt_rate(market: Market | None) -> MarketRate:
    return MarketRate(market.debt.apr) if market and market.debt else _NO_RATE


def _lend_pool(position: LendPosition, context: MarketContext) -> LendPool:
    market = context.markets.get(position.asset_id)
    lend = market.lend if market else None
    return LendPool(
        asset_id=position.asset_id,
        market_rate=MarketRate(lend.apr) if lend else _NO_RATE,
        receipt_amounts=SplitAmount(position.held, position.collateralized),
        origin_equivalent=SplitAmount(_redeemed(position.held, lend), _redeemed(position.collateralized, lend)),
    )


def _redeemed(receipts: int, lend: LendMarket | None) -> int:
    return origin_equivalent(receipts, lend) if lend else 0


def _wallet_balance(balance: Balance, context: MarketContext) -> WalletBalance:
    kind: Literal["known", "unknown"] = "known" if balance.asset_id in context.assets else "unknown"
    return WalletBalance(balance.asset_id, balance.amount, kind)


def _staking(position: Position, ptoken: Ptoken) -> Staking:
    """The address's staking, earliest unlocks first. Pools without a stake of the address are left out."""
    pools = (_staked_pool(pool, position.stakes, ptoken.asset_id) for pool in ptoken.pools)
    return Staking(
        asset_id=ptoken.asset_id,
        bonding_sum=sum(stake.amount for stake in position.stakes),
        pools=tuple(pool for pool in pools if pool.contents),
        unbonding_sum=sum(unbonding.amount for unbonding in position.unbondings),
        unbondings=tuple(sorted(position.unbondings, key=attrgetter("unlock_at", "amount"))),
        position=position,
    )


def _staked_pool(pool: StakingPool, stakes: Iterable[Stake], asset_id: str) -> StakedPool:
    contents = tuple(stake for stake in stakes if stake.pool == pool.index)
    return StakedPool(asset_id, pool, sum(stake.amount for stake in contents), contents)
