"""How safe a borrow account is (decisions 6)."""

from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal

from analytics_service.market.markets import GlobalConfig
from analytics_service.market.values import EXACT, ONE, ZERO, fraction, rounded, total

INFINITE = Decimal("Infinity")


@dataclass(frozen=True, slots=True)
class Health:
    """An account's health: below 1 it can be liquidated. Infinite base and result, and no boost, without debt."""

    base: Decimal
    boost: Decimal

    @property
    def result(self) -> Decimal:
        """Base and boost together."""
        return EXACT.add(self.base, self.boost)


def account_health(
    collaterals: Iterable[tuple[Decimal, Decimal]], debt: Decimal, staked: Decimal, config: GlobalConfig
) -> Health:
    """Health from pairs of collateral value and liquidation LTV, and the values of debts and of the weighted stake.

    Values are USD; the parts have at most 18 decimals. An account has no debt when what it owes is worth nothing.
    """
    if not debt:
        return Health(INFINITE, ZERO)
    pairs = list(collaterals)
    secured = total(EXACT.multiply(value, ltv) for value, ltv in pairs)
    return Health(fraction(secured, debt), _boost(total(value for value, _ in pairs), staked, config))


def _boost(collateral: Decimal, staked: Decimal, config: GlobalConfig) -> Decimal:
    """Grows with the stake up to the modifier; without collateral there is nothing to boost."""
    if not collateral:
        return ZERO
    required = EXACT.multiply(config.stake_collateral_ratio, collateral)
    met = ONE if staked >= required else EXACT.divide(staked, required)
    return rounded(EXACT.multiply(config.staking_health_modifier, met))
