"""What shares are worth: those of collateral and debt markets, and receipt tokens, which are shares of deposits."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Annotated, Literal

from analytics_service.market.assets import Asset
from analytics_service.market.kinds import Amount
from analytics_service.market.markets import CollateralMarket, DebtMarket, LendMarket, Market
from analytics_service.market.positions import Holding
from analytics_service.market.prices import Prices
from analytics_service.market.values import EXACT, ONE, fraction, rounded


def part_of(balance: int, shares: int, all_shares: int) -> int:
    """The part of a balance behind some of its shares, in denom units, rounded down; 0 if there are no shares.

    Debts are rounded down too, so that the sum over all accounts never exceeds the balance.
    """
    return shares * balance // all_shares if all_shares else 0


@dataclass(frozen=True, slots=True)
class Claim:
    """What an account has posted or owes in an asset."""

    asset_id: str
    principal: Annotated[int, Amount("Amount behind the shares")]
    shares: Annotated[int, Amount("Shares of the market's balance")]


def principal_of(shares: int, market: CollateralMarket | DebtMarket | None) -> int:
    """The part of a market's balance, in denom units, behind shares; 0 without a market or shares in it."""
    return part_of(market.balance, shares, market.shares) if market else 0


def claims_of(
    holdings: Iterable[Holding], markets: Mapping[str, Market], side: Literal["collateral", "debt"]
) -> tuple[Claim, ...]:
    """Claims on collateral or debt markets, which are by asset id."""
    sides = ((holding, getattr(markets.get(holding.asset_id), side, None)) for holding in holdings)
    return tuple(Claim(held.asset_id, principal_of(held.shares, market), held.shares) for held, market in sides)


def claim_totals(claims: Iterable[Claim]) -> tuple[Claim, ...]:
    """The sums of claims by asset, in ascending order of asset id."""
    sums: dict[str, Claim] = {}
    for claim in claims:
        before = sums.get(claim.asset_id, Claim(claim.asset_id, 0, 0))
        sums[claim.asset_id] = Claim(claim.asset_id, before.principal + claim.principal, before.shares + claim.shares)
    return tuple(sums[asset_id] for asset_id in sorted(sums))


def redemption_ratio(lend: LendMarket) -> Decimal:
    """Denom units of principal per denom unit of receipt token, at most 18 decimals; 1 if there are no receipts."""
    return fraction(lend.principal, lend.receipt_supply) if lend.receipt_supply else ONE


def origin_equivalent(receipts: int, lend: LendMarket) -> int:
    """Denom units of the lent asset that an amount of receipt tokens redeems, rounded down."""
    return part_of(lend.principal, receipts, lend.receipt_supply) if lend.receipt_supply else receipts


def receipt_price(origin_price: Decimal, lend: LendMarket) -> Decimal:
    """Price of a receipt token without an oracle price (rule 4.6), at most 18 decimals.

    The token has as many decimals as its origin.
    """
    return rounded(EXACT.multiply(origin_price, redemption_ratio(lend)))


def with_receipt_prices(
    quoted: Prices, assets: Mapping[str, Asset], markets: Iterable[Market]
) -> dict[str, Decimal | None]:
    """Prices by asset id: the quoted prices, and prices of receipt tokens that are not quoted but whose origin is. That
    of a receipt token is unknown if its origin's is.

    `assets` are by id, and `linked`. The `receipt_asset` of a market's asset names its receipt token.
    """
    prices = dict(quoted)
    for market in markets:
        asset = assets.get(market.asset_id)
        receipt = asset.receipt_asset if asset else None
        token = assets.get(receipt) if receipt else None
        has_ended = token is not None and token.ended_at is not None
        if market.lend and receipt and prices.get(receipt) is None and market.asset_id in quoted and not has_ended:
            origin_price = quoted[market.asset_id]
            prices[receipt] = None if origin_price is None else receipt_price(origin_price, market.lend)
    return prices
