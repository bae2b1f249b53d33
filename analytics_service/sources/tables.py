"""Reads CSV, gzipped CSV and Parquet files of prices as blocks of text.

A CSV row is one line of the file, so a fault costs one row and line numbers are those an editor shows. Fields may
stand in double quotes; a quoted field cannot hold a comma or a line end, which no symbol, time or price does.
Blank lines at the end of a file are no rows; elsewhere they are empty ones.

Parquet columns of text, integers and decimals are taken exactly. Binary floats are taken as their shortest decimal
text, the number their writer meant: such a file holds nothing better.
"""

import gzip
import io
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from functools import partial
from pathlib import Path

import polars as pl

from analytics_service.errors import ImportRefused

_BLOCK_BYTES = 16 * 2**20
_BLOCK_ROWS = 500_000
_LONGEST_HEADER = 64 * 2**10
_LONGEST_LINE = 4 * _BLOCK_BYTES
# Columns of a block: the row's number in its file, its fields, and whatever follows the third field.
FIELDS = ["key", "time", "price"]
_QUOTED = r'^\s*"(.*)"\s*$'


class Form(Enum):
    """Names of the columns of a price file: what names the asset, the time, the price."""

    SYMBOL = ("symbol", "timestamp", "USD_price")
    ID = ("asset_id", "ts", "price")


@dataclass(frozen=True, slots=True)
class Table:
    """A price file whose columns have been recognised.

    `columns` are the file's own, in its order; `fields` says which of FIELDS each of them is. `size` is what the
    sizes of all blocks add up to. A row's number counts `place`s: lines with the header as the first, or rows.
    """

    path: Path
    form: Form
    columns: list[str]
    fields: list[str]
    size: int
    place: str
    blocks: Callable[[], Iterator[tuple[pl.DataFrame, int]]]


def open_table(path: Path) -> Table:
    """Recognise a price file. ImportRefused when it is missing, unreadable, or has other columns."""
    if not path.is_file():
        raise ImportRefused(f"{path} is not a file. Check the name.")
    with _readable(path), path.open("rb") as file:
        start = file.read(4)
    if not start:
        raise ImportRefused(f"{path} is empty. It needs a header line: {_forms()}.")
    if start == b"PAR1" or path.suffix == ".parquet":
        return _parquet_table(path)
    with _lines(path) as (_, stream):
        header = stream.readline(_LONGEST_HEADER)
    columns = [name.strip().strip('"') for name in header.decode("utf-8-sig", "replace").strip().split(",")]
    form, fields = _recognised(path, columns)
    blocks = partial(_csv_blocks, path, fields)
    return Table(path, form, columns, fields, path.stat().st_size, "line", blocks)


def _csv_blocks(path: Path, fields: list[str]) -> Iterator[tuple[pl.DataFrame, int]]:
    with _lines(path) as (raw, stream):
        stream.readline()
        line, told, rest = 2, 0, b""
        while chunk := stream.read(_BLOCK_BYTES):
            rest += chunk
            # The last line that is not blank stays in hand: it may be incomplete, or nothing may follow it.
            cut = rest.rfind(b"\n", 0, len(rest.rstrip())) + 1
            if cut:
                rows = _parsed(rest[:cut], fields, line)
                yield rows, raw.tell() - told
                line, told, rest = line + rows.height, raw.tell(), rest[cut:]
            elif len(rest) > _LONGEST_LINE:
                raise ImportRefused(f"{path} is not a CSV file: no line ends within {_LONGEST_LINE:,} bytes.")
        if rest.strip():
            yield _parsed(rest.rstrip(), fields, line), raw.tell() - told


def _parsed(block: bytes, fields: list[str], line: int) -> pl.DataFrame:
    rows = pl.read_csv(
        block,
        has_header=False,
        schema=dict.fromkeys([*fields, "extra"], pl.String()),
        # Quotes are taken off below: one that is never closed must not swallow the lines after it.
        quote_char=None,
        encoding="utf8-lossy",
        empty_string_is_null=False,
        missing_columns="insert",
        extra_columns="ignore",
        truncate_ragged_lines=True,
        row_index_name="line",
        row_index_offset=line,
    )
    if b'"' in block:
        unquoted = pl.col(fields).str.replace(_QUOTED, "$1").str.replace_all('""', '"', literal=True)
        rows = rows.with_columns(unquoted)
    return rows


def _parquet_table(path: Path) -> Table:
    with _readable(path):
        scan = pl.scan_parquet(path, glob=False)
        schema = scan.collect_schema()
        height = int(scan.select(pl.len()).collect().item())
    form, fields = _recognised(path, schema.names())
    for name, dtype in schema.items():
        if not (dtype.is_numeric() or dtype in (pl.String, pl.Categorical, pl.Enum, pl.Null)):
            raise ImportRefused(
                f"Column {name} of {path} is of type {dtype}. Write prices and unix times as numbers or text."
            )
    return Table(path, form, schema.names(), fields, height, "row", partial(_parquet_blocks, path, fields, height))


def _parquet_blocks(path: Path, fields: list[str], height: int) -> Iterator[tuple[pl.DataFrame, int]]:
    with _readable(path):
        scan = pl.scan_parquet(path, glob=False)
        names = scan.collect_schema().names()
    texts = [pl.col(name).cast(pl.String).fill_null("").alias(field) for name, field in zip(names, fields, strict=True)]
    for start in range(0, height, _BLOCK_ROWS):
        with _readable(path):
            rows = scan.slice(start, _BLOCK_ROWS).select(*texts, extra=pl.lit("")).collect()
        yield rows.with_row_index("line", start + 1), rows.height


def _recognised(path: Path, columns: list[str]) -> tuple[Form, list[str]]:
    found = [name.lower() for name in columns]
    for form in Form:
        known = dict(zip((name.lower() for name in form.value), FIELDS, strict=True))
        if sorted(found) == sorted(known):
            return form, [known[name] for name in found]
    shown = ", ".join(columns)[:200]
    raise ImportRefused(f"{path} has the columns {shown!r}. A price file needs {_forms()}.")


def _forms() -> str:
    return " or ".join(",".join(form.value) for form in Form)


@contextmanager
def _lines(path: Path) -> Iterator[tuple[io.BufferedIOBase, io.BufferedIOBase]]:
    """The file as stored, whose position tells the progress, and its unpacked content."""
    with _readable(path), path.open("rb") as raw:
        if raw.read(2) == b"\x1f\x8b":
            raw.seek(0)
            with gzip.open(raw) as unpacked:
                yield raw, unpacked
        else:
            raw.seek(0)
            yield raw, raw


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    try:
        yield
    except (OSError, EOFError, zlib.error, pl.exceptions.PolarsError) as error:
        reason = str(error).partition("\n")[0][:200]
        raise ImportRefused(f"{path} cannot be read: {reason}. It may be damaged or incomplete.") from error
