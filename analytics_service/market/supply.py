"""USD sums over all markets."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal

from analytics_service.market.assets import Asset, AssetKind
from analytics_service.market.markets import CollateralMarket, DebtMarket, Market
from analytics_service.market.values import EXACT, ZERO, total, usd_value


@dataclass(frozen=True, slots=True)
class SupplyPool:
    """USD value of balances and of shares."""

    balance: Decimal = ZERO
    shares: Decimal = ZERO

    def __add__(self, other: "SupplyPool") -> "SupplyPool":
        """The exact sum of two pools."""
        return SupplyPool(EXACT.add(self.balance, other.balance), EXACT.add(self.shares, other.shares))


@dataclass(frozen=True, slots=True)
class CollateralSupply:
    """Collateral in receipt tokens and in other assets. The lend supply counts the deposits behind receipt tokens."""

    non_receipt: SupplyPool
    receipt: SupplyPool

    @property
    def total(self) -> SupplyPool:
        """Collateral in all assets."""
        return self.non_receipt + self.receipt


@dataclass(frozen=True, slots=True)
class LendSupply:
    """USD value of all lend principal."""

    principal: Decimal


@dataclass(frozen=True, slots=True)
class Tvl:
    """Total value locked in USD, gross and net of debt."""

    tvl: Decimal
    net_tvl: Decimal


@dataclass(frozen=True, slots=True)
class Supply:
    """USD sums over all markets. Each amount's value is rounded to 18 decimals; the sums are exact."""

    borrow_collateral: CollateralSupply
    borrow_debt: SupplyPool
    lend: LendSupply

    @property
    def tvl(self) -> Tvl:
        """Collateral without receipt tokens, plus lend principal; the net value subtracts debt balances."""
        locked = EXACT.add(self.borrow_collateral.non_receipt.balance, self.lend.principal)
        return Tvl(tvl=locked, net_tvl=EXACT.subtract(locked, self.borrow_debt.balance))


def market_supply(markets: Iterable[Market], assets: Mapping[str, Asset], prices: Mapping[str, Decimal]) -> Supply:
    """The sums over the markets of known assets with a price; `assets` and `prices` are by asset id.

    `prices` must include those of receipt tokens: see `values.with_receipt_prices`.
    """
    pools = {"non_receipt": SupplyPool(), "receipt": SupplyPool(), "debt": SupplyPool()}
    principals: list[Decimal] = []
    for market in markets:
        asset, price = assets.get(market.asset_id), prices.get(market.asset_id)
        if asset is None or price is None:
            continue
        value = _valuer(asset.decimals_denom, price)
        if market.collateral:
            side = "receipt" if asset.kind is AssetKind.RECEIPT else "non_receipt"
            pools[side] += _pool(market.collateral, value)
        if market.debt:
            pools["debt"] += _pool(market.debt, value)
        if market.lend:
            principals.append(value(market.lend.principal))
    return Supply(
        CollateralSupply(pools["non_receipt"], pools["receipt"]), pools["debt"], LendSupply(total(principals))
    )


def _valuer(decimals: int, price: Decimal) -> Callable[[int], Decimal]:
    return lambda amount: usd_value(amount, decimals, price)


def _pool(market: CollateralMarket | DebtMarket, value: Callable[[int], Decimal]) -> SupplyPool:
    return SupplyPool(value(market.balance), value(market.shares))
