"""Points as JSON by column: an array of values for each series, beside the starts of buckets that all of them share."""

from collections.abc import Iterator, Sequence

import orjson
import polars as pl

from analytics_service.history.formats.base import COUNT, Format, Points
from analytics_service.history.formats.texts import Words, enclosed, make_texts


def encode(points: Points) -> Iterator[bytes]:
    """`[{"asset": ..., "symbol": ..., "v": [...]}, ...]`, or with `o`, `h`, `l`, `c` and `n`; `[{"v": [...]}]` of a
    single series."""
    head, tail = points.around
    first, *others = [b'"%b":[' % name.encode() for name in points.columns]
    further = [b"]," + other for other in others]
    return enclosed(
        points.parts,
        (f"{head}[", f"]{tail}"),
        lambda asset_id: [_opening(points, asset_id) + first, *further],
        b"]}",
    )


def texts(begins: Sequence[int], values: pl.DataFrame, series: int, at_once: int) -> list[list[bytes]]:
    """An array for each column. What is in the first one is in all, except for counts, which are always there."""
    return [make_texts([column], series, _words(column.name, len(begins)), at_once) for column in values]


COLUMNS = Format("columns", "application/json", encode, texts=texts)


def _opening(points: Points, asset_id: str) -> bytes:
    """The JSON that opens a series, up to its first array."""
    if points.single:
        return b"{"
    named = {"asset": asset_id, "symbol": points.symbols.get(asset_id)}
    return orjson.dumps(named).removesuffix(b"}") + b","


def _words(name: str, count: int) -> Words:
    before, after = ("", ",") if name == COUNT else ('"', '",')
    return Words([before] * count, (), after, ["null,"] * count)
