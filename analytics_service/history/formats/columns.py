"""Points as JSON by column: an array of values for each series, beside the starts of buckets that all of them share."""

from collections.abc import Iterator, Sequence
from functools import lru_cache

import orjson
import polars as pl

from analytics_service.history.formats.base import COUNT, Format, Points
from analytics_service.history.formats.pieces import always, in_turns, joined, texts, with_empty
from analytics_service.history.sample import layout


def encode(points: Points) -> Iterator[bytes]:
    """`[{"asset": ..., "symbol": ..., "v": [...]}, ...]`, or with `o`, `h`, `l`, `c` and `n`; `[{"v": [...]}]` of a
    single series."""
    before = "["
    for ids, values in points.parts:
        opened = [f"{',' if place else ''}{_opening(points, asset_id)}" for place, asset_id in enumerate(ids)]
        yield before.encode() + _encoded([values[name] for name in points.columns], opened, len(points.begins))
        before = ","
    yield b"]" if before == "," else b"[]"


COLUMNS = Format("columns", "application/json", encode)


def _opening(points: Points, asset_id: str) -> str:
    """The JSON that opens a series, up to its first array."""
    if points.single:
        return "{"
    named = {"asset": asset_id, "symbol": points.symbols.get(asset_id)}
    return orjson.dumps(named).decode().removesuffix("}") + ","


def _encoded(columns: Sequence[pl.Series], opened: Sequence[str], count: int) -> bytes:
    """The series, each with so many values in every column; `opened` have the commas between them."""
    if count and not columns[0].has_nulls():
        return _joined(columns, opened)
    nothing = {one.name: ",".join(["0" if one.name == COUNT else "null"] * count) for one in columns}
    empty = ",".join(f'"{name}":[{values}]' for name, values in nothing.items()) + "}"
    if not count:
        return "".join(one + empty for one in opened).encode()
    return with_empty(columns, opened, empty, _joined)


def _joined(columns: Sequence[pl.Series], opened: Sequence[str]) -> bytes:
    """The same where null is marked. Numbers are not quoted."""
    quotes = [_quote(column.name) for column in columns]
    arrays = [f'"{column.name}":[{quote}' for column, quote in zip(columns, quotes, strict=True)]
    end = f"{quotes[-1]}]}}"
    firsts = [f"{end if place else ''}{one}{arrays[0]}" for place, one in enumerate(opened)]
    nexts = [f"{last}],{array}" for last, array in zip(quotes, arrays[1:], strict=False)]
    commas = [f"{quote},{quote}" for quote in quotes]
    order = _order(len(opened), len(columns[0]) // len(opened), len(columns))
    return joined([*texts(columns), pl.Series([*firsts, *nexts, *commas, end])], order)


def _quote(name: str) -> str:
    return "" if name == COUNT else '"'


@lru_cache(maxsize=4)
def _order(series: int, count: int, columns: int) -> pl.Series:
    """The order of pieces: the text before a value, then the value, series by series, and within each by column.

    Pieces are the columns, bucket by bucket; the beginnings of all series, those of their further columns, the comma
    within each column, and the end.
    """
    firsts = columns * series * count
    nexts = firsts + series - 1
    commas = nexts + columns
    place, within = layout(series, columns * count)
    column, bucket = within // count, within % count
    begins = (place + firsts).zip_with(column == 0, column + nexts)
    lead = begins.zip_with(bucket == 0, column + commas)
    value = column * (series * count) + bucket * series + place
    return pl.concat([in_turns(lead, value), always(commas + columns, 1)], rechunk=True)
