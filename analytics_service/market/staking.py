"""Protocol token at stake, and what it weighs."""

from collections.abc import Iterable, Mapping
from decimal import Decimal

from analytics_service.market.positions import Stake
from analytics_service.market.ptoken import StakingPool
from analytics_service.market.values import EXACT, ZERO, rounded, total, usd_value


def staked_in_pool(stakes: Iterable[Stake], pool: int) -> int:
    """Denom units of the stakes in one pool."""
    return sum(stake.amount for stake in stakes if stake.pool == pool)


def health_weighted_value(
    stakes: Iterable[Stake],
    account_index: int,
    pools: Mapping[int, StakingPool],
    decimals: int,
    price: Decimal,
) -> Decimal:
    """USD of what is staked on behalf of a borrow account, each stake times its pool's health weight; 18 decimals.

    `pools` are by index; a stake in a pool that is not among them weighs nothing.
    """
    weighed = (
        EXACT.multiply(usd_value(stake.amount, decimals, price), pools[stake.pool].health_weight)
        for stake in stakes
        if stake.account_index == account_index and stake.pool in pools
    )
    return rounded(total(weighed)) if price else ZERO
