"""Points as JSON, vectorised."""

from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import chain

import orjson
import polars as pl

from analytics_service.history.formats.base import OHLC, VALUE, Format, Points
from analytics_service.history.formats.pieces import (
    always,
    apart_from_empty,
    in_turns,
    joined,
    marked,
    value_order,
    with_nulls,
)
from analytics_service.history.sample import layout
from analytics_service.market.assets import asset_spec


def encode(points: Points) -> Iterator[bytes]:
    """`[point, ...]` of a single series, else `[{"asset": ..., "points": [point, ...]}, ...]`."""
    begin, closed, end = ("", "]", "") if points.single else ("[", "]}", "]")
    yield begin.encode()
    before = ""
    for ids, values in points.parts:
        opened = ["["] if points.single else [_opening(asset_id) for asset_id in ids]
        yield before.encode()
        if points.columns == VALUE:
            yield _encoded(values["v"], points.begins, opened, closed)
        else:
            yield _encoded_ohlc(values, points.begins, opened, closed)
        before = ","
    yield end.encode()


JSON = Format("json", "application/json", encode, names_assets=False)


def _encoded_ohlc(values: pl.DataFrame, begins: Sequence[int], opened: Sequence[str], closed: str) -> bytes:
    """Points of four values and a count, as `_encoded` has those of one."""
    if not begins:
        return ",".join([one + closed for one in opened]).encode()
    leads = [f'}},{{"t":{begin},"o":"' for begin in begins]
    leads += [f'{f"}}{closed}," if place else ""}{one}{{"t":{begins[0]},"o":"' for place, one in enumerate(opened)]
    texts = [values[name].cast(pl.String) if name == OHLC[-1] else marked(values[name]) for name in OHLC]
    between = ['","h":"', '","l":"', '","c":"', '","n":']
    body = joined([*texts, pl.Series([*leads, *between, f"}}{closed}"])], _order_ohlc(len(opened), len(begins)))
    return with_nulls(body)


def _encoded(values: pl.Series, begins: Sequence[int], opened: Sequence[str], closed: str) -> bytes:
    """The points of some series, separated by commas, each series enclosed in its text in `opened` and `closed`."""
    if not begins:
        return ",".join([one + closed for one in opened]).encode()
    opened = [f"{',' if place else ''}{one}" for place, one in enumerate(opened)]
    if not values.has_nulls():
        return _joined(values, begins, opened, closed)
    nulls = ",".join([f'{{"t":{begin},"v":null}}' for begin in begins])
    others, leading, rest = apart_from_empty(values, opened, f"{nulls}{closed}")
    return (with_nulls(_joined(marked(others), begins, leading, closed)) if leading else b"") + rest.encode()


def _joined(values: pl.Series, begins: Sequence[int], opened: Sequence[str], closed: str) -> bytes:
    """The same where null is marked, and where `opened` have the commas."""
    pieces = [values, pl.Series([*_leads(begins, opened, closed), f'"}}{closed}'])]
    return joined(pieces, _order(len(opened), len(begins)))


def _leads(begins: Sequence[int], opened: Sequence[str], closed: str) -> list[str]:
    """What precedes the values of all buckets, and then the first value of each series.

    It ends the point before, closing quote included, and begins the value's own up to its opening quote.
    """
    between, first = f'"}}{closed}', f'{{"t":{begins[0]},"v":"'
    firsts = [f"{between if place else ''}{one}{first}" for place, one in enumerate(opened)]
    return [f'"}},{{"t":{begin},"v":"' for begin in begins] + firsts


@lru_cache(maxsize=10_000)
def _opening(asset_id: str) -> str:
    return f'{{"asset":{orjson.dumps(asset_spec(asset_id)).decode()},"points":['


@lru_cache(maxsize=8)
def _order(series: int, count: int) -> pl.Series:
    """Lead and value of all points in turns, and the end, as numbers of pieces: values come first, then leads, then the
    end."""
    turns = in_turns(_lead_of(series, count), value_order(series, count))
    return pl.concat([turns, always(series * count + count + series, 1)], rechunk=True)


@lru_cache(maxsize=4)
def _order_ohlc(series: int, count: int) -> pl.Series:
    """The same for points of four values and a count. Pieces are these columns, the leads, what is between two columns,
    and the end."""
    size = series * count
    leads = _lead_of(series, count) + size * (len(OHLC) - 1)
    between, value = size * len(OHLC) + count + series, value_order(series, count)
    further = [(always(between + place, size), value + size * (place + 1)) for place in range(len(OHLC) - 1)]
    turns = in_turns(leads, value, *chain.from_iterable(further))
    return pl.concat([turns, always(between + len(further), 1)], rechunk=True)


@lru_cache(maxsize=8)
def _lead_of(series: int, count: int) -> pl.Series:
    """The piece that precedes each value: the lead of its bucket, or one of the `series` leads that follow those."""
    place, bucket = layout(series, count)
    return series * count + bucket.zip_with(bucket > 0, place + count)
