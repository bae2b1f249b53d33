"""Texts of points, one after the other, which pages of JSON are cut out of and put together from.

The text of a point depends on its bucket and value alone, whatever else is on a page. So those of closed buckets are
kept (history/text_blocks.py), and a page of them is a few cuts for each series.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

import polars as pl

from analytics_service.history.formats.pieces import always, as_text, in_turns, joined, value_order
from analytics_service.history.sample import layout

Text = bytes | memoryview
# The points of each series in some buckets, for each of the arrays that a format has of them.
Cut = Sequence[Sequence[Text]]
# The ids of some series, and their points: one cut for each stretch of buckets.
TextParts = Iterable[tuple[Sequence[str], Sequence[Cut]]]
# Of so few points, texts are made in Python: a query takes longer.
FEW = 1000


@dataclass(frozen=True, slots=True)
class Words:
    """The text before the first value of a point, for each bucket; that between its values; that after the last one;
    and the whole text of a point without values, for each bucket. The last two end with a comma."""

    before: Sequence[str]
    between: Sequence[str]
    after: str
    nothing: Sequence[str]


def make_texts(columns: Sequence[pl.Series], series: int, words: Words, at_once: int) -> list[bytes]:
    """The texts of points, given their columns bucket by bucket, and series by series: one for so many points
    `at_once`. A point without a value in the first column has none."""
    count = len(words.before)
    if series * count <= FEW:
        return _made_of_few(columns, series, words, at_once)
    first, order = columns[0], _order(series, count, len(columns))
    if first.has_nulls():
        gaps = first.is_null()
        columns = [*columns[:-1], columns[-1].set(gaps, None)]
        order = _in_turns(series, count, len(columns), gaps.cast(pl.UInt32)[value_order(series, count)])
    texts = [*words.before, *words.nothing, words.after, *words.between, *[None] * len(columns)]
    pieces = [*map(as_text, columns), pl.Series(texts, dtype=pl.String)]
    return joined(pieces, order, series * count // at_once)


def _made_of_few(columns: Sequence[pl.Series], series: int, words: Words, at_once: int) -> list[bytes]:
    rows = [*zip(*[column.to_list() for column in columns], strict=True)]
    glue = "%s".join(["", *words.between, words.after])
    points = [
        nothing if row[0] is None else before + glue % row
        for place in range(series)
        for before, nothing, row in zip(words.before, words.nothing, rows[place::series], strict=True)
    ]
    return ["".join(points[first : first + at_once]).encode() for first in range(0, len(points), at_once)]


@lru_cache(maxsize=4)
def _order(series: int, count: int, columns: int) -> pl.Series:
    return _in_turns(series, count, columns, always(0, series * count))


def _in_turns(series: int, count: int, columns: int, gaps: pl.Series) -> pl.Series:
    """The order of pieces: of each point what is before its first value, the values with what is between them, and what
    is after the last one. `gaps` is 1 for a point without values, series by series, and else 0.

    Pieces are the columns, bucket by bucket; for all buckets the texts before, and those of points without values; the
    texts after and between; and as many nulls.
    """
    size, bucket, value = series * count, layout(series, count)[1], value_order(series, count)
    befores = columns * size
    afters = befores + 2 * count
    absent = gaps * columns
    turns = [bucket + befores + gaps * count, value]
    for column in range(1, columns):
        turns += [absent + (afters + column), value + column * size]
    return in_turns(*turns, absent + afters)


def enclosed(
    parts: TextParts, around: tuple[str, str], opened: Callable[[str], Sequence[bytes]], closed: bytes
) -> Iterator[bytes]:
    """All series, separated by commas, with text `around` them; a chunk for each part.

    `opened` returns what is before each array of the series that has an id; `closed` is after the last one.
    """
    before, after = (text.encode() for text in around)
    pieces: list[Text] = [before]
    following = iter(parts)
    part = next(following, None)
    while part is not None:
        ids, stretches = part
        arrays = [*zip(*stretches, strict=True)]
        for place, asset_id in enumerate(ids):
            for number, lead in enumerate(opened(asset_id)):
                pieces.append(lead)
                if arrays:
                    *firsts, last = arrays[number]
                    pieces += [points[place] for points in firsts]
                    # Without the comma after the last point.
                    pieces.append(memoryview(last[place])[:-1])
            pieces += [closed, b","]
        part = next(following, None)
        if part is not None:
            yield b"".join(pieces)
            pieces = []
    if pieces[-1] == b",":
        pieces.pop()
    yield b"".join([*pieces, after])
