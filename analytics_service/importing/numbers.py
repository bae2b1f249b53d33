"""Parses values: plain decimals with a point or a comma, rounded half to even to 18 decimals."""

from dataclasses import dataclass
from decimal import Decimal

import polars as pl

from analytics_service.market.kinds import DECIMAL, LOWEST_RATE, RATE_LIMIT, Rate, Ratio
from analytics_service.store.datasets.histories import History

# Spellings of a missing value, in lower case.
NO_VALUE = ("", "null", "n/a", "nan", "\\n", ".")
_HUNDREDTH = r"^([^eE]*)(?:[eE](.*))?$"


@dataclass(frozen=True, slots=True)
class ValueRules:
    """How values are written: with a decimal comma, or in percent. `bound` is the upper limit of fractions."""

    comma: bool = False
    percent: bool = False
    bound: Decimal | None = None


def rules_of(history: History, *, comma: bool, percent: bool) -> ValueRules:
    """The rules of a history's values. Rates above 1 must be in percent, so that fractions can be distinguished."""
    return ValueRules(comma, percent, RATE_LIMIT if percent else Decimal(1) if may_be_percent(history) else None)


def may_be_percent(history: History) -> bool:
    """Whether values of a history are rates or ratios."""
    return isinstance(history.kind, (Rate, Ratio))


def is_missing(column: str) -> pl.Expr:
    """Whether a column has no value."""
    text = pl.col(column)
    return text.is_null() | text.str.strip_chars().str.to_lowercase().is_in(NO_VALUE)


def parse_values(texts: pl.Series, rules: ValueRules) -> pl.Series:
    """The values as DECIMAL; null for a text that is not a plain decimal below 10^20."""
    if not (rules.comma or rules.percent):
        values = texts.cast(DECIMAL, strict=False)
        return (
            values if values.null_count() == texts.null_count() else texts.str.strip_chars().cast(DECIMAL, strict=False)
        )
    text = pl.col("text").str.strip_chars()
    if rules.comma:
        text = pl.when(~text.str.contains(".", literal=True)).then(text.str.replace(",", ".", literal=True))
    if rules.percent:
        # Divided through the exponent, so that no digit is lost.
        parts = text.str.extract_groups(_HUNDREDTH).struct
        exponent = parts.field("2").fill_null("0").cast(pl.Int32, strict=False) - 2
        text = pl.format("{}e{}", parts.field("1"), exponent)
    return texts.to_frame("text").select(text.cast(DECIMAL, strict=False)).to_series()


def valid_values(history: History, rules: ValueRules, column: str) -> pl.Expr:
    """Whether values of a column are in the history's range; null or false without a value."""
    value = pl.col(column)
    lowest = _lowest(history)
    valid = value.is_not_null() if lowest is None else value >= lowest
    return valid & (value <= rules.bound) if rules.bound is not None else valid


def value_fault(history: History, rules: ValueRules) -> str:
    """The fault of an invalid value, and what to do."""
    unit, lowest = 100 if rules.percent else 1, _lowest(history)
    span = f"{'-10^20' if lowest is None else lowest * unit} to {rules.bound * unit if rules.bound else '10^20'}"
    options = "--decimal or --percent" if may_be_percent(history) else "--decimal"
    return f"is not a plain decimal from {span}; correct it, add {options}, or see the recipes"


def _lowest(history: History) -> Decimal | None:
    """The lowest value of a history; None if it has none."""
    if history.signed:
        return None
    return LOWEST_RATE if isinstance(history.kind, Rate) else Decimal(0)
