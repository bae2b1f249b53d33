"""Points as a table of typed columns: an Arrow IPC stream, or a Parquet file."""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from io import BytesIO

import polars as pl
from polars import CompatLevel

from analytics_service.history.formats.base import COUNT, Format, Points
from analytics_service.history.segments import row_index
from analytics_service.market.kinds import DECIMAL
from analytics_service.market.sums import TOTAL

_TIME = pl.Datetime("ms", "UTC")


def encode_arrow(points: Points) -> bytes:
    """One batch of rows. The layout of strings is the one that all versions of Arrow read."""
    file = BytesIO()
    table(points).write_ipc_stream(file, compression="uncompressed", compat_level=CompatLevel.oldest())
    return file.getvalue()


def encode_parquet(points: Points) -> bytes:
    """The rows, compressed column by column: compressing the file again saves nothing."""
    file = BytesIO()
    table(points).write_parquet(file, compression="zstd")
    return file.getvalue()


ARROW = Format(name="arrow", media="application/vnd.apache.arrow.stream", encode=encode_arrow, suffix="arrows")
PARQUET = Format(
    name="parquet",
    media="application/vnd.apache.parquet",
    encode=encode_parquet,
    suffix="parquet",
    is_packed=True,
)


def table(points: Points) -> pl.DataFrame:
    """A row for each point, series by series, with the columns t, asset_id, symbol, and the points' columns.

    Times are in milliseconds, Parquet's coarsest unit; values are decimal128(38, 18); ids and symbols are dictionaries,
    and null for a sum over assets.
    """
    ids = tuple(None if asset_id == TOTAL else asset_id for asset_id in points.ids)
    symbols = tuple(points.symbols.get(asset_id) if asset_id is not None else None for asset_id in ids)
    begins = (pl.Series("t", points.begins, dtype=pl.Int64) * 1000).cast(_TIME)
    count = len(begins)
    numbers = [column.cast(_type(column.name)) for column in points.values.get_columns()]
    # Gathering rows clears the bytes under nulls, so that equal pages have equal bytes.
    rows = pl.int_range(len(points.values), eager=True)
    numbers = [column[rows] for column in numbers]
    named = [_repeated("asset_id", ids, count), _repeated("symbol", symbols, count)]
    return pl.DataFrame([begins[row_index(len(ids), count)[1]], *named, *numbers])


def _type(column: str) -> pl.DataType:
    return pl.Int64() if column == COUNT else DECIMAL


@lru_cache(maxsize=8)
def _repeated(name: str, words: Sequence[str | None], count: int) -> pl.Series:
    """A dictionary column with each word repeated `count` times."""
    return pl.Series(name, words, dtype=_dictionary(words))[row_index(len(words), count)[0]]


def _dictionary(words: Iterable[str | None]) -> pl.Enum:
    return pl.Enum(list(dict.fromkeys(word for word in words if word is not None)))
