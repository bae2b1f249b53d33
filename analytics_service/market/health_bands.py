"""Between which bounds of health accounts are, and what several of them have and owe together."""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Annotated

import polars as pl

from analytics_service.market.book import IS_OWING, NEAR, Valuation
from analytics_service.market.health import Side
from analytics_service.market.kinds import Count, Usd
from analytics_service.market.markets import GlobalConfig
from analytics_service.market.values import EXACT, rounded, total


@dataclass(frozen=True, slots=True)
class Slice:
    """Some borrow accounts together."""

    accounts: Annotated[int, Count("Borrow accounts with debt")]
    collateral_value: Annotated[Decimal, Usd("USD value of their collateral")]
    debt_value: Annotated[Decimal, Usd("USD value of their debt")]


@dataclass(frozen=True, slots=True)
class BadDebt:
    """Debt that collateral does not cover."""

    accounts: Annotated[int, Count("Borrow accounts whose debt is worth more than their collateral")]
    value: Annotated[Decimal, Usd("USD by which it is worth more, in all")]


@dataclass(frozen=True, slots=True)
class Holdings:
    """Some accounts together: how many they are, and the sum of their amounts in each group, in denom units."""

    accounts: int
    amounts: Sequence[int]

    def value(self, valuation: Valuation, side: Side) -> Decimal:
        """The exact USD value of one side, not rounded."""
        return total(self.value_in(valuation, group) for group in valuation.book.groups_of(side))

    def value_in(self, valuation: Valuation, group: int) -> Decimal:
        """The exact USD value of one group, not rounded; 0 without a price."""
        return EXACT.multiply(self.amounts[group], valuation.units[group].value)

    def slice(self, valuation: Valuation) -> Slice:
        collateral, debt = (rounded(self.value(valuation, side)) for side in ("collateral", "debt"))
        return Slice(self.accounts, collateral, debt)

    def bad_debt(self, valuation: Valuation) -> BadDebt:
        """By how much their debt exceeds their collateral."""
        value = EXACT.subtract(self.value(valuation, "debt"), self.value(valuation, "collateral"))
        return BadDebt(self.accounts, rounded(value))


@dataclass(frozen=True, slots=True)
class HealthBands:
    """How healthy `accounts` are: three series with a value for each. `band` is the number of bounds that an account's
    health reaches; null without debt, or if its health is unknown. `is_bad` says whether its debt is worth more than
    its collateral."""

    accounts: pl.Series
    band: pl.Series
    is_bad: pl.Series


def health_bands(
    valuation: Valuation, sums: pl.DataFrame, bounds: Sequence[Decimal], accounts: pl.Series
) -> HealthBands:
    """Between which of the ascending bounds accounts are, exactly. `sums` are those of the accounts, or equal."""
    health, debt, excess = pl.col("health"), pl.col("debt"), pl.col("debt") - pl.col("collateral")
    edges = [float(bound) for bound in bounds]
    is_near = [(health - edge).abs() <= edge * NEAR for edge in edges]
    rows = sums.with_columns(health=health_of(valuation.terms.config)).select(
        band=pl.when(IS_OWING).then(pl.sum_horizontal((health >= edge).cast(pl.UInt32) for edge in edges)),
        is_bad=IS_OWING & (excess > 0),
        is_near=IS_OWING & pl.any_horizontal(*is_near, excess.abs() <= debt * NEAR),
    )
    band, is_bad, near = rows["band"], rows["is_bad"], rows["is_near"].arg_true()
    if near.len():
        exact = [valuation.values(account) for account in accounts.gather(near)]
        results = [values.health(valuation.terms.config).result for values in exact]
        band = band.scatter(near, [bisect_right(bounds, result) for result in results if result is not None])
        is_bad = is_bad.scatter(near, [values.debt > values.collateral for values in exact])
    return HealthBands(accounts, band, is_bad)


def health_of(config: GlobalConfig) -> pl.Expr:
    """The result of health (rule 6.4) from the columns of sums, as a float."""
    modifier, ratio = float(config.staking_health_modifier), float(config.stake_collateral_ratio)
    required = pl.col("collateral") * ratio
    part = pl.when(pl.col("staked") >= required).then(1.0).otherwise(pl.col("staked") / required)
    boost = pl.when(pl.col("collateral") > 0).then(part * modifier).otherwise(0.0)
    return pl.col("secured") / pl.col("debt") + boost
