"""Points as JSON."""

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache

import orjson
import polars as pl

from analytics_service.history.formats.base import OHLC, VALUE, Format, Points
from analytics_service.history.formats.texts import Words, enclosed, make_texts
from analytics_service.market.assets import asset_spec

# What is before the first value of a point, between its values, and after the last one; and what is in place of all
# this if it has none.
_WORDS: Mapping[tuple[str, ...], tuple[str, Sequence[str], str, str]] = {
    VALUE: ('"v":"', (), '"},', '"v":null},'),
    OHLC: (
        '"o":"',
        ('","h":"', '","l":"', '","c":"', '","n":'),
        "},",
        '"o":null,"h":null,"l":null,"c":null,"n":0},',
    ),
}


def encode(points: Points) -> Iterator[bytes]:
    """`[point, ...]` of a single series, else `[{"asset": ..., "points": [point, ...]}, ...]`."""
    if points.single:
        return enclosed(points.parts, points.around, lambda _: [b"["], b"]")
    head, tail = points.around
    return enclosed(points.parts, (f"{head}[", f"]{tail}"), lambda asset_id: [_opening(asset_id)], b"]}")


def texts(begins: Sequence[int], values: pl.DataFrame, series: int, at_once: int) -> list[list[bytes]]:
    """One array, of objects."""
    before, between, after, nothing = _WORDS[tuple(values.columns)]
    leads = [f'{{"t":{begin},' for begin in begins]
    words = Words([lead + before for lead in leads], between, after, [lead + nothing for lead in leads])
    return [make_texts(values.get_columns(), series, words, at_once)]


JSON = Format("json", "application/json", encode, names_assets=False, texts=texts)


@lru_cache(maxsize=10_000)
def _opening(asset_id: str) -> bytes:
    return b'{"asset":%b,"points":[' % orjson.dumps(asset_spec(asset_id))
