"""Price observations."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from operator import attrgetter
from typing import Annotated

from analytics_service.market import kinds
from analytics_service.market.kinds import AssetId, Time

# USD per standard unit by asset id. None for an asset that has lost its price (rule 4.8, known prices); assets that
# never had a price are missing.
Prices = Mapping[str, Decimal | None]


@dataclass(frozen=True, slots=True)
class Price:
    """USD per standard unit of an asset; `observed_at` (aware, whole seconds) is the oracle's time of this price."""

    asset_id: Annotated[str, AssetId("Asset id")]
    observed_at: Annotated[datetime, Time("Instant at which the price was observed")]
    usd: Annotated[Decimal, kinds.PriceType("USD per standard unit")]


def newest_prices(prices: Iterable[Price]) -> dict[str, Price]:
    """The last price of each asset, by id; of simultaneous prices, the last in the list."""
    return {price.asset_id: price for price in sorted(prices, key=attrgetter("observed_at"))}


def usd_by_asset(prices: Iterable[Price]) -> dict[str, Decimal]:
    """The last price of each asset, by id, as stored (rule 2.12, whole seconds). OutOfRange if it cannot be stored."""
    return {asset_id: kinds.PriceType.encode(price.usd) for asset_id, price in newest_prices(prices).items()}


def price_change(before: Decimal, now: Decimal) -> Decimal | None:
    """The change of a price as a fraction of `before`, with 6 decimals, half to even; None if `before` is 0."""
    if not before:
        return None
    millionths = round((Fraction(now) / Fraction(before) - 1) * 10**6)
    return Decimal(millionths).scaleb(-6)


def known_prices(last: Iterable[Price], at: datetime, max_age: timedelta) -> dict[str, Decimal | None]:
    """The prices at an instant from the last price of each asset by then; None if it is too old (rule 4.8)."""
    return {price.asset_id: price.usd if at - price.observed_at <= max_age else None for price in last}
