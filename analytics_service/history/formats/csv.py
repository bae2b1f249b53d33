"""Points as CSV (RFC 4180): one row for each of them, series by series."""

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache

import polars as pl

from analytics_service.history.formats.base import FileFormat, Points, Tables
from analytics_service.history.formats.pieces import always, as_text, in_turns, joined
from analytics_service.history.formats.times import times
from analytics_service.history.sample import layout, value_order
from analytics_service.market.assets import is_formula

_HEAD = ("t", "time", "asset_id", "symbol")
_QUOTED = frozenset('",\r\n')
_END = "\r\n"


def encode(points: Points, tables: Tables) -> Iterator[bytes]:
    """A header and the points; lines end with CR LF. Null is an empty field, as is the asset of a single series."""
    header = ",".join([*_HEAD, *points.columns]) + _END
    leads = [f"{begin},{time}," for begin, time in zip(points.begins, times(points.begins, points.zone), strict=True)]
    for ids, values in tables:
        if leads and ids:
            assets = [",," if points.single else _asset(one, points.symbols.get(one, "")) for one in ids]
            yield _encoded([values[name] for name in points.columns], leads, assets, header)
            header = ""
    if header:
        yield header.encode()


CSV = FileFormat("csv", "text/csv", encode, suffix="csv")


def _encoded(values: Iterable[pl.Series], leads: Sequence[str], assets: Sequence[str], header: str) -> bytes:
    """The rows of some series, after a header."""
    columns = [as_text(one) for one in values]
    # Each row begins with the line end of the one before; only the last needs its own.
    pieces = [*columns, pl.Series([*(_END + lead for lead in leads), *assets, ",", header + leads[0], _END])]
    return joined(pieces, _order(len(assets), len(leads), len(columns)))


@lru_cache(maxsize=4)
def _order(series: int, count: int, columns: int) -> pl.Series:
    """Lead, asset, and values with commas between them, in turns.

    Pieces are the columns, leads, assets, a comma, the very first lead, and the end. Values that are null are left out
    when pieces are joined.
    """
    size, (place, bucket) = series * count, layout(series, count)
    leads, assets, comma = columns * size, columns * size + count, columns * size + count + series
    turns = [bucket + leads, place + assets, value_order(series, count)]
    for column in range(1, columns):
        turns += [always(comma, size), value_order(series, count) + column * size]
    return pl.concat([always(comma + 1, 1), in_turns(*turns)[1:], always(comma + 2, 1)], rechunk=True)


@lru_cache(maxsize=10_000)
def _asset(asset_id: str, symbol: str) -> str:
    return f"{_field(asset_id)},{_field(symbol)},"


def _field(text: str) -> str:
    """A field, quoted where it must be. A spreadsheet takes a formula that a ' precedes for text (rule 7.5)."""
    text = f"'{text}" if is_formula(text) else text
    return '"{}"'.format(text.replace('"', '""')) if _QUOTED & {*text} else text
