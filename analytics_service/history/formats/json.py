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
    return with_nulls(body) if values[OHLC[0]].has_nulls() else body


def _encoded(values: pl.Series, begins: Sequence[int], opened: Sequence[str], closed: str) -> bytes:
    """The points of some series, separated by commas, each series enclosed in its text in `opened` and `closed`."""
    if not begins:
        return ",".join([one + closed for one in opened]).encode()
    opened = [f"{',' if place else ''}{one}" for place, one in enumerate(opened)]
    if not values.has_nulls():
        return _joined(values, begins, opened, closed)
    nulls = ",".join([f'{{"t":{begin},"v":null}}' for begin in begins])
    parted = apart_from_empty(values, opened, f"{nulls}{closed}")
    if parted is None:
        return _joined_with_nulls(values, begins, opened, closed)
    others, leading, rest = parted
    return (_joined(others, begins, leading, closed) if leading else b"") + rest.encode()


def _joined(values: pl.Series, begins: Sequence[int], opened: Sequence[str], closed: str) -> bytes:
    """The same where no value is null, and where `opened` have the commas."""
    pieces = [values, pl.Series([*_leads(begins, opened, closed), f'"}}{closed}'])]
    return joined(pieces, _order(len(opened), len(begins)))


def _joined_with_nulls(values: pl.Series, begins: Sequence[int], opened: Sequence[str], closed: str) -> bytes:
    """The same where any value may be null. Null has no quotes, so leads come in four variants."""
    count, series = len(begins), len(opened)
    leads = _leads(begins, opened, closed)
    own, before = [lead[:-1] + "null" for lead in leads], [lead[1:] for lead in leads]
    both = [lead[:-1] + "null" for lead in before]
    is_null = values.is_null()[value_order(series, count)].cast(pl.UInt32)
    null_before = pl.concat([pl.Series([0], dtype=pl.UInt32), is_null[:-1]])
    lead = _lead_of(series, count) + (is_null + 2 * null_before) * len(leads)
    end = f"{'' if is_null[-1] else chr(34)}}}{closed}"
    order = pl.concat([in_turns(lead, value_order(series, count)), always(len(values) + 4 * len(leads), 1)])
    # Values that are null are left out when pieces are joined.
    return joined([values, pl.Series([*leads, *own, *before, *both, end])], order)


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
