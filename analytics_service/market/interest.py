"""Interest paid to lenders, estimated from snapshots."""

from analytics_service.market.markets import LendMarket


def interest_held(lend: LendMarket) -> int:
    """Interest in denom units that the outstanding receipts have earned since their redemption ratio was 1."""
    return max(0, lend.principal - lend.receipt_supply)


def interest_since(before: LendMarket, now: LendMarket) -> int:
    """Interest in denom units, rounded down, that the receipts of an earlier snapshot have earned since then.

    It is the rise in what they redeem; 0 if the redemption ratio fell or no receipts are left.
    """
    if not now.receipt_supply:
        return 0
    return max(0, before.receipt_supply * now.principal // now.receipt_supply - before.principal)
