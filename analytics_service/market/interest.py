"""Interest paid to lenders, estimated from snapshots: principal and receipts of a market, in denom units."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Lent:
    """The principal that a lend market owes to lenders, and the receipts that they hold, in denom units."""

    principal: int
    receipts: int


def interest_held(lent: Lent) -> int:
    """Interest in denom units that the outstanding receipts have earned since their redemption ratio was 1."""
    return max(0, lent.principal - lent.receipts)


def interest_since(before: Lent, now: Lent) -> int:
    """Interest in denom units, rounded down, that the receipts of an earlier snapshot have earned since then.

    It is the rise of the amount that they redeem; 0 if the redemption ratio fell or no receipts are left.
    """
    if not now.receipts:
        return 0
    return max(0, before.receipts * now.principal // now.receipts - before.principal)
