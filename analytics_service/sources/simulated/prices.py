"""Oracle prices as a pure function of seed, listing and second."""

from decimal import Context, Decimal

from analytics_service.market.instants import DAY
from analytics_service.market.kinds import Price
from analytics_service.sources.simulated.noise import UNIT, wander
from analytics_service.sources.simulated.universe import Listing

# 2024-01-01: until then a liquid staking token is worth as much as its origin; from then on its value grows.
GENESIS = 1_704_067_200
_YEAR = 365 * DAY
# Enough for 18 decimals of prices up to 10^20. exp() is rounded correctly, so results are the same on every platform.
_CONTEXT = Context(prec=40)


def usd(seed: str, listing: Listing, second: int) -> Decimal:
    """USD per standard unit at a unix second, 18 decimals."""
    noise = wander(f"{seed}|{listing.follows}", second, listing.swings)
    growth = listing.growth * max(second - GENESIS, 0) // _YEAR
    factor = _CONTEXT.exp(_CONTEXT.divide(Decimal(noise + growth), Decimal(UNIT)))
    return Price.encode(_CONTEXT.multiply(listing.usd, factor))
