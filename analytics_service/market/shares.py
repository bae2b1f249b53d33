"""Amounts behind shares of a collateral or debt market."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from analytics_service.market.markets import CollateralMarket, DebtMarket, Market
from analytics_service.market.positions import Holding


@dataclass(frozen=True, slots=True)
class Claim:
    """An account's shares in an asset that it has posted or owes, and the `principal` in denom units behind them."""

    asset_id: str
    principal: int
    shares: int


def principal_of(shares: int, market: CollateralMarket | DebtMarket | None) -> int:
    """The part of a market's balance, in denom units, behind shares; 0 without a market or shares in it.

    Debts are rounded down too, so that the sum over all accounts never exceeds the balance.
    """
    return shares * market.balance // market.shares if market and market.shares else 0


def collateral_claims(holdings: Iterable[Holding], markets: Mapping[str, Market]) -> tuple[Claim, ...]:
    """Claims on collateral markets; `markets` are by asset id."""
    return tuple(
        _claim(holding, market.collateral if market else None) for holding, market in _pairs(holdings, markets)
    )


def debt_claims(holdings: Iterable[Holding], markets: Mapping[str, Market]) -> tuple[Claim, ...]:
    """Claims on debt markets; `markets` are by asset id."""
    return tuple(_claim(holding, market.debt if market else None) for holding, market in _pairs(holdings, markets))


def claim_totals(claims: Iterable[Claim]) -> tuple[Claim, ...]:
    """The sums of claims by asset, in ascending order of asset id."""
    sums: dict[str, Claim] = {}
    for claim in claims:
        before = sums.get(claim.asset_id, Claim(claim.asset_id, 0, 0))
        sums[claim.asset_id] = Claim(claim.asset_id, before.principal + claim.principal, before.shares + claim.shares)
    return tuple(sums[asset_id] for asset_id in sorted(sums))


def _pairs(holdings: Iterable[Holding], markets: Mapping[str, Market]) -> Iterator[tuple[Holding, Market | None]]:
    return ((holding, markets.get(holding.asset_id)) for holding in holdings)


def _claim(holding: Holding, market: CollateralMarket | DebtMarket | None) -> Claim:
    return Claim(holding.asset_id, principal_of(holding.shares, market), holding.shares)
