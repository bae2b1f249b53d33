"""Prices that a caller assumes instead of the oracle's."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Annotated

from analytics_service.errors import ParameterInvalid
from analytics_service.market.assets import Asset, id_of
from analytics_service.market.kinds import AssetId, Price
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


def assumed(
    changes: Iterable[PriceChange], assets: Mapping[str, Asset], prices: Mapping[str, Decimal]
) -> dict[str, Decimal]:
    """The assumed prices by asset id. `assets` and `prices`, which have those of receipt tokens, are by asset id, too.

    EntityNotFound for a name of no asset. ParameterInvalid for a symbol of several assets, an asset that is named
    twice, a change of a price that does not exist, and a price of 10^20 or more.
    """
    result: dict[str, Decimal] = {}
    for change in changes:
        asset_id = id_of(change.name, assets, _PARAMETER)
        if asset_id in result:
            raise ParameterInvalid(_PARAMETER, f"{change.name[:100]!r} names an asset that has a price there already")
        if change.is_percent and asset_id not in prices:
            raise ParameterInvalid(_PARAMETER, f"{change.name[:100]!r} has no price to change; give one in USD")
        price = changed(prices[asset_id], change.number) if change.is_percent else change.number
        if quantized_below_limit(price) is None:
            raise ParameterInvalid(_PARAMETER, f"the price of {change.name[:100]!r} must be below 10^20")
        result[asset_id] = rounded(price)
    return result


def assumed_prices(
    named: Iterable[str], before: Mapping[str, Decimal], after: Mapping[str, Decimal]
) -> Sequence[AssumedPrice]:
    """The named assets, and those whose prices follow theirs, in the order of ids."""
    ids = {*named, *(asset_id for asset_id, price in after.items() if before.get(asset_id) != price)}
    return [AssumedPrice(asset_id, before.get(asset_id), after[asset_id]) for asset_id in sorted(ids)]
