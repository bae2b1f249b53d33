"""Points as JSON by column: an array of values for each series, beside the starts of buckets that all of them share."""

from collections.abc import Iterator, Sequence

import orjson
import polars as pl

from analytics_service.history.formats.base import Format, Points
from analytics_service.history.formats.pieces import marked, value_order, with_nulls

_COUNT = "n"


def encode(points: Points) -> Iterator[bytes]:
    """`[{"asset": ..., "symbol": ..., "v": [...]}, ...]`, or with `o`, `h`, `l`, `c` and `n`; `[{"v": [...]}]` of a
    single series."""
    before = "["
    for ids, values in points.parts:
        arrays = [_arrays(values[name], len(ids), len(points.begins)) for name in points.columns]
        texts = [
            f"{_opening(points, asset_id)}{','.join(map(_member, points.columns, own))}}}"
            for asset_id, *own in zip(ids, *arrays, strict=True)
        ]
        body = (before + ",".join(texts)).encode()
        yield with_nulls(body) if values[points.columns[0]].has_nulls() else body
        before = ","
    yield b"]" if before == "," else b"[]"


COLUMNS = Format("columns", "application/json", encode)


def _opening(points: Points, asset_id: str) -> str:
    """What a series begins with, up to its first array."""
    if points.single:
        return "{"
    named = {"asset": asset_id, "symbol": points.symbols.get(asset_id)}
    return orjson.dumps(named).decode().removesuffix("}") + ","


def _member(name: str, array: str) -> str:
    return f'"{name}":[{array}]'


def _arrays(values: pl.Series, series: int, count: int) -> Sequence[str]:
    """The values of each series, separated by commas; numbers are not quoted, and null is marked."""
    if not len(values):
        return [""] * series
    quote = "" if values.name == _COUNT else '"'
    texts = values.cast(pl.String) if values.name == _COUNT else marked(values)
    by_series = texts[value_order(series, count)].reshape((series, count))
    return [f"{quote}{one}{quote}" for one in by_series.arr.join(f"{quote},{quote}").to_list()]
