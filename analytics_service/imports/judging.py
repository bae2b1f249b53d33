"""Why rows of files are rejected."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from zoneinfo import ZoneInfo

import polars as pl

from analytics_service.imports.tables import FAULTS
from analytics_service.imports.times import TimeRules, last_second, read_times
from analytics_service.market.instants import instant, shown
from analytics_service.market.kinds import LOWEST_RATE, RATE_LIMIT, Rate
from analytics_service.store.datasets.histories import NET_TVL, UTILIZATION, History

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


def time_reason(rules: TimeRules, at: datetime) -> pl.Expr:
    """Of rows with `time` as it is written, and what was read, `second` and `twice`; `at` is the present instant."""
    time, second = pl.col("time").str.strip_chars(), pl.col("second")
    reasons = {
        "the time is empty": time == "",
        "the time is negative": time.str.contains(r"^-[0-9]"),
        "the time is in the future": second > last_second(at),
        "the time is before 1970": second < 0,
        "CST, IST and BST are names of several zones; write an offset, or leave them out and say --zone": (
            second.is_null() & time.str.contains(r"[0-9] ?[BCI]ST$")
        ),
        "the time cannot be read; write it such as 2026-01-31T12:00:00Z": second.is_null() & ~pl.col("twice"),
    }
    twice = pl.when("twice").then("time").map_batches(partial(_clock_faults, rules), return_dtype=pl.String)
    return pl.coalesce(first_reason(reasons), twice)


def _clock_faults(rules: TimeRules, texts: pl.Series) -> pl.Series:
    """Why times are no instants that their zone has twice or never."""
    # As if the clocks of UTC showed them.
    walls = read_times(texts.fill_null(""), replace(rules, zone="UTC"))["second"]
    faults = (_clock_fault(*pair, rules.zone or "UTC") for pair in zip(texts, walls, strict=True))
    return pl.Series(faults, dtype=pl.String)


def _clock_fault(text: str | None, wall: int | None, zone: str) -> str | None:
    if text is None:
        return None
    if wall is None:
        return "its zone has this time twice, or never; write it with an offset"
    clock, seconds = instant(wall).replace(tzinfo=None), set()
    for fold in (0, 1):
        at = clock.replace(tzinfo=ZoneInfo(zone), fold=fold).astimezone(UTC)
        if at.astimezone(ZoneInfo(zone)).replace(tzinfo=None) == clock:
            seconds.add(at)
    both = " and ".join(map(shown, sorted(seconds)))
    what = f"has this time twice, at {both}" if both else "never has this time, since clocks go forward"
    return f"{zone} {what}; write it with an offset"


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
        f"the value is {f'below {LOWEST_RATE}' if is_rate else 'negative'}": value < LOWEST_RATE
        if is_rate
        else is_negative & (history is not NET_TVL),
    }


def may_be_percent(history: History) -> bool:
    """Whether values may be in percent."""
    return isinstance(history.kind, Rate) or history is UTILIZATION
