"""Parquet and Arrow files."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import polars as pl

from analytics_service.errors import ImportRefused
from analytics_service.imports.files import readable, unpacked
from analytics_service.imports.tables import Table, numbered_fields

_BLOCK_ROWS = 500_000
# Limit of Polars for decimals.
_MAX_DIGITS = 38
_STRING_TYPES = (pl.String, pl.Categorical, pl.Enum, pl.Boolean, pl.Null)


def parquet_table(path: Path) -> Table:
    """The table of a Parquet file."""
    with readable(path):
        return _table(path, pl.scan_parquet(path, glob=False), "Parquet")


def arrow_table(path: Path, *, is_stream: bool) -> Table:
    """The table of an Arrow file, or of an Arrow stream. It is read as a whole."""
    with unpacked(path) as (_, content):
        # Polars reads a stream from the descriptor's position, which a buffered file is ahead of.
        frame = pl.read_ipc_stream(content.read()) if is_stream else pl.read_ipc(content)
    return _table(path, frame.lazy(), "Arrow")


def is_readable(dtype: pl.DataType) -> bool:
    """Whether values of a type can be read as text: numbers, text, dates and times."""
    return dtype.is_numeric() or dtype in _STRING_TYPES or isinstance(dtype, pl.Datetime | pl.Date)


def _table(path: Path, scan: pl.LazyFrame, shown: str) -> Table:
    schema = scan.collect_schema()
    height = int(scan.select(pl.len()).collect().item())
    fields = numbered_fields(schema.names())
    for name, dtype in schema.items():
        if isinstance(dtype, pl.Decimal) and dtype.precision > _MAX_DIGITS:
            raise ImportRefused(
                f"Column {name} of {path} has decimals of {dtype.precision} digits, and only {_MAX_DIGITS} can be "
                "read. Write decimals of fewer digits, or text."
            )
    blocks = partial(_blocks, path, scan, fields, height)
    return Table(path, schema.names(), fields, height, "row", blocks, shown, dict(schema))


def _blocks(path: Path, scan: pl.LazyFrame, fields: list[str], height: int) -> Iterator[tuple[pl.DataFrame, int]]:
    columns = zip(scan.collect_schema().items(), fields, strict=True)
    strings = [_text(name, dtype).alias(field) for (name, dtype), field in columns]
    for start in range(0, height, _BLOCK_ROWS):
        with readable(path):
            rows = scan.slice(start, _BLOCK_ROWS).select(*strings, extra=pl.lit("")).collect()
        yield rows.with_row_index("line", start + 1), rows.height


def _text(name: str, dtype: pl.DataType) -> pl.Expr:
    """A column as text; times with a zone in UTC. Columns that cannot be read are empty: they may not be used."""
    column = pl.col(name)
    if not is_readable(dtype):
        return pl.lit("")
    if isinstance(dtype, pl.Datetime):
        zone = "Z" if dtype.time_zone else ""
        moment = column.dt.convert_time_zone("UTC") if zone else column
        return moment.dt.to_string(f"%Y-%m-%dT%H:%M:%S%.f{zone}").fill_null("")
    return column.cast(pl.String).fill_null("")
