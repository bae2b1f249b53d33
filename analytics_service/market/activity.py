"""The number of users of the markets."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Activity:
    """Addresses with debt, borrow accounts with debt, and addresses that lend."""

    borrower_active: int
    borrower_account_active: int
    lender_active: int
