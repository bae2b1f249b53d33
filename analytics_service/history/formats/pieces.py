"""Builds text from pieces. Polars puts them in order and joins them, which is faster than a Python loop."""

from collections.abc import Callable, Sequence
from functools import lru_cache

import polars as pl

from analytics_service.history.formats.base import COUNT
from analytics_service.history.sample import layout

# Makes text from columns, in which nulls are marked, and from the opening text of each series.
Join = Callable[[Sequence[pl.Series], Sequence[str]], bytes]
# Stands for null in a text. No value contains it.
_NULL = "\x00"
_MARKED = _NULL.encode()
# Up to so many nulls are replaced one by one; with more, the rest is replaced in one pass.
_FEW = 500
# Texts of common counts: looking one up takes a tenth of the time of formatting it.
_COUNTS = pl.Series(map(str, range(10_000)))
# Made once: building an expression takes as long as joining the text of a small page. Bytes of binary are copied once;
# text would become a str first.
_JOINED = pl.col("piece").str.join("").cast(pl.Binary)


def joined(pieces: Sequence[pl.Series], order: pl.Series) -> bytes:
    """The text of some pieces. `order` has their positions in the concatenation of all `pieces`; nulls add no text."""
    ordered = pl.concat(pieces, rechunk=True)[order].to_frame("piece")
    # select_seq, because waking up other threads would take longer.
    found: bytes = ordered.select_seq(_JOINED).item()
    return found


def in_turns(*orders: pl.Series) -> pl.Series:
    """The first number of each order, then the second of each, and so on. Orders are equally long."""
    place, order = layout(len(orders[0]), len(orders))
    return pl.concat(orders, rechunk=True)[order * len(orders[0]) + place]


@lru_cache(maxsize=8)
def value_order(series: int, count: int) -> pl.Series:
    """The places of values, series by series, where they are bucket by bucket."""
    place, bucket = layout(series, count)
    return bucket * series + place


def with_empty(columns: Sequence[pl.Series], opened: Sequence[str], empty: str, join: Join) -> bytes:
    """The JSON of some series. `join` makes that of series with values, from their columns and opening texts.

    `opened` are the texts that open each series, and `empty` completes a series without any value, so that it can go
    before the next one as one text. If a series has values, but none in the last bucket, `join` makes all of them.
    """
    first = columns[0]
    kept = tuple(place for place, value in enumerate(first[-len(opened) :]) if value is not None)
    rows = _of_some(kept, len(opened), len(first) // len(opened))
    others = first[rows]
    if first.null_count() - others.null_count() != len(first) - len(others):
        return _with_nulls(join(columns, opened))
    whole = [one + empty for one in opened]
    bounds = zip((-1, *kept), (*kept, len(opened)), strict=True)
    before = ["".join(whole[last + 1 : place]) for last, place in bounds]
    leading = [text + opened[place] for text, place in zip(before, kept, strict=False)]
    found = _with_nulls(join([others, *(one[rows] for one in columns[1:])], leading)) if leading else b""
    return found + before[-1].encode()


@lru_cache(maxsize=64)
def _of_some(kept: tuple[int, ...], series: int, count: int) -> pl.Series:
    """The places of some of `series` values in each of `count` buckets, bucket by bucket."""
    bucket, place = layout(count, max(len(kept), 1))
    return bucket[: count * len(kept)] * series + pl.Series(kept, dtype=pl.UInt32)[place[: count * len(kept)]]


def always(piece: int, count: int) -> pl.Series:
    """An order that repeats one piece."""
    # pl.repeat would wake other threads, which takes ten times as long for a short order.
    return pl.Series([piece], dtype=pl.UInt32).new_from_index(0, count)


def texts(columns: Sequence[pl.Series]) -> list[pl.Series]:
    """Columns of points as text with nulls marked; counts have none."""
    return [_counts(one) if one.name == COUNT else _marked(one) for one in columns]


def _counts(numbers: pl.Series) -> pl.Series:
    most: int = numbers.max() or 0  # type: ignore[assignment]
    return _COUNTS[numbers] if most < len(_COUNTS) else numbers.cast(pl.String)


def _marked(values: pl.Series) -> pl.Series:
    """Text in which null is marked, so that `_with_nulls` finds it."""
    return values.clone().scatter(values.is_null().arg_true(), _NULL) if values.has_nulls() else values


def _with_nulls(text: bytes) -> bytes:
    """The JSON with `null` in place of marked strings."""
    # Searching for a single byte is fast; searching for it with its quotes takes as long as joining the text.
    parts: list[bytes] = []
    begin = 0
    while len(parts) < _FEW and (at := text.find(_MARKED, begin)) >= 0:
        parts.append(text[begin : at - 1])
        begin = at + 2
    rest = text[begin:]
    if len(parts) == _FEW:
        rest = rest.replace(b'"%b"' % _MARKED, b"null")
    return b"null".join([*parts, rest])
