"""Points as JSON by column: an array of values for each series, beside the starts of buckets that all of them share."""

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache

import orjson
import polars as pl

from analytics_service.history.formats.base import Format, Points
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

_COUNT = "n"


def encode(points: Points) -> Iterator[bytes]:
    """`[{"asset": ..., "symbol": ..., "v": [...]}, ...]`, or with `o`, `h`, `l`, `c` and `n`; `[{"v": [...]}]` of a
    single series."""
    first = "["
    for ids, values in points.parts:
        opened = [f"{',' if place else first}{_opening(points, one)}" for place, one in enumerate(ids)]
        yield _encoded({name: values[name] for name in points.columns}, len(points.begins), opened)
        first = ","
    yield b"]" if first == "," else b"[]"


COLUMNS = Format("columns", "application/json", encode)


def _opening(points: Points, asset_id: str) -> str:
    """What a series begins with, up to its first array."""
    if points.single:
        return "{"
    named = {"asset": asset_id, "symbol": points.symbols.get(asset_id)}
    return orjson.dumps(named).decode().removesuffix("}") + ","


def _encoded(values: Mapping[str, pl.Series], count: int, opened: Sequence[str]) -> bytes:
    """Some series, each with what it begins with."""
    names = list(values)
    if not count:
        empty = ",".join([f'"{name}":[]' for name in names])
        return "".join([f"{one}{empty}}}" for one in opened]).encode()
    if len(names) > 1 or not values[names[0]].has_nulls():
        return _joined(values, count, opened)
    (name,) = names
    parted = apart_from_empty(values[name], opened, f'"{name}":[{",".join(["null"] * count)}]}}')
    if parted is None:
        return _joined(values, count, opened)
    others, leading, rest = parted
    return (_joined({name: others}, count, leading) if leading else b"") + rest.encode()


def _joined(values: Mapping[str, pl.Series], count: int, opened: Sequence[str]) -> bytes:
    """The same where the page has buckets."""
    names = list(values)
    quotes = ["" if name == _COUNT else '"' for name in names]
    # What begins an array, and ends the one before.
    begins = [f'{one}"{names[0]}":[{quotes[0]}' for one in opened]
    begins = [begins[0], *(f"{quotes[-1]}]}}{one}" for one in begins[1:])]
    for place, name in enumerate(names[1:], start=1):
        begins += [f'{quotes[place - 1]}],"{name}":[{quotes[place]}'] * len(opened)
    between = [f"{quote},{quote}" for quote in quotes]
    columns = [values[name].cast(pl.String) if name == _COUNT else marked(values[name]) for name in names]
    pieces = [*columns, pl.Series([*between, *begins, f"{quotes[-1]}]}}"])]
    text = joined(pieces, _order(len(opened), count, len(names)))
    return with_nulls(text) if values[names[0]].has_nulls() else text


@lru_cache(maxsize=8)
def _order(series: int, count: int, columns: int) -> pl.Series:
    """What precedes each value, and the value, in turns, array by array, and the end.

    Pieces are the values, what is between those of each column, and what begins the arrays of each column.
    """
    size = series * count
    between, begins = columns * size, columns * size + columns
    place, bucket = layout(series, count)
    arrays = []
    for column in range(columns):
        first = bucket == 0
        lead = always(between + column, size).zip_with(~first, place + (begins + column * series))
        order = in_turns(lead, value_order(series, count) + column * size)
        arrays.append(order)
    return pl.concat([_by_series(arrays, series), always(begins + columns * series, 1)])


def _by_series(arrays: Sequence[pl.Series], series: int) -> pl.Series:
    """The orders of columns, each series by series, as one order: all columns of the first series come first."""
    width = len(arrays[0]) // series
    place, rest = layout(series, width * len(arrays))
    column, within = rest // width, rest % width
    return pl.concat(arrays)[column * (series * width) + place * width + within]
