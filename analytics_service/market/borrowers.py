"""Accounts with debt, in order of what they owe, what they have posted, or their health."""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Annotated, Literal

import polars as pl

from analytics_service.market.book import IS_OWING, NEAR, AccountValues, Valuation
from analytics_service.market.health_bands import health_of
from analytics_service.market.kinds import Address, Index, Ratio, Usd
from analytics_service.market.liquidation import LiquidationPrice, Liquidations
from analytics_service.market.values import fraction, rounded

# The greatest debt or collateral comes first, but the least health.
Order = Literal["debt", "health", "collateral"]


@dataclass(frozen=True, slots=True)
class Borrower:
    """A borrow account with debt."""

    address: Annotated[str, Address("Address of the user")]
    account_index: Annotated[int, Index("Position among the address's accounts")]
    collateral_value: Annotated[Decimal, Usd("USD value of its collateral")]
    debt_value: Annotated[Decimal, Usd("USD value of its debt")]
    ltv: Annotated[Decimal | None, Ratio("Debt divided by collateral; null without collateral")]
    health: Annotated[Decimal, Ratio("How safe it is; below 1 it can be liquidated")]
    liquidation: Sequence[LiquidationPrice]


@dataclass(frozen=True, slots=True)
class Borrowers:
    """Some of the accounts with debt, and how many there are. Accounts of unknown health are left out."""

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
        .filter(IS_OWING, is_listed)
        .select("account", key=pl.col(order))
        .sort("key", descending=order != "health", maintain_order=True)
    )
    candidates = _with_neighbours(rows, limit, offset)
    exact = [(account, valuation.values(account)) for account in candidates["account"]]

    def key(entry: tuple[int, AccountValues]) -> tuple[Decimal, int]:
        account, values = entry
        if order == "health":
            return values.health(config).result, account
        return (values.debt if order == "debt" else values.collateral).copy_negate(), account

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
    return Borrower(
        address=address,
        account_index=index,
        collateral_value=rounded(values.collateral),
        debt_value=rounded(values.debt),
        ltv=fraction(values.debt, values.collateral) if values.collateral else None,
        health=values.health(valuation.terms.config).result,
        liquidation=liquidations.of(account),
    )
