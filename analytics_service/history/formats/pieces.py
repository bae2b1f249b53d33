"""Builds text from pieces. Polars puts them in order and joins them, which is faster than a Python loop."""

from collections.abc import Sequence
from functools import lru_cache

import polars as pl

from analytics_service.history.sample import layout

# Texts of common counts: looking one up takes a tenth of the time of formatting it.
_COUNTS = pl.Series(map(str, range(10_000)))
# Made once: building an expression takes as long as joining the text of a small page. Bytes of binary are copied once;
# text would become a str first.
_JOINED = pl.col("pieces").arr.join("").cast(pl.Binary)


def joined(pieces: Sequence[pl.Series], order: pl.Series, count: int = 1) -> list[bytes]:
    """So many texts, each of as many pieces. `order` has their positions in the concatenation of all `pieces`, of which
    nulls add no text."""
    ordered = pl.concat(pieces, rechunk=True)[order].reshape((count, len(order) // count)).to_frame("pieces")
    # select_seq, because waking up other threads would take longer.
    return ordered.select_seq(_JOINED).to_series().to_list()


def in_turns(*orders: pl.Series) -> pl.Series:
    """The first number of each order, then the second of each, and so on. Orders are equally long."""
    return pl.concat(orders, rechunk=True)[_turns(len(orders[0]), len(orders))]


@lru_cache(maxsize=2)
def _turns(size: int, count: int) -> pl.Series:
    place, order = layout(size, count)
    return order * size + place


@lru_cache(maxsize=8)
def value_order(series: int, count: int) -> pl.Series:
    """The places of values, series by series, where they are bucket by bucket."""
    place, bucket = layout(series, count)
    return bucket * series + place


def always(piece: int, count: int) -> pl.Series:
    """An order that repeats one piece."""
    # pl.repeat would wake other threads, which takes ten times as long for a short order.
    return pl.Series([piece], dtype=pl.UInt32).new_from_index(0, count)


def as_text(values: pl.Series) -> pl.Series:
    """A column of points as text."""
    if values.dtype == pl.String:
        return values
    most: int | None = values.max()  # type: ignore[assignment]
    return _COUNTS[values] if most is not None and most < len(_COUNTS) else values.cast(pl.String)
