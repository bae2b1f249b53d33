"""Interest paid to lenders, as far as snapshots tell."""

from analytics_service.market.markets import LendMarket


def interest_held(lend: LendMarket) -> int:
    """Interest that the receipts now outstanding have earned since a redemption ratio of 1, in denom units."""
    return max(0, lend.principal - lend.receipt_supply)


def interest_since(before: LendMarket, now: LendMarket) -> int:
    """Interest that the receipts outstanding at an earlier snapshot earned until now, in denom units, rounded down.

    What they are worth more at the redemption ratio of now; 0 where the ratio fell, or where no receipts are left.
    """
    if not now.receipt_supply:
        return 0
    return max(0, before.receipt_supply * now.principal // now.receipt_supply - before.principal)
