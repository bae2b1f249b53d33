"""Amounts in USD, and fractions: exact decimal arithmetic, rounded once, half to even."""

from collections.abc import Iterable, Mapping
from decimal import ROUND_HALF_EVEN, Context, Decimal

from analytics_service.market.assets import Asset
from analytics_service.market.markets import LendMarket, Market

DECIMALS = 18
ZERO = Decimal(0)
ONE = Decimal(1)
_QUANTUM = ONE.scaleb(-DECIMALS)
# A 256-bit amount times a price has 116 digits; a quotient of two such, cut here, is never mistaken for a tie.
EXACT = Context(prec=300, rounding=ROUND_HALF_EVEN)
# Taken once: sums over all that an address has look them up too often.
_add, _multiply, _divide, _scaled = EXACT.add, EXACT.multiply, EXACT.divide, EXACT.scaleb
_quantized, _normalized = EXACT.quantize, EXACT.normalize


def rounded(value: Decimal) -> Decimal:
    """The value with at most 18 decimals, half to even, without trailing zeros."""
    return _normalized(_quantized(value, _QUANTUM))


def usd_value(amount: int, decimals: int, price: Decimal) -> Decimal:
    """USD value of an amount in denom units, 10^decimals of which have the price (decisions 4.2)."""
    return rounded(_scaled(_multiply(amount, price), -decimals))


def fraction(part: int | Decimal, whole: int | Decimal) -> Decimal:
    """Part / whole with at most 18 decimals; 0 where the whole is 0."""
    return rounded(_divide(part, whole)) if whole else ZERO


def total(values: Iterable[Decimal]) -> Decimal:
    """The exact sum; 0 of nothing."""
    result = ZERO
    for value in values:
        result = _add(result, value)
    return result


def redemption_ratio(lend: LendMarket) -> Decimal:
    """Denom units of principal for each of receipt token, at most 18 decimals; 1 while there are no receipts."""
    return fraction(lend.principal, lend.receipt_supply) if lend.receipt_supply else ONE


def origin_equivalent(receipts: int, lend: LendMarket) -> int:
    """Denom units of the lent asset that an amount of receipt tokens redeems, rounded down."""
    return receipts * lend.principal // lend.receipt_supply if lend.receipt_supply else receipts


def receipt_price(origin_price: Decimal, lend: LendMarket) -> Decimal:
    """Price of a receipt token that no oracle quotes (decisions 4.6), at most 18 decimals.

    The token has as many decimals as its origin.
    """
    return rounded(EXACT.multiply(origin_price, redemption_ratio(lend)))


def with_receipt_prices(
    quoted: Mapping[str, Decimal], assets: Mapping[str, Asset], markets: Iterable[Market]
) -> dict[str, Decimal]:
    """Prices by asset id: those quoted, and those of receipt tokens that are not but whose origin is.

    `assets` are by id; a receipt token is known by the `receipt_asset` of its origin.
    """
    prices = dict(quoted)
    for market in markets:
        asset = assets.get(market.asset_id)
        receipt = asset.receipt_asset if asset else None
        if market.lend and receipt and receipt not in prices and market.asset_id in quoted:
            prices[receipt] = receipt_price(quoted[market.asset_id], market.lend)
    return prices
