"""Why rows of files are rejected."""

from collections.abc import Iterable, Mapping
from datetime import datetime

import polars as pl

from analytics_service.imports.tables import FAULTS
from analytics_service.imports.times import TimeRules, last_second
from analytics_service.market.kinds import RATE_LIMIT, Rate
from analytics_service.store.histories import NET_TVL, UTILIZATION, History

_MANY = "the row has more fields than columns; a field with the delimiter in it needs quotes"
# What stands in the place of a value that there is none of, in lower case.
NO_VALUE = ("", "null", "n/a", "#n/a", "nan", ".")


def first_reason(reasons: Mapping[str, pl.Expr]) -> pl.Expr:
    """The first reason that applies; null for a good row."""
    return pl.coalesce(pl.when(applies).then(pl.lit(message)) for message, applies in reasons.items())


def is_empty(fields: Iterable[str]) -> pl.Expr:
    """Whether a row has a time, but nothing in any of the fields."""
    nothing = pl.all_horizontal(pl.col(*fields).str.strip_chars().str.to_lowercase().is_in(NO_VALUE))
    return nothing & (pl.col("extra") == "") & (pl.col("second").is_not_null() | pl.col("twice"))


def split_reasons() -> dict[str, pl.Expr]:
    """Of rows with `extra`."""
    return {fault: pl.col("extra") == fault for fault in FAULTS} | {_MANY: pl.col("extra") != ""}


def time_reasons(rules: TimeRules, at: datetime) -> dict[str, pl.Expr]:
    """Of rows with `time` as it is written, and what was read, `second` and `twice`; `at` is the present instant."""
    time, second = pl.col("time").str.strip_chars(), pl.col("second")
    return {
        "the time is empty": time == "",
        "the time is negative": time.str.contains(r"^-[0-9]"),
        "the time is in the future": second > last_second(at),
        "the time is before 1970": second < 0,
        f"{rules.zone} has this time twice, or never; write it with an offset": pl.col("twice"),
        "the time cannot be read; write it such as 2026-01-31T12:00:00Z": second.is_null(),
    }


def value_reasons(history: History, prefix: str) -> dict[str, pl.Expr]:
    """Of rows with the columns `written`, `value`, `large` and `percent` of a value, each after a prefix."""
    value, written = pl.col(f"{prefix}value"), pl.col(f"{prefix}written").str.strip_chars()
    # Compared as text: a number that rounds to zero may be negative, and -0 is not.
    is_negative = written.str.contains(r"^(?:\$\s*)?-[^eE]*[1-9]") & value.is_not_null()
    is_rate = isinstance(history.kind, Rate)
    return {
        "the value is empty": written == "",
        "the value is in percent": pl.col(f"{prefix}percent") & (not may_be_percent(history)),
        f"the value {f'is above {RATE_LIMIT}' if is_rate else 'is not below 10^20'}": pl.col(f"{prefix}large")
        | ((value > RATE_LIMIT) & is_rate),
        "the value is not a number": value.is_null(),
        "the value is negative": is_negative & (history is not NET_TVL),
    }


def may_be_percent(history: History) -> bool:
    """Whether values may be in percent."""
    return isinstance(history.kind, Rate) or history is UTILIZATION
