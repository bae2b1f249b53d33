"""What a price observation is."""

from dataclasses import dataclass
from datetime import datetime
from decimal import ROUND_HALF_EVEN, Decimal, localcontext

PRICE_DECIMALS = 18
_QUANTUM = Decimal(1).scaleb(-PRICE_DECIMALS)
PRICE_LIMIT = Decimal(10) ** (38 - PRICE_DECIMALS)


@dataclass(frozen=True, slots=True)
class Price:
    """USD per standard unit of an asset, as the oracle last stated it at `observed_at` (aware, whole seconds)."""

    asset_id: str
    observed_at: datetime
    usd: Decimal


def quantize_price(usd: Decimal) -> Decimal:
    """The price with 18 decimals, half to even (decisions 2.12). ValueError outside [0, 10^20)."""
    with localcontext(prec=60):
        rounded = usd.quantize(_QUANTUM, rounding=ROUND_HALF_EVEN) if usd.is_finite() else usd
    if not rounded.is_finite() or rounded < 0 or rounded >= PRICE_LIMIT:
        raise ValueError(f"{usd} is not a price: it must be finite, not negative and below 10^20")
    return rounded
