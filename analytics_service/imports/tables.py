"""Reads CSV, gzipped CSV and Parquet files as blocks of strings.

A CSV row is a single line of the file, so an error affects only its row, and line numbers are those that an editor
shows. Fields may be in double quotes; a quoted field cannot contain a comma or a line end, which no symbol, time or
number has. Blank lines at the end of a file are ignored; elsewhere they are empty rows.

Parquet columns of strings, integers and decimals are read exactly. Binary floats are read as their shortest decimal
string, which is most likely the intended number.
"""

import gzip
import io
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import polars as pl

from analytics_service.errors import ImportRefused
from analytics_service.imports.forms import Form

_BLOCK_BYTES = 16 * 2**20
_BLOCK_ROWS = 500_000
_LONGEST_HEADER = 64 * 2**10
_LONGEST_LINE = 4 * _BLOCK_BYTES
# Limit of Polars for decimals.
_MAX_DIGITS = 38
_STRING_TYPES = (pl.String, pl.Categorical, pl.Enum, pl.Boolean, pl.Null)
_Blocks = Callable[[], Iterator[tuple[pl.DataFrame, int]]]
_QUOTED = r'^\s*"(.*)"\s*$'


@dataclass(frozen=True, slots=True)
class Table:
    """A file with recognised columns.

    `columns` are the names in the file, in its order, and `fields` the corresponding fields of the form. `blocks`
    yields rows and the size of each block, which add up to `size`. Rows have the columns `line` (number of the row in
    the file), the fields, and `extra` (the rest of the line after the last field, without empty fields at the end).
    `row_label` is the unit of a row's number: "line", where the header is line 1, or "row".
    """

    path: Path
    form: Form
    columns: list[str]
    fields: list[str]
    size: int
    row_label: str
    blocks: _Blocks


def open_table(path: Path, forms: Sequence[Form]) -> Table:
    """Recognise the form of a file. ImportRefused when it is missing or unreadable, or its columns fit no form."""
    require_file(path, "Check the name.")
    opened = _file_state(path)
    with _readable(path), path.open("rb") as file:
        start = file.read(4)
    if not start:
        raise ImportRefused(f"{path} is empty. It needs a header line: {_shown(forms)}.")
    is_parquet = start == b"PAR1" or path.suffix == ".parquet"
    table = _parquet_table(path, forms) if is_parquet else _csv_table(path, forms)
    return replace(table, blocks=partial(_unchanged, path, opened, table.blocks))


def require_file(path: Path, cure: str) -> None:
    """ImportRefused, with `cure` as advice, when there is no such file; and for a name that is not UTF-8, which neither
    the ledger nor Polars accepts."""
    try:
        str(path).encode()
    except UnicodeEncodeError:
        raise ImportRefused(f"The name of the file {str(path)!r} is not UTF-8. Rename it.") from None
    if not path.is_file():
        raise ImportRefused(f"{path} is not a file. {cure}")


def _file_state(path: Path) -> tuple[int, int, int, int]:
    """A value that changes when a file is written to or replaced."""
    with _readable(path):
        status = path.stat()
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


def _unchanged(path: Path, opened: tuple[int, int, int, int], blocks: _Blocks) -> Iterator[tuple[pl.DataFrame, int]]:
    """The blocks. ImportRefused at the end if the file has changed since it was opened: they may be inconsistent."""
    yield from blocks()
    if _file_state(path) != opened:
        raise ImportRefused(
            f"{path} changed while it was read, so nothing was imported. Import it when it is complete."
        )


def _csv_table(path: Path, forms: Sequence[Form]) -> Table:
    with unpacked(path) as (_, stream):
        header = stream.readline(_LONGEST_HEADER)
    columns = [name.strip().strip('"') for name in header.decode("utf-8-sig", "replace").strip().split(",")]
    form, fields = _recognised(path, columns, forms)
    blocks = partial(_csv_blocks, path, fields)
    return Table(path, form, columns, fields, path.stat().st_size, "line", blocks)


def _csv_blocks(path: Path, fields: list[str]) -> Iterator[tuple[pl.DataFrame, int]]:
    with unpacked(path) as (raw, stream):
        stream.readline()
        line, reported, rest = 2, 0, b""
        while chunk := stream.read(_BLOCK_BYTES):
            rest += chunk
            # The last line that is not blank stays in `rest`: it may be incomplete, or the end of the file.
            cut = rest.rfind(b"\n", 0, len(rest.rstrip())) + 1
            if cut:
                rows = _parsed(rest[:cut], fields, line)
                yield rows, raw.tell() - reported
                line, reported, rest = line + rows.height, raw.tell(), rest[cut:]
            elif len(rest) > _LONGEST_LINE:
                raise ImportRefused(f"{path} is not a CSV file: no line ends within {_LONGEST_LINE:,} bytes.")
        if rest.strip():
            yield _parsed(rest.rstrip(), fields, line), raw.tell() - reported


def _parsed(block: bytes, fields: list[str], line: int) -> pl.DataFrame:
    names = [*fields, "extra"]
    # Bytes that are not UTF-8 invalidate only their own rows.
    decoded = block.decode("utf-8", "replace").encode()
    rows = (
        pl.read_lines(decoded, name="row", row_index_name="line", row_index_offset=line)
        .with_columns(pl.col("row").str.splitn(",", len(names)).struct.rename_fields(names))
        .unnest("row")
        .with_columns(pl.col(names).fill_null(""))
        .with_columns(pl.col("extra").str.strip_chars_end(", \t"))
    )
    if b'"' in block:
        unquoted = pl.col(fields).str.replace(_QUOTED, "$1").str.replace_all('""', '"', literal=True)
        rows = rows.with_columns(unquoted)
    return rows


def _parquet_table(path: Path, forms: Sequence[Form]) -> Table:
    with _readable(path):
        scan = pl.scan_parquet(path, glob=False)
        schema = scan.collect_schema()
        height = int(scan.select(pl.len()).collect().item())
    form, fields = _recognised(path, schema.names(), forms)
    for name, field in zip(schema.names(), fields, strict=True):
        dtype = schema[name]
        if isinstance(dtype, pl.Decimal) and dtype.precision > _MAX_DIGITS:
            raise ImportRefused(
                f"Column {name} of {path} has decimals of {dtype.precision} digits, and only {_MAX_DIGITS} can be "
                "read. Write decimals of fewer digits, or text."
            )
        if field in form.columns and not _is_readable(dtype):
            raise ImportRefused(
                f"Column {name} of {path} is of type {dtype}. Write prices, rates and unix times as numbers or text."
            )
        if field == "time" and dtype == pl.Float32:
            raise ImportRefused(
                f"Column {name} of {path} is of type Float32, in which unix times are rounded to minutes. Write whole "
                "numbers."
            )
    return Table(path, form, schema.names(), fields, height, "row", partial(_parquet_blocks, path, fields, height))


def _is_readable(dtype: pl.DataType) -> bool:
    return dtype.is_numeric() or dtype in _STRING_TYPES


def _parquet_blocks(path: Path, fields: list[str], height: int) -> Iterator[tuple[pl.DataFrame, int]]:
    with _readable(path):
        scan = pl.scan_parquet(path, glob=False)
        schema = scan.collect_schema()
    # Columns that the import does not use may be of any type.
    columns = {
        name: pl.col(name).cast(pl.String).fill_null("") if _is_readable(dtype) else pl.lit("")
        for name, dtype in schema.items()
    }
    strings = [column.alias(field) for column, field in zip(columns.values(), fields, strict=True)]
    for start in range(0, height, _BLOCK_ROWS):
        with _readable(path):
            rows = scan.slice(start, _BLOCK_ROWS).select(*strings, extra=pl.lit("")).collect()
        yield rows.with_row_index("line", start + 1), rows.height


def _recognised(path: Path, columns: list[str], forms: Sequence[Form]) -> tuple[Form, list[str]]:
    names = [name.lower() for name in columns]
    for form in forms:
        fields = {name.lower(): field for field, name in form.columns.items()}
        has_all = all(names.count(name) == 1 for name in fields)
        if has_all and (form.extra_columns or len(names) == len(fields)):
            return form, [fields.get(name, f"column {index}") for index, name in enumerate(names)]
    shown = ", ".join(columns)[:200]
    raise ImportRefused(f"{path} has the columns {shown!r}. It needs {_shown(forms)}.")


def _shown(forms: Sequence[Form]) -> str:
    return " or ".join(map(str, forms))


@contextmanager
def unpacked(path: Path) -> Iterator[tuple[io.BufferedIOBase, io.BufferedIOBase]]:
    """The file itself, whose position is the progress, and its unpacked content. ImportRefused when it is damaged."""
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
