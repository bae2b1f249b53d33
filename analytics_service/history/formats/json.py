"""Points as JSON: an object for each point, or an array for each column."""

from functools import lru_cache

import orjson
import polars as pl

from analytics_service.history.formats.base import COUNT, Format, Points, decimal_strings, join_series
from analytics_service.history.segments import row_index
from analytics_service.market.assets import asset_spec
from analytics_service.market.sums import TOTAL


def encode(points: Points) -> bytes:
    """`[point, ...]` for a single series, else `[{"asset": ..., "symbol": ..., "points": [point, ...]}, ...]`."""
    symbols = points.symbols
    openings = ["" if points.single else _opening(asset_id, symbols.get(asset_id)) for asset_id in points.ids]
    if not points.begins or not openings:
        return _array([b"%b]}" % opening.encode() for opening in openings]) if not points.single else b"[]"
    name, *others = points.values.columns
    columns = [decimal_strings(column) for column in points.values.get_columns()]
    quote = "" if any(column.has_nulls() for column in columns) else '"'
    leads = [f',{{"t":{begin},"{name}":{quote}' for begin in points.begins]
    # The lead of a series' first point includes the opening of the series. `between` ends every point but the last.
    between, firsts = "" if others else quote, [f"]}},{opening}{leads[0][1:]}" for opening in openings]
    lead = pl.Series("lead", [*leads, *firsts])[_leads(len(openings), len(leads))]
    if others or not quote:
        form = "{}{}" + "".join(f'{quote},"{other}":{"" if other == COUNT else quote}{{}}' for other in others)
        members = [_member(column, quote) for column in points.values.columns]
        fragments = pl.DataFrame([lead, *columns]).select_seq(points=pl.format(form, "lead", *members))
    else:
        # Addition takes a third of the time of `format`.
        fragments = (lead + columns[0]).to_frame("points")
    body: bytes = fragments.select_seq(pl.col("points").str.join(between + "}").cast(pl.Binary)).item()
    ending = f"{between}}}]" if points.single else f"{between}}}]}}]"
    return b"".join([b"[", memoryview(body)[len("]},") :], ending.encode()])


def encode_columns(points: Points) -> bytes:
    """`[{"asset": ..., "symbol": ..., "v": [...]}, ...]`, or with `o`, `h`, `l`, `c` and `n`. A sum over assets has no
    `asset` and `symbol`."""
    openings = [b"{" if asset_id == TOTAL else _named(points, asset_id) for asset_id in points.ids]
    arrays = [_arrays(column, len(openings)) for column in points.values.get_columns()]
    return _array([b"%b%b}" % (opening, b",".join(own)) for opening, *own in zip(openings, *arrays, strict=True)])


JSON = Format(name="json", media="application/json", encode=encode)
COLUMNS = Format(name="columns", media="application/json", encode=encode_columns)


def _arrays(column: pl.Series, series: int) -> list[bytes]:
    """A column as a JSON member with an array, for each series."""
    quote = "" if column.name == COUNT or column.has_nulls() or column.is_empty() else '"'
    fragments = decimal_strings(column).to_frame().select_seq(_member(column.name, quote)).to_series()
    opening, ending = f'"{column.name}":[{quote}'.encode(), f"{quote}]".encode()
    return [b"%b%b%b" % (opening, values, ending) for values in join_series(fragments, series, f"{quote},{quote}")]


def _member(name: str, quote: str) -> pl.Expr:
    """The values of a column, quoted unless `quote` surrounds them."""
    return pl.col(name) if quote or name == COUNT else pl.format('"{}"', name).fill_null("null")


def _array(series: list[bytes]) -> bytes:
    return b"[%b]" % b",".join(series)


@lru_cache(maxsize=8)
def _leads(series: int, count: int) -> pl.Series:
    """The index of each point's lead: its bucket, or for the first point of a series `count` plus the series' index."""
    row, bucket = row_index(series, count)
    return bucket.zip_with(bucket > 0, row + count)


@lru_cache(maxsize=10_000)
def _opening(asset_id: str, symbol: str | None) -> str:
    named = orjson.dumps({"asset": asset_spec(asset_id), "symbol": symbol}).decode()
    return f'{named.removesuffix("}")},"points":['


def _named(points: Points, asset_id: str) -> bytes:
    """The JSON that opens a series, up to its first array."""
    named = {"asset": asset_id, "symbol": points.symbols.get(asset_id)}
    return orjson.dumps(named).removesuffix(b"}") + b","
