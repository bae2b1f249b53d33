"""Builds text from pieces. Polars puts them in order and joins them, which is faster than a Python loop."""

from collections.abc import Sequence
from functools import lru_cache

import polars as pl

from analytics_service.history.formats.base import Text
from analytics_service.history.sample import layout

# Texts of common counts: looking one up takes a tenth of the time of formatting it.
_COUNTS = pl.Series(map(str, range(10_000)))
# What is between texts that are joined as one, which takes half as long as joining each of them.
BREAK = b"\n"
# Of so few points or pieces, texts are made in Python: a query takes longer.
FEW = 1000


def joined(pieces: Sequence[pl.Series], order: pl.Series, glue: str = "") -> bytes:
    """One text of all pieces, with `glue` between them. `order` has their positions in the concatenation of `pieces`,
    of which nulls add no text."""
    ordered = pl.concat(pieces, rechunk=True)[order]
    if len(order) <= FEW:
        return glue.join(text for text in ordered.to_list() if text is not None).encode()
    # select_seq, because waking up other threads would take longer.
    return ordered.to_frame("pieces").select_seq(_joined(glue)).item()  # type: ignore[no-any-return]


@lru_cache(maxsize=4)
def _joined(glue: str) -> pl.Expr:
    """Bytes of binary are copied once; text would become a str first. Building an expression takes as long as joining
    the text of a small page."""
    return pl.col("pieces").str.join(glue).cast(pl.Binary)


def broken(text: bytes, count: int) -> Sequence[Text]:
    """The `count` texts between the breaks of one that is joined. `split` copies them, which is quicker for many short
    ones."""
    if count > FEW:
        return text.split(BREAK)
    found, begin, view = [], 0, memoryview(text)
    for _ in range(count):
        end = text.find(BREAK, begin)
        found.append(view[begin:end] if end >= 0 else view[begin:])
        begin = end + len(BREAK)
    return found


def in_rows(order: pl.Series, *columns: pl.Series) -> pl.Series:
    """An order in as many rows as each of the columns has: a row of it, followed by the piece of each column."""
    rows = len(columns[0])
    return pl.concat([order, *columns], rechunk=True)[_rows(rows, len(order) // rows, len(columns))]


@lru_cache(maxsize=4)
def _rows(rows: int, width: int, columns: int) -> pl.Series:
    row, column = layout(rows, width + columns)
    return (row * width + column).zip_with(column < width, column * rows + row)


def in_turns(*orders: pl.Series) -> pl.Series:
    """The first number of each order, then the second of each, and so on. Orders are equally long."""
    return pl.concat(orders, rechunk=True)[_turns(len(orders[0]), len(orders))]


@lru_cache(maxsize=2)
def _turns(size: int, count: int) -> pl.Series:
    place, order = layout(size, count)
    return order * size + place


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
