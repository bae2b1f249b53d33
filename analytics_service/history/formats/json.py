"""Points as JSON, vectorised."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain

import orjson
import polars as pl

from analytics_service.history.formats.base import OHLC, VALUE, Format, Points
from analytics_service.history.formats.pieces import (
    always,
    in_turns,
    joined,
    texts,
    value_order,
    with_empty,
)
from analytics_service.history.sample import layout
from analytics_service.market.assets import asset_spec


@dataclass(frozen=True, slots=True)
class _Form:
    """The text around a point's values: `between` its columns, and at its `end`. `nothing` stands for all its columns
    if it has no value.

    The quote that ends a column is part of what follows it.
    """

    between: Sequence[str]
    end: str
    nothing: str


_FORMS = {
    VALUE: _Form((), '"}', '"v":null'),
    OHLC: _Form(('","h":"', '","l":"', '","c":"', '","n":'), "}", '"o":null,"h":null,"l":null,"c":null,"n":0'),
}


def encode(points: Points) -> Iterator[bytes]:
    """`[point, ...]` of a single series, else `[{"asset": ..., "points": [point, ...]}, ...]`."""
    begin, closed, end = ("", "]", "") if points.single else ("[", "]}", "]")
    yield begin.encode()
    before = ""
    for ids, values in points.parts:
        opened = ["["] if points.single else [_opening(asset_id) for asset_id in ids]
        yield before.encode()
        yield _encoded([values[name] for name in points.columns], points, opened, closed)
        before = ","
    yield end.encode()


JSON = Format("json", "application/json", encode, names_assets=False)


def _encoded(columns: Sequence[pl.Series], points: Points, opened: Sequence[str], closed: str) -> bytes:
    """The points of some series, separated by commas, each series enclosed in its text in `opened` and `closed`."""
    if not points.begins:
        return ",".join([one + closed for one in opened]).encode()
    opened = [f"{',' if place else ''}{one}" for place, one in enumerate(opened)]
    if not columns[0].has_nulls():
        return _joined(columns, points, opened, closed)
    nothing = _FORMS[points.columns].nothing
    nulls = ",".join([f'{{"t":{begin},{nothing}}}' for begin in points.begins])
    return with_empty(
        columns, opened, f"{nulls}{closed}", lambda others, leading: _joined(others, points, leading, closed)
    )


def _joined(columns: Sequence[pl.Series], points: Points, opened: Sequence[str], closed: str) -> bytes:
    """The same where null is marked, and where `opened` have the commas."""
    form = _FORMS[points.columns]
    leads = _leads(points, opened, form.end, closed)
    pieces = [*texts(columns), pl.Series([*leads, *form.between, f"{form.end}{closed}"])]
    return joined(pieces, _order(len(opened), len(points.begins), len(columns)))


def _leads(points: Points, opened: Sequence[str], end: str, closed: str) -> list[str]:
    """The text before a point's first value: for each bucket, and then for the first bucket of each series.

    It ends the previous point and begins this one, up to the opening quote of its first value.
    """
    first = f'"{points.columns[0]}":"'
    firsts = [
        f'{f"{end}{closed}" if place else ""}{one}{{"t":{points.begins[0]},{first}' for place, one in enumerate(opened)
    ]
    return [f'{end},{{"t":{begin},{first}' for begin in points.begins] + firsts


@lru_cache(maxsize=10_000)
def _opening(asset_id: str) -> str:
    return f'{{"asset":{orjson.dumps(asset_spec(asset_id)).decode()},"points":['


@lru_cache(maxsize=8)
def _order(series: int, count: int, columns: int) -> pl.Series:
    """The order of pieces: for each point its lead and value, then separator and value of each further column; the end.

    Pieces are the columns, bucket by bucket; the leads of all buckets and of all series; what is between two columns;
    and the end.
    """
    size = series * count
    leads, between, value = columns * size, columns * size + count + series, value_order(series, count)
    further = [(always(between + place, size), value + size * (place + 1)) for place in range(columns - 1)]
    turns = in_turns(_lead_of(series, count) + leads, value, *chain.from_iterable(further))
    return pl.concat([turns, always(between + columns - 1, 1)], rechunk=True)


def _lead_of(series: int, count: int) -> pl.Series:
    """The lead that precedes each point: that of its bucket, or one of the `series` leads that follow those."""
    place, bucket = layout(series, count)
    return bucket.zip_with(bucket > 0, place + count)
