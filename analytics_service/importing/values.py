"""Values: plain decimals, with a point or a comma, as numbers of 18 decimals, half to even."""

import re
from dataclasses import dataclass
from decimal import Decimal

import polars as pl

from analytics_service.market.kinds import DECIMAL, LOWEST_RATE, RATE_LIMIT, Rate
from analytics_service.store.datasets.histories import NET_TVL, UTILIZATION, History

# Spellings of a missing value, in lower case.
NO_VALUE = ("", "null", "n/a", "nan", "\\n", ".")
_PLAIN = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,9})?")
_HUNDREDTH = r"^([^eE]*)(?:[eE](.*))?$"


@dataclass(frozen=True, slots=True)
class ValueRules:
    """How values are written: with a comma before decimals, or in percent. `bound` is what fractions may not exceed."""

    comma: bool = False
    percent: bool = False
    bound: Decimal | None = None


def rules_of(history: History, *, comma: bool, percent: bool) -> ValueRules:
    """The rules of a history's values. Rates above 1 are in percent, or else nobody could tell fractions from them."""
    return ValueRules(comma, percent, RATE_LIMIT if percent else Decimal(1) if may_be_percent(history) else None)


def may_be_percent(history: History) -> bool:
    """Whether values of a history are rates or ratios."""
    return isinstance(history.kind, Rate) or history is UTILIZATION


def is_missing(column: str) -> pl.Expr:
    """Whether a column has no value."""
    text = pl.col(column)
    return text.is_null() | text.str.strip_chars().str.to_lowercase().is_in(NO_VALUE)


def parse_values(texts: pl.Series, rules: ValueRules) -> pl.Series:
    """The values as DECIMAL; null for what is no plain decimal below 10^20."""
    if not (rules.comma or rules.percent):
        values = texts.cast(DECIMAL, strict=False)
        return (
            values if values.null_count() == texts.null_count() else texts.str.strip_chars().cast(DECIMAL, strict=False)
        )
    text = pl.col("text").str.strip_chars()
    if rules.comma:
        text = pl.when(~text.str.contains(".", literal=True)).then(text.str.replace(",", ".", literal=True))
    if rules.percent:
        # Divided by the exponent, so that no digit is lost.
        parts = text.str.extract_groups(_HUNDREDTH).struct
        exponent = parts.field("2").fill_null("0").cast(pl.Int32, strict=False) - 2
        text = pl.format("{}e{}", parts.field("1"), exponent)
    return texts.to_frame("text").select(text.cast(DECIMAL, strict=False)).to_series()


def valid_values(history: History, rules: ValueRules, column: str) -> pl.Expr:
    """Whether values of a column are in the range of a history; null where there is no value."""
    value = pl.col(column)
    lowest = LOWEST_RATE if isinstance(history.kind, Rate) else Decimal(0)
    valid = (value >= lowest) | pl.lit(value=history is NET_TVL)
    return valid & (value <= rules.bound) if rules.bound is not None else valid


def explain_value(text: str | None, history: History, rules: ValueRules) -> str:
    """What is wrong with a text that has no valid value, and what to do."""
    text = (text or "").strip()
    if not text:
        return "is empty; write a value, or nothing in all columns of the row"
    number = text.replace(".", "?").replace(",", ".") if rules.comma else text
    if not _PLAIN.fullmatch(number):
        mark = ", with a comma before decimals" if rules.comma else ""
        say = (
            ""
            if rules.comma or text.count(",") != 1 or "." in text
            else "say --decimal , if a comma separates decimals; else "
        )
        return f"is not a plain decimal{mark}; {say}a recipe turns the file into the shape"
    value = Decimal(number)
    if rules.bound is not None and value > rules.bound * (100 if rules.percent else 1):
        if rules.percent:
            return f"is above {RATE_LIMIT * 100} percent; correct the value"
        return "is above 1, which is 100 %; say --percent if the values are in percent"
    if value >= 10**20:
        return "is not below 10^20; correct the value"
    lowest = LOWEST_RATE if isinstance(history.kind, Rate) else 0
    return f"is below {lowest}, and values of {history.slug} are not; correct the value"
