"""Points as JSON."""

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache

import orjson
import polars as pl

from analytics_service.history.formats.base import OHLC, VALUE, Cut, MemberFormat, Points, TextParts
from analytics_service.history.formats.texts import Words, enclosed, make_texts
from analytics_service.market.assets import asset_spec

_WORDS: Mapping[tuple[str, ...], Words] = {
    VALUE: Words('"v":"', (), '"},', '"v":null},'),
    OHLC: Words(
        '"o":"', ('","h":"', '","l":"', '","c":"', '","n":'), "},", '"o":null,"h":null,"l":null,"c":null,"n":0},'
    ),
}


def encode(points: Points, parts: TextParts, around: tuple[str, str]) -> Iterator[bytes]:
    """`[point, ...]` of a single series, else `[{"asset": ..., "points": [point, ...]}, ...]`."""
    if points.single:
        return enclosed(parts, around, lambda _: [b"["], b"]")
    head, tail = around
    return enclosed(parts, (f"{head}[", f"]{tail}"), lambda asset_id: [_opening(asset_id)], b"]}")


def texts(begins: Sequence[int], values: pl.DataFrame, series: int, at_once: int) -> Cut:
    """One array, of objects."""
    leads = [f'{{"t":{begin},' for begin in begins]
    return make_texts([values.get_columns()], series, leads, _WORDS[tuple(values.columns)], at_once)


JSON = MemberFormat("json", "application/json", encode, texts, names_assets=False)


@lru_cache(maxsize=10_000)
def _opening(asset_id: str) -> bytes:
    return b'{"asset":%b,"points":[' % orjson.dumps(asset_spec(asset_id))
