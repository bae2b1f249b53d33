"""Parquet and Arrow files."""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import polars as pl

from analytics_service.errors import ImportRefused
from analytics_service.imports.files import readable, unpacked
from analytics_service.imports.tables import Table, TableRules, numbered_fields, require_unsaid, rows_at_once

ARROW_STREAM = b"\xff\xff\xff\xff"
# Bytes of a block as text.
_MOST_TEXT = 256 * 2**20
# Limit of Polars for decimals.
_MAX_DIGITS = 38
_STRING_TYPES = (pl.String, pl.Categorical, pl.Enum, pl.Boolean, pl.Null)


def parquet_table(path: Path, _: bytes, rules: TableRules) -> Table:
    """The table of a Parquet file."""
    require_unsaid(path, "Parquet", rules, "columns", "skip", "rows", "encoding")
    return _table(path, lambda: pl.scan_parquet(path, glob=False), "Parquet")


def arrow_table(path: Path, start: bytes, rules: TableRules) -> Table:
    """The table of an Arrow file, or of an Arrow stream. It is read as a whole."""
    require_unsaid(path, "Arrow", rules, "columns", "skip", "rows", "encoding")
    is_stream = start.startswith(ARROW_STREAM)

    def read() -> pl.LazyFrame:
        with unpacked(path) as (_, content):
            # Polars reads a stream from the descriptor's position, which a buffered file is ahead of.
            return (pl.read_ipc_stream(content.read()) if is_stream else pl.read_ipc(content)).lazy()

    return _table(path, read, "Arrow")


def is_readable(dtype: pl.DataType) -> bool:
    """Whether values of a type can be read as text: numbers, text, dates and times."""
    return dtype.is_numeric() or dtype in _STRING_TYPES or isinstance(dtype, pl.Datetime | pl.Date)


def _table(path: Path, read: Callable[[], pl.LazyFrame], shown: str) -> Table:
    with readable(path):
        scan = read()
        schema = scan.collect_schema()
        height = int(scan.select(pl.len()).collect().item())
    fields = numbered_fields(path, schema.names())
    for name, dtype in schema.items():
        if isinstance(dtype, pl.Decimal) and dtype.precision > _MAX_DIGITS:
            raise ImportRefused(
                f"Column {name} of {path} has decimals of {dtype.precision} digits, and only {_MAX_DIGITS} can be "
                "read. Write decimals of fewer digits, or text."
            )
    blocks = partial(_blocks, path, read, fields, height)
    return Table(path, schema.names(), fields, height, "row", blocks, shown, dict(schema))


def _blocks(
    path: Path, read: Callable[[], pl.LazyFrame], fields: list[str], height: int
) -> Iterator[tuple[pl.DataFrame, int]]:
    scan = read()
    columns = zip(scan.collect_schema().items(), fields, strict=True)
    strings = [_text(name, dtype).alias(field) for (name, dtype), field in columns]
    most = rows_at_once(fields)
    for start in range(0, height, most):
        with readable(path):
            rows = scan.slice(start, most).select(*strings, extra=pl.lit("")).collect()
        # A string that is in many rows is in memory once as yet.
        if rows.estimated_size() > _MOST_TEXT:
            raise ImportRefused(
                f"{path} has too much text in rows {start + 1:,} to {start + rows.height:,} to be read."
            )
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
