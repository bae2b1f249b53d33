"""All users' positions at an instant, and their sums."""

from collections import Counter
from dataclasses import dataclass, field
from functools import lru_cache

from analytics_service.market.positions import Position
from analytics_service.sources.simulated.holdings import position, trade
from analytics_service.sources.simulated.people import USERS, profile


@dataclass(frozen=True, slots=True)
class Census:
    """Positions after the last trades; sums of shares and receipt tokens by asset id, and of stakes by pool."""

    positions: tuple[Position, ...]
    collateral: Counter[str] = field(default_factory=Counter)
    debt: Counter[str] = field(default_factory=Counter)
    receipts: Counter[str] = field(default_factory=Counter)
    bonded: Counter[int] = field(default_factory=Counter)


@lru_cache(maxsize=8)
def census(seed: str, second: int) -> Census:
    """Everyone who has joined by a second. Do not change the result: it is cached."""
    trades = ((number, trade(profile(seed, number), second)) for number in range(USERS))
    result = Census(tuple(position(seed, number, last) for number, last in trades if last >= 0))
    for one in result.positions:
        _count(one, result)
    return result


def _count(one: Position, into: Census) -> None:
    for account in one.accounts:
        for held in account.collaterals:
            into.collateral[held.asset_id] += held.shares
        for owed in account.debts:
            into.debt[owed.asset_id] += owed.shares
    for lent in one.lends:
        into.receipts[lent.asset_id] += lent.held + lent.collateralized
    for stake in one.stakes:
        into.bonded[stake.pool] += stake.amount
