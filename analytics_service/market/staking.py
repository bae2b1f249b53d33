"""The value that staked protocol token adds to the health of borrow accounts."""

from collections.abc import Iterable, Mapping
from decimal import Decimal

from analytics_service.market.positions import Stake
from analytics_service.market.ptoken import StakingPool
from analytics_service.market.values import EXACT, exact_value, total


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
