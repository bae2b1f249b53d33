"""Builds text from pieces. Polars puts them in order and joins them, which is faster than a Python loop."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

import polars as pl

from analytics_service.history.formats.base import COUNT, Parts
from analytics_service.history.sample import layout

# Makes text of the ids and values of some series, between two other texts.
Encode = Callable[[Sequence[str], pl.DataFrame, str, str], bytes]
# Texts of common counts: looking one up takes a tenth of the time of formatting it.
_COUNTS = pl.Series(map(str, range(10_000)))
_FALSE = pl.Series([False])
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


def enclosed(parts: Parts, before: str, after: str, encode: Encode) -> Iterator[bytes]:
    """The parts as text, separated by commas, with a text before and after all of them.

    `encode` is given the ids and values of a part, and what comes before and after it: adding that afterwards would
    copy the whole part.
    """
    following = iter(parts)
    part = next(following, None)
    if part is None:
        yield f"{before}{after}".encode()
    while part is not None:
        ids, values = part
        part = next(following, None)
        yield encode(ids, values, before, after if part is None else "")
        before = ","


@dataclass(frozen=True, slots=True)
class Leads:
    """Where the texts before values are among pieces: so many `kinds` of them from `first` on, and from `others` on the
    same in three other forms. The piece before these is nothing. Every point has `width` pieces, the first its lead."""

    first: int
    kinds: int
    others: int
    width: int


@dataclass(frozen=True, slots=True)
class Gaps:
    """Which points have no value, series by series.

    A lead also ends what comes before it. So where there are gaps it has four forms, in this order: for a value after a
    value, nothing after a value, a value after nothing, and nothing after nothing.
    """

    here: pl.Series

    @classmethod
    def of(cls, values: pl.Series, series: int, count: int) -> "Gaps | None":
        """Those of values, bucket by bucket; None if all points have one."""
        return cls(values.is_null()[value_order(series, count)]) if values.has_nulls() else None

    def at(self, points: pl.Series) -> "Gaps":
        """The gaps at some points, by number."""
        return Gaps(self.here[points])

    @property
    def at_end(self) -> bool:
        """Whether the last point has no value."""
        return bool(self.here[-1])

    def in_order(self, order: pl.Series, leads: Leads) -> pl.Series:
        """The order of pieces, with each lead in the form that it needs, and nothing after the value of a point that
        has none."""
        # shift() and arg_true() would make a query each, which takes as long as joining the text of a small page.
        before = pl.concat([_FALSE, self.here[:-1]])
        form = self.here.cast(pl.UInt32) + before.cast(pl.UInt32) * 2
        point = layout(len(self.here), 1)[0]
        changed = point.filter(self.here | before)
        places = changed * leads.width
        fitting = order[places] + form[changed] * leads.kinds + (leads.others - leads.first - leads.kinds)
        order = order.clone().scatter(places, fitting)
        empty = point.filter(self.here) * leads.width
        for further in range(2, leads.width):
            order = order.scatter(empty + further, leads.others - 1)
        return order


@dataclass(frozen=True, slots=True)
class Filled:
    """The series that have a value: their `columns`, and the texts that open them, with the whole texts of those before
    them that have none; `rest` is the whole text of those after the last one."""

    columns: Sequence[pl.Series]
    opened: Sequence[str]
    rest: str = ""


def filled(columns: Sequence[pl.Series], opened: Sequence[str], empty: Callable[[], str]) -> Filled:
    """Set apart the series without a value, whose openings the text `empty` completes. Texts are separated by commas.

    All series are kept where one has values, but none in the last bucket.
    """
    first, size = columns[0], len(opened)
    if not first.has_nulls():
        return Filled(columns, opened)
    kept = tuple(place for place, value in enumerate(first.tail(size).to_list()) if value is not None)
    rows = _of_some(kept, size, len(first) // size)
    others = first[rows]
    if len(kept) == size or first.null_count() - others.null_count() != len(first) - len(others):
        return Filled(columns, opened)
    end = empty()
    texts = [one if place in kept else f"{one}{end}" for place, one in enumerate(opened)]
    ends = [place + 1 for place in kept]
    before = [",".join(texts[begin:end]) for begin, end in pairwise([0, *ends])]
    rest = ",".join(["", *texts[ends[-1] :]]) if kept else ",".join(texts)
    return Filled([others, *(one[rows] for one in columns[1:])], before, rest)


@lru_cache(maxsize=64)
def _of_some(kept: tuple[int, ...], series: int, count: int) -> pl.Series:
    """The places of some of `series` values in each of `count` buckets, bucket by bucket."""
    bucket, place = layout(count, max(len(kept), 1))
    return bucket[: count * len(kept)] * series + pl.Series(kept, dtype=pl.UInt32)[place[: count * len(kept)]]


def always(piece: int, count: int) -> pl.Series:
    """An order that repeats one piece."""
    # pl.repeat would wake other threads, which takes ten times as long for a short order.
    return pl.Series([piece], dtype=pl.UInt32).new_from_index(0, count)


def as_text(values: pl.Series) -> pl.Series:
    """A column of points as text."""
    if values.name != COUNT:
        return values
    most: int = values.max() or 0  # type: ignore[assignment]
    return _COUNTS[values] if most < len(_COUNTS) else values.cast(pl.String)
