"""USD values of markets, and sums over all of them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Annotated

from analytics_service.market.assets import Asset, AssetKind
from analytics_service.market.decimals import EXACT, ZERO, as_fraction, known_rounded, known_total, known_value
from analytics_service.market.kinds import Usd
from analytics_service.market.markets import CollateralMarket, DebtMarket, LendMarket, Market
from analytics_service.market.prices import Prices


@dataclass(frozen=True, slots=True)
class SupplyPool:
    """USD value of balances and of shares. Here and below, None means that a price is unknown (rule 4.8, known
    prices)."""

    balance: Annotated[Decimal | None, Usd("USD sum of balance")] = ZERO
    shares: Annotated[Decimal | None, Usd("USD sum of shares")] = ZERO

    def __add__(self, other: "SupplyPool") -> "SupplyPool":
        return SupplyPool(known_total([self.balance, other.balance]), known_total([self.shares, other.shares]))


@dataclass(frozen=True, slots=True)
class CollateralSupply:
    """Collateral in receipt tokens and in other assets. The lend supply counts the deposits behind receipt tokens."""

    non_receipt: SupplyPool
    receipt: SupplyPool

    @property
    def total(self) -> SupplyPool:
        return self.non_receipt + self.receipt


@dataclass(frozen=True, slots=True)
class LendSupply:
    """USD value of lend principal, without principal in receipt tokens, which would count twice."""

    principal: Annotated[Decimal | None, Usd("USD sum of lending principal")]


@dataclass(frozen=True, slots=True)
class Tvl:
    """Total value locked, gross and net of debt."""

    tvl: Annotated[Decimal | None, Usd("USD value of lend principal and of collateral other than receipt tokens")]
    net_tvl: Annotated[Decimal | None, Usd("The total value locked minus the balance of debts")]


@dataclass(frozen=True, slots=True)
class Supply:
    """USD sums over all markets. Values of amounts are rounded to 18 decimals; sums are exact."""

    borrow_collateral: CollateralSupply
    borrow_debt: SupplyPool
    lend: LendSupply

    @property
    def tvl(self) -> Tvl:
        """Collateral without receipt tokens, plus lend principal; the net value subtracts debt balances."""
        locked = known_total([self.borrow_collateral.non_receipt.balance, self.lend.principal])
        owed = self.borrow_debt.balance
        return Tvl(locked, None if locked is None or owed is None else EXACT.subtract(locked, owed))


@dataclass(frozen=True, slots=True)
class MarketValues:
    """USD values of an asset's markets, each rounded to 18 decimals; None for a missing market, and for deposits of a
    receipt token, which its origin's deposits include."""

    kind: AssetKind
    deposits: LendSupply | None
    collateral: SupplyPool | None
    debt: SupplyPool | None


def lent_first(market: Market, asset: Asset) -> LendMarket | None:
    """The lend market whose deposits count; None for a receipt token."""
    return None if asset.kind is AssetKind.RECEIPT else market.lend


def market_values(markets: Iterable[Market], assets: Mapping[str, Asset], prices: Prices) -> dict[str, MarketValues]:
    """The values of the markets of known assets that have, or had, a price, by asset id. `prices` must include prices
    of receipt tokens: see `with_receipt_prices`."""
    values: dict[str, MarketValues] = {}
    for market in markets:
        asset = assets.get(market.asset_id)
        if asset is not None and market.asset_id in prices:
            values[market.asset_id] = _values(market, asset, prices[market.asset_id])
    return values


def market_supply(markets: Iterable[Market], assets: Mapping[str, Asset], prices: Prices) -> Supply:
    """The sums over the markets of known assets; see `market_values` for the arguments."""
    return supply_of(market_values(markets, assets, prices).values())


def supply_of(values: Iterable[MarketValues]) -> Supply:
    listed = list(values)
    receipts = [market for market in listed if market.kind is AssetKind.RECEIPT]
    others = [market for market in listed if market.kind is not AssetKind.RECEIPT]
    return Supply(
        CollateralSupply(*(_sum(market.collateral for market in markets) for markets in (others, receipts))),
        _sum(market.debt for market in listed),
        LendSupply(known_total(market.deposits.principal for market in listed if market.deposits)),
    )


def _sum(pools: Iterable[SupplyPool | None]) -> SupplyPool:
    return sum((pool for pool in pools if pool), start=SupplyPool())


def utilization(market: Market) -> Decimal | None:
    """Debt divided by deposits, with at most 18 decimals; None without deposits. It needs no price, because both are
    amounts of one asset."""
    if market.lend is None or not market.lend.principal:
        return None
    return as_fraction(market.debt.balance if market.debt else 0, market.lend.principal)


def _values(market: Market, asset: Asset, price: Decimal | None) -> MarketValues:
    def value(amount: int) -> Decimal | None:
        return known_rounded(known_value(amount, asset.decimals_denom, price))

    def pool(side: CollateralMarket | DebtMarket) -> SupplyPool:
        return SupplyPool(value(side.balance), value(side.shares))

    return MarketValues(
        asset.kind,
        LendSupply(value(lend.principal)) if (lend := lent_first(market, asset)) else None,
        pool(market.collateral) if market.collateral else None,
        pool(market.debt) if market.debt else None,
    )
