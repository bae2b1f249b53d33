"""The portfolio of an address: its position with amounts, rates and health (rules 6.4 and 6.5)."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from enum import StrEnum
from operator import attrgetter
from typing import Annotated, Protocol

from analytics_service.market.account_health import (
    INFINITE,
    AccountValues,
    Group,
    Health,
    Rules,
    account_values,
    unit_of,
)
from analytics_service.market.decimals import (
    ZERO,
    as_fraction,
    known_rounded,
    known_total,
    known_value,
    quantize_below_limit,
)
from analytics_service.market.kinds import Amount
from analytics_service.market.lazy import cached_attribute
from analytics_service.market.positions import Account, Holding, Position, Stake, Unbonding
from analytics_service.market.prices import Prices
from analytics_service.market.ptoken import Arrangement, StakingPool, UnlockAmounts, unlock_amounts, unlock_totals
from analytics_service.market.rates import MarketRate, UnknownRate, net_rate, rate_of
from analytics_service.market.receipts import (
    LenderClaim,
    Redemption,
    claim_totals,
    claims_of,
    lends_of,
    origin_equivalent,
    redemptions,
)


class MarketContext(Rules, Protocol):
    """Inputs of a portfolio, other than the position. Each mapping is read only if a part of the portfolio needs it.

    In sums, means and health, unknown assets and assets that never had a price count as 0 USD, but a debt without a
    price makes health unknown. A lost price makes every result that contains it unknown.
    """

    @property
    def prices(self) -> Prices: ...


@dataclass(frozen=True, slots=True)
class Collateral(LenderClaim):
    """Collateral of an account in an asset, with its holding, which may have terms of its own."""

    holding: Holding


@dataclass(frozen=True, slots=True)
class Debt(LenderClaim):
    market_rate: MarketRate


@dataclass(frozen=True)
class BorrowTotals:
    """Collaterals and debts."""

    collaterals: tuple[LenderClaim, ...]
    debts: tuple[Debt, ...]
    context: MarketContext

    @classmethod
    def of(
        cls, collaterals: tuple[LenderClaim, ...], owed: Iterable[LenderClaim], context: MarketContext
    ) -> "BorrowTotals":
        rated = ((debt, getattr(context.markets.get(debt.asset_id), "debt", None)) for debt in owed)
        debts = (Debt(debt.asset_id, debt.principal, debt.shares, rate_of(market)) for debt, market in rated)
        return cls(collaterals, tuple(debts), context)

    @cached_attribute
    def debts_net_rate(self) -> MarketRate | UnknownRate:
        return net_rate(
            (known_rounded(value_of(debt.principal, debt.asset_id, self.context)), debt.market_rate)
            for debt in self.debts
        )


@dataclass(frozen=True)
class BorrowAccount:
    """A borrow account: its collaterals, debts and health, computed on first use. `stakes` are all stakes of the
    address, for any account."""

    account: Account
    stakes: tuple[Stake, ...]
    context: MarketContext

    @property
    def index(self) -> int:
        return self.account.index

    @cached_attribute
    def totals(self) -> BorrowTotals:
        markets, held = self.context.markets, self.account.collaterals
        return BorrowTotals.of(
            tuple(
                Collateral(claim.asset_id, claim.principal, claim.shares, holding)
                for claim, holding in zip(claims_of(held, markets, "collateral"), held, strict=True)
            ),
            claims_of(self.account.debts, markets, "debt"),
            self.context,
        )

    @cached_attribute
    def values(self) -> AccountValues:
        """The exact values of collaterals, debts, and stakes for the account."""
        items = [
            *(
                (Group("collateral", held.asset_id, own_ltv=held.liquidation_ltv), claim.principal)
                for held, claim in zip(self.account.collaterals, self.totals.collaterals, strict=True)
            ),
            *((Group("debt", owed.asset_id), owed.principal) for owed in self.totals.debts),
            *(
                (Group("stake", pool=stake.pool), stake.amount)
                for stake in self.stakes
                if stake.account_index == self.index
            ),
        ]
        context = self.context
        return account_values((group, unit_of(group, context, context.prices), amount) for group, amount in items)

    @property
    def health(self) -> Health:
        return self.values.health(self.context.config)


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
class AccountClaim:
    """An asset posted or owed by one borrow account."""

    index: int
    claim: LenderClaim


@dataclass(frozen=True, slots=True)
class AssetPosition:
    """The collaterals, debts and deposit of an address in an asset."""

    asset_id: str
    collaterals: Sequence[AccountClaim]
    debts: Sequence[AccountClaim]
    lend: LendPool | None


@dataclass(frozen=True, slots=True)
class StakedPool:
    """An address's stakes in a staking pool. `asset_id` names the protocol token."""

    asset_id: str
    pool: StakingPool
    contents: tuple[Stake, ...]

    @property
    def amount_sum(self) -> int:
        return sum(stake.amount for stake in self.contents)


@dataclass(frozen=True, slots=True)
class Staking:
    """An address's staked, unstaking and earned protocol token, earliest unlocks first."""

    asset_id: str
    position: Position
    pools: Sequence[StakedPool]
    unbondings: Sequence[Unbonding]

    @property
    def bonding_sum(self) -> int:
        return sum(stake.amount for stake in self.position.stakes)

    @property
    def unbonding_sum(self) -> int:
        return sum(unbonding.amount for unbonding in self.unbondings)


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
    """The position of an address with values, rates and health. Each part is computed on first use."""

    position: Position
    context: MarketContext

    @cached_attribute
    def accounts(self) -> tuple[BorrowAccount, ...]:
        return tuple(BorrowAccount(account, self.position.stakes, self.context) for account in self.position.accounts)

    @cached_attribute
    def totals(self) -> BorrowTotals:
        return BorrowTotals.of(
            claim_totals(claim for account in self.accounts for claim in account.totals.collaterals),
            claim_totals(debt for account in self.accounts for debt in account.totals.debts),
            self.context,
        )

    @cached_attribute
    def redeemed(self) -> Mapping[str, Redemption]:
        return redemptions(self.context.assets, self.context.markets.values())

    @cached_attribute
    def lends(self) -> Sequence[LendPool]:
        pools = []
        origins = {token_id: redemption.asset_id for token_id, redemption in self.redeemed.items()}
        for lent in lends_of(self.position, origins, lambda: self.context.markets):
            market, assets = getattr(self.context.markets.get(lent.asset_id), "lend", None), self.context.assets
            asset = assets.get(lent.asset_id)
            token = assets.get(asset.receipt_asset) if asset and asset.receipt_asset else None
            redeemed = [
                origin_equivalent(part, market, asset, token) if market else 0
                for part in (lent.held, lent.collateralized)
            ]
            receipts = SplitAmount(lent.held, lent.collateralized)
            pools.append(LendPool(lent.asset_id, rate_of(market), receipts, SplitAmount(*redeemed)))
        return pools

    @cached_attribute
    def lend_net_rate(self) -> MarketRate | UnknownRate:
        return net_rate(
            (known_rounded(value_of(lend.origin_equivalent.total, lend.asset_id, self.context)), lend.market_rate)
            for lend in self.lends
        )

    @cached_attribute
    def by_asset(self) -> Sequence[AssetPosition]:
        """The address's assets in the markets, in ascending order of id. Claims are in the order of accounts."""
        posted: dict[str, list[AccountClaim]] = defaultdict(list)
        owed: dict[str, list[AccountClaim]] = defaultdict(list)
        for account in self.accounts:
            for claim in account.totals.collaterals:
                posted[claim.asset_id].append(AccountClaim(account.index, claim))
            for debt in account.totals.debts:
                owed[debt.asset_id].append(AccountClaim(account.index, debt))
        lends = {lend.asset_id: lend for lend in self.lends}
        return [
            AssetPosition(asset_id, posted.get(asset_id, ()), owed.get(asset_id, ()), lends.get(asset_id))
            for asset_id in sorted({*posted, *owed, *lends})
        ]

    @cached_attribute
    def wallet_value(self) -> Decimal | None:
        """USD value of the balances of known assets; None if a price is unknown."""
        values = (held_value(balance.amount, balance.asset_id, self.context) for balance in self.position.wallet)
        return known_total(map(known_rounded, values))

    @cached_attribute
    def staking(self) -> Staking:
        """The staking of the address, without pools that have no stake of it."""
        position, ptoken = self.position, self.context.ptoken
        stakes = (
            (pool, tuple(stake for stake in position.stakes if stake.pool == pool.index)) for pool in ptoken.pools
        )
        return Staking(
            ptoken.asset_id,
            position,
            [StakedPool(ptoken.asset_id, pool, contents) for pool, contents in stakes if contents],
            sorted(position.unbondings, key=attrgetter("unlock_at", "amount")),
        )


def unlocks_at(arrangements: Sequence[Arrangement], asset_id: str, at: datetime) -> Unlocks:
    """The unlock arrangements of an address, with their amounts at an instant (rule 6.3, unlock schedules). `asset_id`
    names the protocol token."""
    unlocks = tuple(Unlock(arrangement, unlock_amounts(arrangement, at)) for arrangement in arrangements)
    return Unlocks(
        asset_id=asset_id,
        arrangements=unlocks,
        totals=unlock_totals(unlock.amounts for unlock in unlocks),
        last_claimed_at=max(
            (arrangement.last_claimed_at for arrangement in arrangements if arrangement.last_claimed_at), default=None
        ),
    )


def value_of(amount: int, asset_id: str, context: MarketContext) -> Decimal | None:
    """The exact value; None if the asset has lost its price (rule 4.8, known prices)."""
    asset = context.assets.get(asset_id)
    return known_value(amount, asset.decimals_denom, context.prices.get(asset_id, ZERO)) if asset else ZERO


def held_value(amount: int, asset_id: str, context: MarketContext) -> Decimal | None:
    """The exact value of an amount outside of borrow accounts; None also for an asset that has ended."""
    asset = context.assets.get(asset_id)
    return None if amount and asset and asset.ended_at else value_of(amount, asset_id, context)


class Metric(StrEnum):
    """A figure of a position: USD values, the least health, and debt divided by collateral."""

    NET_VALUE = "net-value"
    COLLATERAL = "collateral"
    DEBT = "debt"
    DEPOSITS = "deposits"
    HEALTH = "health"
    LTV = "ltv"


# Metrics that also exist for a single borrow account.
OF_ACCOUNTS = (Metric.COLLATERAL, Metric.DEBT, Metric.HEALTH, Metric.LTV)
# Metrics that staked protocol token increases.
WITH_STAKES = (Metric.NET_VALUE, Metric.HEALTH)


def portfolio_metrics(metric: Metric, portfolio: Portfolio, account: int | None = None) -> Decimal | None:
    """The metric of a portfolio, or of a borrow account, with 18 decimals; None if unknown, infinite, or 10^20 or
    more."""
    value = _compute_metrics(metric, portfolio, [each for each in portfolio.accounts if account in (None, each.index)])
    return None if value is None else quantize_below_limit(value)


def _compute_metrics(metric: Metric, portfolio: Portfolio, accounts: list[BorrowAccount]) -> Decimal | None:
    if metric is Metric.HEALTH:
        results = [account.health.result for account in accounts]
        return None if None in results else min((result for result in results if result is not None), default=INFINITE)
    if metric is Metric.DEPOSITS:
        return _deposits(portfolio, "total")
    posted = known_total(account.values.known("collateral") for account in accounts)
    if metric is Metric.COLLATERAL:
        return posted
    owed = known_total(account.values.known("debt") for account in accounts)
    if metric is Metric.DEBT:
        return owed
    if metric is Metric.LTV:
        return as_fraction(owed, posted) if owed is not None and posted else None
    parts = (posted, _deposits(portfolio, "held"), _wallet(portfolio), _staked(portfolio), owed and owed.copy_negate())
    return known_total(parts)


def _deposits(portfolio: Portfolio, part: str) -> Decimal | None:
    """The value that receipt tokens redeem: in `total`, or only if `held`, since collateral includes the others."""
    context, values = portfolio.context, []
    for lend in portfolio.lends:
        is_known = held_value(getattr(lend.receipt_amounts, part), lend.asset_id, context) is not None
        value = value_of(getattr(lend.origin_equivalent, part), lend.asset_id, context)
        values.append(value if is_known else None)
    return known_total(values)


def _wallet(portfolio: Portfolio) -> Decimal | None:
    """The value of the wallet, without receipt tokens, which are deposits."""
    balances = (balance for balance in portfolio.position.wallet if balance.asset_id not in portfolio.redeemed)
    return known_total(held_value(balance.amount, balance.asset_id, portfolio.context) for balance in balances)


def _staked(portfolio: Portfolio) -> Decimal | None:
    """The value of protocol token that is staked, unstaking, or to be claimed."""
    position = portfolio.position
    amount = position.unclaimed + position.claimable_rewards + position.claimable_unbonding
    amount += sum(stake.amount for stake in position.stakes) + sum(leaving.amount for leaving in position.unbondings)
    return held_value(amount, portfolio.context.ptoken.asset_id, portfolio.context) if amount else ZERO
