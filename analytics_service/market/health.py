"""Health of a borrow account (rule 6.4)."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Annotated

from analytics_service.market.kinds import Ratio
from analytics_service.market.markets import GlobalConfig, Market
from analytics_service.market.positions import Stake
from analytics_service.market.ptoken import StakingPool
from analytics_service.market.values import EXACT, ZERO, exact_value, fraction, total

INFINITE = Decimal("Infinity")


@dataclass(frozen=True, slots=True)
class Health:
    """An account's health. Without debt, base and result are infinite and boost is 0."""

    base: Annotated[Decimal, Ratio("Value of collateral, times its liquidation LTV, divided by value of debt")]
    boost: Annotated[Decimal, Ratio("What staked protocol token adds")]

    @property
    def result(self) -> Decimal:
        return EXACT.add(self.base, self.boost)


class UnknownHealth:
    """The health of an account that owes an asset without a price, or whose collateral has lost its price. So has its
    stake, if anything is owed."""

    base = boost = result = None


def liquidation_ltv(own: Decimal | None, market: Market | None) -> Decimal:
    """The liquidation LTV that counts for collateral: its own, else that of its market; 0 without either."""
    if own is not None:
        return own
    return market.collateral.config.liquidation_ltv if market and market.collateral else ZERO


def account_health(
    collaterals: Iterable[tuple[Decimal, Decimal]], debt: Decimal, staked: Decimal, config: GlobalConfig
) -> Health:
    """Health from pairs of collateral value and liquidation LTV, the value of debts, and that of the weighted stake.

    Values are in USD and not rounded; base and boost are rounded to 18 decimals. Debts worth 0 USD count as no debt.
    """
    if not debt:
        return Health(INFINITE, ZERO)
    pairs = list(collaterals)
    secured = total(EXACT.multiply(value, ltv) for value, ltv in pairs)
    return Health(fraction(secured, debt), _boost(total(value for value, _ in pairs), staked, config))


def _boost(collateral: Decimal, staked: Decimal, config: GlobalConfig) -> Decimal:
    """The boost grows with the stake, up to the modifier. Without collateral it is 0."""
    if not collateral:
        return ZERO
    required = EXACT.multiply(config.stake_collateral_ratio, collateral)
    if staked >= required:
        return config.staking_health_modifier
    return fraction(EXACT.multiply(config.staking_health_modifier, staked), required)


def health_weighted_value(
    stakes: Iterable[Stake],
    account_index: int,
    pools: Mapping[int, StakingPool],
    decimals: int,
    price: Decimal,
) -> Decimal:
    """USD value of the stakes on behalf of a borrow account, each times its pool's health weight; not rounded.

    `pools` are by index. Stakes in other pools do not count.
    """
    weighted = (
        EXACT.multiply(exact_value(stake.amount, decimals, price), pools[stake.pool].health_weight)
        for stake in stakes
        if stake.account_index == account_index and stake.pool in pools
    )
    return total(weighted)
