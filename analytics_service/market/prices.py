"""Price observations."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from operator import attrgetter

from analytics_service.errors import OutOfRange
from analytics_service.market.values import quantized_below_limit


@dataclass(frozen=True, slots=True)
class Price:
    """USD per standard unit of an asset; `observed_at` (aware, whole seconds) is the oracle's time of this price."""

    asset_id: str
    observed_at: datetime
    usd: Decimal


def quoted(prices: Iterable[Price]) -> dict[str, Decimal]:
    """The last price of each asset, by id, as it is stored (rule 2.12). OutOfRange if a price cannot be stored."""
    return {price.asset_id: quantize_price(price.usd) for price in sorted(prices, key=attrgetter("observed_at"))}


def quantize_price(usd: Decimal) -> Decimal:
    """The price with 18 decimals, rounded half to even (rule 2.12). OutOfRange outside [0, 10^20)."""
    price = quantized_below_limit(usd)
    if price is None or price < 0:
        raise OutOfRange(f"{usd} is not a price: it must be finite, not negative and below 10^20.")
    return price
