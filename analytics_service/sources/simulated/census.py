"""All users' positions at an instant, and their sums."""

import threading
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
    """All users who have joined by a second. Do not change the result: it is cached."""
    return _count_of(seed).at(second)


class _Count:
    """The census of the last requested second. Few users trade from one hour to another, so only the holdings of those
    who did are counted again."""

    def __init__(self, seed: str) -> None:
        self._seed = seed
        self._trades = [-1] * USERS
        self._positions: list[Position | None] = [None] * USERS
        self._sums = Census(())
        self._lock = threading.Lock()

    def at(self, second: int) -> Census:
        """The census as of a second, earlier or later than the last requested second."""
        with self._lock:
            for number, counted in enumerate(self._trades):
                last = trade(profile(self._seed, number), second)
                if last != counted:
                    current = position(self._seed, number, last) if last >= 0 else None
                    self._count(self._positions[number], -1)
                    self._count(current, 1)
                    self._trades[number], self._positions[number] = last, current
            sums = self._sums
            return Census(
                tuple(user_position for user_position in self._positions if user_position is not None),
                Counter(sums.collateral),
                Counter(sums.debt),
                Counter(sums.receipts),
                Counter(sums.bonded),
            )

    def _count(self, user_position: Position | None, times: int) -> None:
        """Add a user's holdings, times `times`, to the sums. Before the first trade there are none."""
        if user_position is None:
            return
        sums = self._sums
        for account in user_position.accounts:
            for holding in account.collaterals:
                sums.collateral[holding.asset_id] += times * holding.shares
            for holding in account.debts:
                sums.debt[holding.asset_id] += times * holding.shares
        for lent in user_position.lends:
            sums.receipts[lent.asset_id] += times * (lent.held + lent.collateralized)
        for stake in user_position.stakes:
            sums.bonded[stake.pool] += times * stake.amount


@lru_cache(maxsize=2)
def _count_of(seed: str) -> _Count:
    return _Count(seed)
