"""Accounts with debt, ordered by debt, collateral or health; and the liquidation price of each of their assets, while
all other prices stay.

Collateral C, secured value S, debt D and weighted stake W are linear in the price p of an asset and of the tokens that
follow it. With the modifier m and the ratio r of rule 6.4 (account health), health is S/D + m if W >= rC, else
S/D + mW/(rC). So it is 1 where S - (1 - m)D is 0, or rSC + mWD - rCD, a quadratic function of p.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from typing import Annotated, Literal

import polars as pl

from analytics_service.market.account_health import AccountValues, Unit
from analytics_service.market.book import IS_OWING, NEAR, Valuation
from analytics_service.market.decimals import (
    EXACT,
    ONE,
    ZERO,
    as_fraction,
    known_rounded,
    quantize_below_limit,
    round_decimal,
)
from analytics_service.market.kinds import Address, AssetId, Index, PriceType, Ratio, Usd
from analytics_service.market.markets import GlobalConfig
from analytics_service.market.risk import health_of

# The greatest debt or collateral, or the least health, comes first.
Order = Literal["debt", "health", "collateral"]
_add, _subtract, _multiply, _divide = EXACT.add, EXACT.subtract, EXACT.multiply, EXACT.divide
# Roots are rounded to the digits of EXACT; with a tolerance, a root on the border of both cases belongs to both.
_TOLERANCE = ONE.scaleb(-60)
# S, C, D and W.
_Numbers = tuple[Decimal, ...]


@dataclass(frozen=True, slots=True)
class LiquidationPrice:
    """The price of an asset at which a borrow account's health reaches 1, while other prices stay."""

    asset_id: Annotated[str, AssetId("The asset")]
    price: Annotated[Decimal | None, PriceType("The price, or the nearest of several; null if there is none")] = None
    change: Annotated[Decimal | None, Ratio("Change from the present price")] = None


@dataclass(frozen=True, slots=True)
class Borrower:
    """A borrow account with debt."""

    address: Annotated[str, Address("Address of the user")]
    account_index: Annotated[int, Index("Position among the address's accounts")]
    collateral_value: Annotated[Decimal | None, Usd("USD value of its collateral; null if a price in it was lost")]
    debt_value: Annotated[Decimal | None, Usd("USD value of its debt; null if it has no price")]
    ltv: Annotated[Decimal | None, Ratio("Debt divided by collateral; null without collateral, or if one is unknown")]
    health: Annotated[
        Decimal | None, Ratio("How safe it is; below 1 it can be liquidated; null if a price that it needs is unknown")
    ]
    liquidation: Sequence[LiquidationPrice]


@dataclass(frozen=True, slots=True)
class Borrowers:
    """A page of accounts with debt, and the number of all. Accounts of unknown health come last."""

    listed: Sequence[Borrower]
    count: int


class Liquidations:
    """Finds the liquidation prices of accounts."""

    def __init__(self, valuation: Valuation) -> None:
        self._valuation = valuation
        self._units: dict[str, tuple[list[Unit], list[Unit]]] = {}

    def of(self, account: int, *, is_known: bool) -> list[LiquidationPrice]:
        """The liquidation prices of the underlying assets of an account's collaterals, then of other debts, each by
        descending value. Without prices unless health is known."""
        of = partial(self._of_asset, account) if is_known else LiquidationPrice
        return [of(asset_id) for asset_id in self._assets_of(account)]

    def _assets_of(self, account: int) -> list[str]:
        units, groups = self._valuation.units, self._valuation.book.groups
        values: dict[str, dict[str, Decimal]] = {"collateral": {}, "debt": {}}
        for index, amount in self._valuation.book.items_of(account):
            if (group := groups[index]).side in values:
                side, value = values[group.side], _multiply(amount, units[index].value)
                asset_id = self._valuation.underlying(group.asset_id)
                side[asset_id] = _add(side.get(asset_id, ZERO), value)
        by_value = (
            asset_id for side in values.values() for asset_id in sorted(side, key=side.__getitem__, reverse=True)
        )
        return list(dict.fromkeys(by_value))

    def _of_asset(self, account: int, asset_id: str) -> LiquidationPrice:
        valuation, present = self._valuation, self._valuation.prices.get(asset_id)
        if present is None:
            return LiquidationPrice(asset_id)
        if asset_id not in self._units:
            self._units[asset_id] = valuation.units_along(asset_id)
        values = [valuation.values(account, units) for units in self._units[asset_id]]
        fixed, slope = ((each.secured, each.collateral, each.debt, each.staked) for each in values)
        prices = list(_reaching_one(fixed, slope, valuation.terms.config))
        nearest = min(prices, key=lambda price: _subtract(price, present).copy_abs(), default=None)
        if nearest is None or quantize_below_limit(nearest) is None:
            return LiquidationPrice(asset_id)
        price = round_decimal(nearest)
        return LiquidationPrice(asset_id, price, as_fraction(_subtract(price, present), present) if present else None)


def _reaching_one(fixed: _Numbers, slope: _Numbers, config: GlobalConfig) -> Iterator[Decimal]:
    """The prices above 0 at which an account has a health of 1."""
    modifier, ratio = config.staking_health_modifier, config.stake_collateral_ratio

    def at(price: Decimal) -> _Numbers:
        return tuple(_add(first, _multiply(each, price)) for first, each in zip(fixed, slope, strict=True))

    def capped(price: Decimal) -> Decimal:
        secured, _, debt, _ = at(price)
        return _subtract(secured, _multiply(_subtract(ONE, modifier), debt))

    def partial(price: Decimal) -> Decimal:
        secured, collateral, debt, staked = at(price)
        missing = _multiply(_multiply(ratio, collateral), _subtract(secured, debt))
        return _add(missing, _multiply(_multiply(modifier, staked), debt))

    for function, is_capped in ((capped, True), (partial, False)):
        for price in _roots(function):
            _, collateral, debt, staked = at(price)
            if price > 0 and collateral > 0 and debt > 0:
                required = _multiply(ratio, collateral)
                excess = _subtract(staked, required)
                if excess.copy_abs() <= _multiply(required, _TOLERANCE) or (excess > 0) == is_capped:
                    yield price


def _roots(function: Callable[[Decimal], Decimal]) -> list[Decimal]:
    """The real roots of a function of degree 2 or less; none if it is constant."""
    fixed, after, before = function(ZERO), function(ONE), function(ONE.copy_negate())
    square = _subtract(_divide(_add(after, before), 2), fixed)
    linear = _divide(_subtract(after, before), 2)
    if not square:
        return [_divide(fixed, linear).copy_negate()] if linear else []
    inner = _subtract(_multiply(linear, linear), _multiply(4, _multiply(square, fixed)))
    if inner < 0:
        return []
    # Adding numbers of the same sign loses no digits.
    half = _divide(_add(linear, EXACT.sqrt(inner).copy_sign(linear)), -2)
    return [_divide(half, square), *([_divide(fixed, half)] if half else [])]


def borrowers_of(valuation: Valuation, order: Order, limit: int, offset: int, address: str | None = None) -> Borrowers:
    """A page of the accounts with debt, of a (lower-case) address or of all. Ties are in the order of address and
    index."""
    config = valuation.terms.config
    is_listed = pl.lit(True) if address is None else valuation.book.accounts["address"] == address
    rows = (
        valuation.sums.with_columns(health=health_of(config))
        .filter(IS_OWING | (valuation.unknown & valuation.owing), is_listed)
        .select("account", key=pl.when(IS_OWING).then(pl.col(order)))
        .sort("key", descending=order != "health", nulls_last=True, maintain_order=True)
    )
    candidates = _with_neighbours(rows, limit, offset)
    exact = [(account, valuation.values(account)) for account in candidates["account"]]

    def key(entry: tuple[int, AccountValues]) -> tuple[bool, Decimal, int]:
        account, values = entry
        health = values.health(config).result
        if health is None:
            return True, ZERO, account
        if order == "health":
            return False, health, account
        return False, (values.debt if order == "debt" else values.collateral).copy_negate(), account

    first = offset - int(candidates["row"][0]) if exact else 0
    liquidations = Liquidations(valuation)
    page = sorted(exact, key=key)[first : first + limit]
    return Borrowers([_borrower(liquidations, valuation, *entry) for entry in page], rows.height)


def _with_neighbours(rows: pl.DataFrame, limit: int, offset: int) -> pl.DataFrame:
    """The rows of a page, and adjacent rows whose floats are too close to decide their order."""
    is_apart = (pl.col("key").diff().abs() > pl.col("key") * NEAR).fill_null(True)
    numbered = rows.with_row_index("row").with_columns(group=is_apart.cum_sum())
    groups = numbered.slice(offset, limit)["group"]
    return numbered.filter(pl.col("group").is_between(groups.min(), groups.max()))


def _borrower(liquidations: Liquidations, valuation: Valuation, account: int, values: AccountValues) -> Borrower:
    address, index = valuation.book.accounts.row(account)
    collateral, debt = values.known("collateral"), values.known("debt")
    health = values.health(valuation.terms.config).result
    return Borrower(
        address=address,
        account_index=index,
        collateral_value=known_rounded(collateral),
        debt_value=known_rounded(debt),
        ltv=as_fraction(debt, collateral) if collateral and debt is not None else None,
        health=health,
        liquidation=liquidations.of(account, is_known=health is not None),
    )
