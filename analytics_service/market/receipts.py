"""Receipt tokens: what they redeem, and what those that the oracle does not quote cost (rule 4.6)."""

from collections.abc import Iterable, Mapping
from decimal import Decimal

from analytics_service.market.assets import Asset
from analytics_service.market.markets import LendMarket, Market
from analytics_service.market.values import EXACT, ONE, fraction, rounded


def redemption_ratio(lend: LendMarket) -> Decimal:
    """Denom units of principal per denom unit of receipt token, at most 18 decimals; 1 if there are no receipts."""
    return fraction(lend.principal, lend.receipt_supply) if lend.receipt_supply else ONE


def origin_equivalent(receipts: int, lend: LendMarket) -> int:
    """Denom units of the lent asset that an amount of receipt tokens redeems, rounded down."""
    return receipts * lend.principal // lend.receipt_supply if lend.receipt_supply else receipts


def receipt_price(origin_price: Decimal, lend: LendMarket) -> Decimal:
    """Price of a receipt token without an oracle price (rule 4.6), at most 18 decimals.

    The token has as many decimals as its origin.
    """
    return rounded(EXACT.multiply(origin_price, redemption_ratio(lend)))


def with_receipt_prices(
    quoted: Mapping[str, Decimal], assets: Mapping[str, Asset], markets: Iterable[Market]
) -> dict[str, Decimal]:
    """Prices by asset id: the quoted prices, and prices of receipt tokens that are not quoted but whose origin is.

    `assets` are by id, and `linked`. The `receipt_asset` of a market's asset names its receipt token.
    """
    prices = dict(quoted)
    for market in markets:
        asset = assets.get(market.asset_id)
        receipt = asset.receipt_asset if asset else None
        if market.lend and receipt and receipt not in prices and market.asset_id in quoted:
            prices[receipt] = receipt_price(quoted[market.asset_id], market.lend)
    return prices
