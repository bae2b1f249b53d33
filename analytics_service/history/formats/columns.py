"""Points as JSON by column: an array of values for each series, beside the starts of buckets that all of them share."""

from collections.abc import Iterator, Sequence
from functools import lru_cache

import orjson
import polars as pl

from analytics_service.history.formats.base import COUNT, Cut, MemberFormat, Points, Text, TextParts
from analytics_service.history.formats.pieces import BREAK, always, as_text, broken, in_rows, joined
from analytics_service.history.formats.texts import Words, enclosed, make_texts
from analytics_service.history.sample import value_order


def encode(points: Points, parts: TextParts, around: tuple[str, str]) -> Iterator[bytes]:
    """`[{"asset": ..., "symbol": ..., "v": [...]}, ...]`, or with `o`, `h`, `l`, `c` and `n`; `[{"v": [...]}]` of a
    single series."""
    head, tail = around
    first, *others = [b'"%b":[' % name.encode() for name in points.columns]
    further = [b"]," + other for other in others]
    return enclosed(
        parts,
        (f"{head}[", f"]{tail}"),
        lambda asset_id: [_opening(points, asset_id) + first, *further],
        b"]}",
    )


def texts(begins: Sequence[int], values: pl.DataFrame, series: int, at_once: int) -> Cut:
    """An array for each column, in which values are quoted and counts are not."""
    count, columns = len(begins), values.get_columns()
    lacking = [[one] for one in columns if one.has_nulls()]
    made = make_texts(lacking, series, [""] * count, _WORDS, at_once) if lacking else ()
    # Values are null together, so that only counts are left.
    return [*made, *(_texts(one, count, series, at_once) for one in columns[len(lacking) :])]


COLUMNS = MemberFormat("columns", "application/json", encode, texts)

_BREAK = pl.Series([BREAK.decode()])
# Of columns in which a value may be missing: counts are always there.
_WORDS = Words('"', (), '",', "null,")


def _opening(points: Points, asset_id: str) -> bytes:
    """The JSON that opens a series, up to its first array."""
    if points.single:
        return b"{"
    named = {"asset": asset_id, "symbol": points.symbols.get(asset_id)}
    return orjson.dumps(named).removesuffix(b"}") + b","


def _texts(column: pl.Series, count: int, series: int, at_once: int) -> Sequence[Text]:
    """Those of a column without nulls."""
    quote = "" if column.name == COUNT else '"'
    text = joined([as_text(column), _BREAK], _order(series, count, at_once), f"{quote},{quote}")
    # A text begins with the end of a value and ends with the beginning of one.
    return [one[1 + len(quote) : len(one) - len(quote)] for one in broken(text, series * count // at_once + 2)[1:-1]]


@lru_cache(maxsize=4)
def _order(series: int, count: int, at_once: int) -> pl.Series:
    """The values, series by series, with breaks around texts."""
    size = series * count
    breaks = always(size, size // at_once)
    return pl.concat([breaks[:1], in_rows(value_order(series, count), breaks)], rechunk=True)
