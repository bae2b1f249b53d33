"""Prices that a caller assumes instead of the oracle's."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Annotated

from analytics_service.errors import ParameterInvalid
from analytics_service.market.assets import id_of
from analytics_service.market.book import Valuation
from analytics_service.market.kinds import AssetId, Price
from analytics_service.market.prices import Prices
from analytics_service.market.values import EXACT, quantized_below_limit, rounded

_PARAMETER = "prices"


@dataclass(frozen=True, slots=True)
class PriceChange:
    """The assumed price of an asset, which is named by symbol or id: a change in percent of its price, or USD."""

    name: str
    number: Decimal
    is_percent: bool


@dataclass(frozen=True, slots=True)
class AssumedPrice:
    """A price that is assumed instead of the oracle's, or that follows from one."""

    asset_id: Annotated[str, AssetId("The asset")]
    price: Annotated[Decimal | None, Price("USD for one standard unit; null if there is no price")]
    assumed_price: Annotated[Decimal, Price("What was assumed instead")]


def changed(price: Decimal, percent: Decimal) -> Decimal:
    """A price after a change in percent, at most 18 decimals."""
    return rounded(EXACT.multiply(price, EXACT.scaleb(EXACT.add(percent, 100), -2)))


def assumed(changes: Iterable[PriceChange], valuation: Valuation) -> dict[str, Decimal]:
    """The assumed prices by asset id. That of a token which follows the price of its origin is one of the origin.

    EntityNotFound for a name of no asset. ParameterInvalid for a symbol of several assets, an asset that is named
    twice, a change of a price that does not exist, and a price of 10^20 or more.
    """
    result: dict[str, Decimal] = {}
    for change in changes:
        asset_id, price = _assumed(change, valuation)
        if asset_id in result:
            raise ParameterInvalid(_PARAMETER, f"{change.name[:100]!r} names an asset that has a price there already")
        if quantized_below_limit(price) is None:
            raise ParameterInvalid(_PARAMETER, f"the price of {change.name[:100]!r} must be below 10^20")
        result[asset_id] = rounded(price)
    return result


def _assumed(change: PriceChange, valuation: Valuation) -> tuple[str, Decimal]:
    """The asset whose price changes, and that price."""
    named = id_of(change.name, valuation.terms.assets, _PARAMETER)
    if not change.is_percent:
        asset_id, ratio = valuation.base_of(named)
        if not ratio:
            raise ParameterInvalid(_PARAMETER, f"{change.name[:100]!r} redeems nothing, so it has no other price")
        return asset_id, EXACT.divide(change.number, ratio)
    asset_id = valuation.underlying(named)
    if (present := valuation.known.get(asset_id)) is None:
        raise ParameterInvalid(_PARAMETER, f"{change.name[:100]!r} has no price to change; give one in USD")
    return asset_id, changed(present, change.number)


def assumed_prices(named: Collection[str], before: Prices, after: Prices) -> Sequence[AssumedPrice]:
    """The named assets, and those whose prices follow theirs, in the order of ids."""
    return [
        AssumedPrice(asset_id, before.get(asset_id), price)
        for asset_id, price in sorted(after.items())
        if price is not None and (asset_id in named or before.get(asset_id) != price)
    ]
