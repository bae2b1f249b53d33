"""Accounts with debt, in order of what they owe, what they have posted, or their health."""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Annotated, Literal

import polars as pl

from analytics_service.market.book import IS_OWING, NEAR, Valuation
from analytics_service.market.health import AccountValues
from analytics_service.market.kinds import Address, Index, Ratio, Usd
from analytics_service.market.liquidation import LiquidationPrice, Liquidations
from analytics_service.market.risk import health_of
from analytics_service.market.values import ZERO, fraction, known_rounded

# The greatest debt or collateral comes first, but the least health.
Order = Literal["debt", "health", "collateral"]


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
    """Some of the accounts with debt, and how many there are. Those of unknown health come last."""

    listed: Sequence[Borrower]
    count: int


def borrowers_of(valuation: Valuation, order: Order, limit: int, offset: int, address: str | None = None) -> Borrowers:
    """A page of the accounts with debt, of one (lower-case) address or of all. Those that are equal come in the order
    of address and index."""
    config = valuation.terms.config
    is_listed = pl.lit(True) if address is None else valuation.book.accounts["address"] == address
    rows = (
        valuation.sums.with_columns(health=health_of(config))
        .with_row_index("account")
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
    """The rows of a page, and those beside it whose floats are too close to tell their order."""
    is_apart = (pl.col("key").diff().abs() > pl.col("key") * NEAR).fill_null(True)
    numbered = rows.with_row_index("row").with_columns(run=is_apart.cum_sum())
    runs = numbered.slice(offset, limit)["run"]
    return numbered.filter(pl.col("run").is_between(runs.min(), runs.max()))


def _borrower(liquidations: Liquidations, valuation: Valuation, account: int, values: AccountValues) -> Borrower:
    address, index = valuation.book.accounts.row(account)
    collateral, debt = values.known("collateral"), values.known("debt")
    health = values.health(valuation.terms.config).result
    return Borrower(
        address=address,
        account_index=index,
        collateral_value=known_rounded(collateral),
        debt_value=known_rounded(debt),
        ltv=fraction(debt, collateral) if collateral and debt is not None else None,
        health=health,
        liquidation=liquidations.of(account, is_known=health is not None),
    )
