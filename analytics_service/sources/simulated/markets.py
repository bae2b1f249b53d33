"""The simulated markets: sums over all accounts, with accrued interest."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from decimal import Decimal

from analytics_service.market.instants import instant
from analytics_service.market.markets import CollateralMarket, DebtMarket, LendMarket, Market
from analytics_service.market.positions import LendPosition, Position, Unbonding
from analytics_service.sources.simulated.accrual import (
    accrued,
    borrow_rate,
    distributed_at,
    lend_rate,
    utilization,
)
from analytics_service.sources.simulated.census import Census, census
from analytics_service.sources.simulated.noise import UNIT
from analytics_service.sources.simulated.people import DESK_ADDRESS
from analytics_service.sources.simulated.terms import HALTED, HALTED_FROM, LENT, TERMS


@dataclass(frozen=True, slots=True)
class Pool:
    """Lent and borrowed amounts of an asset. The liquidity desk holds the receipts that no user holds (`desk`)."""

    principal: int
    receipts: int
    desk: int
    balance: int
    shares: int

    @property
    def used(self) -> int:
        """Utilization, in `UNIT`; 0 without principal."""
        return self.balance * UNIT // self.principal if self.principal else 0


def markets(seed: str, second: int) -> list[Market]:
    """Every market; before launch all are empty."""
    totals = census(seed, second)
    return [_market(seed, asset_id, second, totals) for asset_id in TERMS]


def positions(seed: str, second: int) -> Iterator[Position]:
    """The positions of all users who have joined, and of the liquidity desk."""
    totals = census(seed, second)
    for position in totals.positions:
        yield _unbonded(position, second)
    desks = ((asset_id, lent(seed, asset_id, second, totals).desk) for asset_id in LENT)
    lends = tuple(LendPosition(asset_id, held, 0) for asset_id, held in desks if held)
    if lends:
        yield Position(DESK_ADDRESS, lends=lends)


def lent(seed: str, asset_id: str, second: int, totals: Census) -> Pool:
    """Lent and borrowed amounts of an asset that can be borrowed.

    The desk lends the amount that brings utilization to the value in `accrual`, so that interest accrues at the shown
    rates. If users alone lend more than that, utilization is lower; it never reaches 1.
    """
    growth = accrued(seed, asset_id, second)
    shares, users = totals.debt[asset_id], totals.receipts[asset_id]
    balance = shares * growth.debt_index // UNIT
    target = balance * UNIT**2 // (utilization(seed, asset_id, distributed_at(second)) * growth.lend_index)
    receipts = max(target, users)
    return Pool(receipts * growth.lend_index // UNIT, receipts, receipts - users, balance, shares)


def _market(seed: str, asset_id: str, second: int, totals: Census) -> Market:
    terms = TERMS[asset_id]
    lend, debt = None, None
    if terms.debt:
        pool = lent(seed, asset_id, second, totals)
        lend = LendMarket(_fraction(lend_rate(asset_id, pool.used)), pool.principal, pool.receipts)
        halted = asset_id == HALTED and second >= HALTED_FROM
        debt = DebtMarket(
            config=replace(terms.debt, enabled=False) if halted else terms.debt,
            apr=_fraction(borrow_rate(asset_id, pool.used)),
            balance=pool.balance,
            shares=pool.shares,
            time_last_distributed_interest=instant(distributed_at(second)),
            utilization_accumulator=_fraction(accrued(seed, asset_id, second).utilization),
        )
    posted = totals.collateral[asset_id]
    collateral = CollateralMarket(terms.collateral, posted, posted) if terms.collateral else None
    return Market(asset_id, lend, collateral, debt)


def _fraction(of_units: int) -> Decimal:
    return Decimal(of_units).scaleb(-18)


def _unbonded(position: Position, second: int) -> Position:
    """The position after the unbondings that have finished since the last trade."""
    now = instant(second)
    if all(unbonding.unlock_at > now for unbonding in position.unbondings):
        return position
    waiting: list[Unbonding] = []
    claimable = position.claimable_unbonding
    for unbonding in position.unbondings:
        if unbonding.unlock_at > now:
            waiting.append(unbonding)
        else:
            claimable += unbonding.amount
    return replace(position, unbondings=tuple(waiting), claimable_unbonding=claimable)
