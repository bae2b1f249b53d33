"""Texts of points, one after the other, which pages of JSON are cut out of and put together from.

The text of a point depends on its bucket and value alone, whatever else is on a page. So those of closed buckets are
kept (history/text_blocks.py), and a page of them is a few cuts for each series.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain

import polars as pl

from analytics_service.history.formats.base import Cut, Text, TextParts
from analytics_service.history.formats.pieces import (
    BREAK,
    FEW,
    always,
    as_text,
    broken,
    in_rows,
    in_turns,
    joined,
)
from analytics_service.history.sample import layout, value_order


@dataclass(frozen=True, slots=True)
class Words:
    """What the text of a point consists of, beside its values: the text `before` the first one, those `between` them,
    and that `after` the last one; or `nothing` if it has none. The last two end with a comma."""

    before: str
    between: Sequence[str]
    after: str
    nothing: str


def make_texts(
    arrays: Sequence[Sequence[pl.Series]], series: int, leads: Sequence[str], words: Words, at_once: int
) -> Cut:
    """The texts of points in arrays, given the columns of each bucket by bucket, and series by series: one for so many
    points `at_once`. Each begins with the lead of its bucket. A point without a value in the first column has none; the
    first columns of all arrays are null together."""
    size, first, columns = series * len(leads), arrays[0][0], len(arrays[0])
    if size <= FEW:
        return [_made_of_few(values, series, leads, words, at_once) for values in arrays]
    begun = [lead + words.before for lead in leads]
    begun += [words.after + one for one in begun]
    if first.has_nulls():
        nulls = first.is_null()
        if columns > 1:
            arrays = [[*values[:-1], values[-1].set(nulls, None)] for values in arrays]
        order = _in_turns(series, len(leads), columns, at_once, nulls.cast(pl.UInt32))
        empty = [lead + words.nothing for lead in leads]
        begun += [*empty, *(words.after + one for one in empty)]
    else:
        order = _order(series, len(leads), columns, at_once)
    texts = [*words.between, *[None] * len(words.between), words.after, None, BREAK.decode(), *begun]
    pieces = pl.Series(texts, dtype=pl.String)
    return [broken(joined([*map(as_text, values), pieces], order), size // at_once) for values in arrays]


def _made_of_few(
    columns: Sequence[pl.Series], series: int, leads: Sequence[str], words: Words, at_once: int
) -> Sequence[Text]:
    rows = [*zip(*[column.to_list() for column in columns], strict=True)]
    glue = "%s".join([words.before, *words.between, words.after])
    points = [
        lead + (words.nothing if row[0] is None else glue % row)
        for place in range(series)
        for lead, row in zip(leads, rows[place::series], strict=True)
    ]
    return ["".join(points[first : first + at_once]).encode() for first in range(0, len(points), at_once)]


@lru_cache(maxsize=4)
def _order(series: int, count: int, columns: int, at_once: int) -> pl.Series:
    return _in_turns(series, count, columns, at_once, always(0, series * count))


def _in_turns(series: int, count: int, columns: int, at_once: int, nulls: pl.Series) -> pl.Series:
    """The order of pieces: of each point what is before its first value, and the values with what is between them.
    `nulls` is 1 for a point without values, bucket by bucket, and else 0.

    What is after the last value of a point is in one piece with what is before the next one, as the number of pieces
    decides what a text costs.

    Pieces are the columns, bucket by bucket; the texts between, and as many nulls; what is after the last value of a
    text, or after none; what is between texts; and what is before values for each bucket: at first, after a point with
    values, and the same for points without.
    """
    size, bucket, value = series * count, layout(series, count)[1], value_order(series, count)
    preceding, last = _neighbours(series, count, at_once)
    absent, follows = nulls[value], 1 - pl.concat([nulls, always(1, 1)], rechunk=True)[preceding]
    betweens = columns * size
    afters = betweens + 2 * (columns - 1)
    turns = [bucket + (follows + 2 * absent) * count + (afters + 3), value]
    for column in range(1, columns):
        turns += [absent * (columns - 1) + (betweens + column - 1), value + column * size]
    return in_rows(in_turns(*turns), nulls[last] + afters, always(afters + 2, len(last)))[:-1]


@lru_cache(maxsize=4)
def _neighbours(series: int, count: int, at_once: int) -> tuple[pl.Series, pl.Series]:
    """The place of the value before each one, series by series, where values are bucket by bucket, and one place after
    all of them for the first value of a text; and the places of the last values of texts."""
    value, within = value_order(series, count), layout(series * count // at_once, at_once)[1]
    # The value before that of a bucket is so many series earlier; Series.shift takes ten times as long.
    return (value - series).set(within == 0, series * count), value.filter(within == at_once - 1)


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
        pieces += _series(*part, opened, closed + b",")
        part = next(following, None)
        if part is None:
            pieces[-1] = closed
        else:
            yield b"".join(pieces)
            pieces = []
    yield b"".join([*pieces, after])


def _series(
    ids: Sequence[str], stretches: Sequence[Cut], opened: Callable[[str], Sequence[bytes]], closed: bytes
) -> Iterator[Text]:
    """The pieces of some series."""
    columns: list[Sequence[Text]] = []
    for number, leads in enumerate(zip(*map(opened, ids), strict=True)):
        cuts = [stretch[number] for stretch in stretches]
        if cuts:
            # Without the comma after the last point.
            cuts[-1] = [memoryview(points)[:-1] for points in cuts[-1]]
        columns += [leads, *cuts]
    return chain.from_iterable(zip(*columns, [closed] * len(ids), strict=True))
