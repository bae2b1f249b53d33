"""Who uses the markets."""

from collections.abc import Iterable
from dataclasses import dataclass

from analytics_service.market.positions import Position


@dataclass(frozen=True, slots=True)
class Activity:
    """Addresses with debt, borrow accounts with debt, and addresses that lend."""

    borrower_active: int
    borrower_account_active: int
    lender_active: int


def activity(positions: Iterable[Position]) -> Activity:
    """Counts over all positions. Holdings without shares and lend positions without receipts do not count."""
    borrowers = accounts = lenders = 0
    for position in positions:
        indebted = sum(any(debt.shares for debt in account.debts) for account in position.accounts)
        borrowers += indebted > 0
        accounts += indebted
        lenders += any(lent.held or lent.collateralized for lent in position.lends)
    return Activity(borrowers, accounts, lenders)
