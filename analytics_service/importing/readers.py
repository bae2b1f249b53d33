"""Reads files as batches of rows of text. The content shows the format: CSV, NDJSON, a JSON array, Parquet or Arrow.

Text, integers and decimals are read exactly, binary floats as their shortest decimal text. The error about an invalid
file names its first invalid line and the recipes.
"""

import csv
import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import repeat
from pathlib import Path
from typing import Any

import polars as pl

from analytics_service.errors import UserError
from analytics_service.importing.files import open_file_to_read, size_of, unpack

RECIPES = "`analytics-service example recipes`"
# Bytes of text in a batch, and the limit of a line.
_BLOCK = 8 * 2**20
# Rows in a batch of Parquet or Arrow.
_ROWS = 500_000
# Largest file with a single JSON value, in bytes. In memory it takes up to thirty times as many.
_MAX_DOCUMENT = 32 * 2**20
_BOM = b"\xef\xbb\xbf"
_ARROW_STREAM = b"\xff\xff\xff\xff"
# Whole floats below this are written without an exponent, because they may be times.
_MAX_WHOLE = 2**53
_SHOWN = 60
Batches = Iterator[tuple[pl.DataFrame, int]]


@dataclass(frozen=True, slots=True)
class SourceTable:
    """A file as rows of text.

    `columns` are the names in the file. `read` yields batches of the requested columns with their sizes, which add up
    to `size`. `label` says what numbers count, "line" or "row". Columns in `rounded` have 32-bit floats, which round
    times to minutes. `unreadable` has the types of columns that cannot be read as text.
    """

    path: Path
    columns: Sequence[str]
    size: int
    label: str
    read: Callable[[Sequence[str]], Batches]
    rounded: Collection[str] = ()
    unreadable: Mapping[str, str] = field(default_factory=dict)

    def column(self, name: str) -> str | None:
        """The column with this name, in any case; None if there is none, or several."""
        exact = [column for column in self.columns if column == name]
        matches = exact or [column for column in self.columns if column.strip().casefold() == name.casefold()]
        return matches[0] if len(matches) == 1 else None

    def batches(self, columns: Sequence[str]) -> Batches:
        """Rows with `line`, counted from 1, and the columns as text or null. Rows that are null in all columns are
        skipped. UserError if a row is invalid."""
        for name in columns:
            if name in self.unreadable:
                raise self.refused(None, name, "", f"is of type {self.unreadable[name]}; write text or numbers")
        for rows, size in self.read(columns):
            yield rows.filter(pl.any_horizontal(pl.col(columns).is_not_null())), size

    def refused(self, line: int | None, column: str | None, value: str | None, advice: str) -> UserError:
        """The error about a value: its place in the file, and `advice`, which says what is wrong and what to do."""
        return UserError(f"{quote_value(self.path, self.label, line, column, value)} {advice}.")


def quote_value(path: Path, label: str, line: int | None, column: str | None, value: str | None) -> str:
    """A place in a file and its value, in words."""
    place = f"{path}"
    place += f", {label} {line}" if line is not None else ""
    place += f", column {column}" if column is not None else ""
    if not value:
        return f"{place}:"
    return f"{place}: {value if len(value) <= _SHOWN else value[:_SHOWN] + '...'!r}"


def open_table(path: Path, separator: str = ",") -> SourceTable:
    """The table of a file; `separator` is for CSV. UserError if the file is missing, empty or of another format."""
    table = _table(path, separator)
    if not table.columns:
        raise _other_layout(path, None, "has no rows")
    return table


def _table(path: Path, separator: str) -> SourceTable:
    size = size_of(path)
    with unpack(path) as (_, content):
        start = content.read(4096).removeprefix(_BOM).lstrip()
    if start.startswith(b"PAR1"):
        return _columnar_table(path, lambda: pl.scan_parquet(path, glob=False))
    if start.startswith(b"ARROW1"):
        return _columnar_table(path, lambda: pl.scan_ipc(path, glob=False))
    if start.startswith(_ARROW_STREAM):
        return _columnar_table(path, lambda: pl.read_ipc_stream(path.read_bytes()).lazy())
    if start.startswith((b"{", b"[")):
        return _json_table(path, size)
    if b"\0" in start:
        raise _other_layout(path, None, "is not text in UTF-8, Parquet or Arrow")
    return _csv_table(path, size, separator)


def _other_layout(path: Path, line: int | None, fault: str, label: str = "line") -> UserError:
    where = f"{path}, {label} {line}" if line is not None else f"{path}"
    return UserError(f"{where} {fault}. See how to convert such files: {RECIPES}.")


def _blocks(path: Path) -> Iterator[tuple[bytes, int]]:
    """Blocks of whole lines of a text file, with their bytes in the file."""
    with unpack(path) as (raw, content):
        reported, block = 0, content.read(len(_BOM)).removeprefix(_BOM)
        while chunk := content.read(_BLOCK):
            end = b"" if chunk.endswith(b"\n") else content.readline(_BLOCK)
            if len(end) == _BLOCK:
                raise _other_layout(path, None, f"has a line longer than {_BLOCK // 2**20} MiB")
            yield block + chunk + end, raw.tell() - reported
            reported, block = raw.tell(), b""
        if block:
            yield block, raw.tell() - reported


def _csv_table(path: Path, size: int, separator: str) -> SourceTable:
    header, _, _ = next((block for block, _ in _blocks(path)), b"").partition(b"\n")
    columns = _fields(path, 1, header, separator)
    return SourceTable(path, columns, size, "line", _Csv(path, columns, separator).batches)


def _fields(path: Path, line: int, content: bytes, separator: str) -> list[str]:
    """The fields of a line; none for a blank line."""
    try:
        text = content.decode().strip("\r ")
        return next(csv.reader([text], delimiter=separator, strict=True), [])
    except UnicodeDecodeError:
        raise _other_layout(path, line, "is not UTF-8; `iconv -f LATIN1 -t UTF-8` converts it from Latin-1") from None
    except csv.Error:
        raise _other_layout(path, line, "has an unclosed quote, or text next to a quoted field") from None


@dataclass(frozen=True, slots=True)
class _Csv:
    """A CSV file whose first line names the columns."""

    path: Path
    columns: Sequence[str]
    separator: str

    def batches(self, wanted: Sequence[str]) -> Batches:
        """The wanted columns, block by block."""
        schema = {f"column_{number}": pl.String() for number in range(len(self.columns))}
        names = [pl.col(f"column_{self.columns.index(name)}").alias(name) for name in wanted]
        line = 1
        for block, size in _blocks(self.path):
            # Polars takes the number of fields from the first line, so that must not be blank.
            lines = (block.partition(b"\n")[2] if line == 1 else block).lstrip(b"\r\n")
            line += block.removesuffix(lines).count(b"\n")
            try:
                rows = pl.read_csv(
                    lines, has_header=False, separator=self.separator, schema=schema, raise_if_empty=False
                )
            except pl.exceptions.PolarsError as error:
                self._require_shape(line, lines)
                raise _other_layout(self.path, line, "or a later line is not CSV") from error
            if b'"' in lines and rows.height != lines.count(b"\n") + (not lines.endswith(b"\n")):
                self._require_shape(line, lines)
            if self.columns and rows[:, -1].null_count():
                # Polars pads short lines.
                self._require_shape(line, lines, rows[:, -1].is_null())
            yield rows.select(names).with_row_index("line", line), size
            line += rows.height

    def _require_shape(self, first: int, lines: bytes, suspects: Iterable[bool] = repeat(True)) -> None:
        """UserError for the first suspect line that does not have a field for each column. Blank lines are skipped."""
        for line, (content, is_suspect) in enumerate(zip(lines.split(b"\n"), suspects, strict=False), first):
            fields = _fields(self.path, line, content, self.separator) if is_suspect else []
            if fields and len(fields) != len(self.columns):
                shown = self.separator.join(fields)[:_SHOWN]
                fault = f"has {len(fields)} fields, but line 1 has {len(self.columns)} columns: {shown!r}"
                raise _other_layout(self.path, line, fault)


def _json_table(path: Path, size: int) -> SourceTable:
    """An object a line, or a JSON array, which is read at once."""
    line, _, _ = next(block for block, _ in _blocks(path)).lstrip().partition(b"\n")
    if isinstance(_parsed(line), dict):
        records = _line_records(path)
        columns = _names(next(records)[0].values())
        return SourceTable(path, columns, size, "line", partial(_record_batches, partial(_line_records, path)))
    with unpack(path) as (_, stream):
        content = stream.read(_MAX_DOCUMENT + 1).removeprefix(_BOM)
    if len(content) > _MAX_DOCUMENT:
        raise _other_layout(path, None, "is a single JSON value that is too large; write one object a line")
    rows = _parsed(content)
    if not isinstance(rows, list):
        raise _other_layout(path, None, "is neither an object a line nor an array of flat objects")
    numbered = dict(enumerate(rows, start=1))
    for number, record in numbered.items():
        if not isinstance(record, dict):
            raise _other_layout(path, number, f"is not an object: {json.dumps(record)[:_SHOWN]}", "row")
    read = partial(_record_batches, lambda: iter([(numbered, len(rows))]))
    return SourceTable(path, _names(rows), len(rows), "row", read)


def _parsed(content: bytes) -> Any:
    """A JSON value, with numbers as text; None if the content is not JSON."""
    try:
        return json.loads(content, parse_int=str, parse_float=str, parse_constant=str)
    except (ValueError, RecursionError):
        return None


def _names(records: Collection[Mapping[str, Any]]) -> list[str]:
    return list(dict.fromkeys(name for record in records for name in record))


def _line_records(path: Path) -> Iterator[tuple[dict[int, dict[str, Any]], int]]:
    """The objects of each block by line, with the block's size."""
    first = 1
    for block, size in _blocks(path):
        lines = {line: content for line, content in enumerate(block.split(b"\n"), first) if content.strip()}
        first += block.count(b"\n")
        values = _parsed(b"[" + b",".join(lines.values()) + b"]")
        records = values if isinstance(values, list) and len(values) == len(lines) else [*map(_parsed, lines.values())]
        for line, record in zip(lines, records, strict=True):
            if not isinstance(record, dict):
                text = lines[line][:_SHOWN].decode(errors="replace")
                raise _other_layout(path, line, f"is not a JSON object: {text!r}")
        yield dict(zip(lines, records, strict=True)), size


def _record_batches(read: Callable[[], Iterator[tuple[dict[int, Any], int]]], wanted: Sequence[str]) -> Batches:
    for records, size in read():
        texts = {name: [_text(record.get(name)) for record in records.values()] for name in wanted}
        schema = {"line": pl.UInt32(), **dict.fromkeys(wanted, pl.String())}
        yield pl.DataFrame({"line": [*records], **texts}, schema), size


def _text(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        # JSON may have halves of surrogate pairs, which are not valid text.
        return value if value is None or value.isascii() else value.encode("utf-8", "replace").decode()
    return json.dumps(value)


def _columnar_table(path: Path, scan: Callable[[], pl.LazyFrame]) -> SourceTable:
    with open_file_to_read(path):
        schema = scan().collect_schema()
        height = int(scan().select(pl.len()).collect().item())
    unreadable = {name: f"{dtype}" for name, dtype in schema.items() if not _is_readable(dtype)}
    rounded = [name for name, dtype in schema.items() if dtype == pl.Float32]
    batches = partial(_columnar_batches, path, scan, height)
    return SourceTable(path, schema.names(), height, "row", batches, rounded, unreadable)


def _is_readable(dtype: pl.DataType) -> bool:
    if isinstance(dtype, pl.Decimal):
        return dtype.precision <= pl.Decimal(None).precision
    is_text = dtype in (pl.String, pl.Categorical, pl.Enum, pl.Boolean, pl.Null)
    return is_text or dtype.is_numeric() or isinstance(dtype, pl.Datetime | pl.Date)


def _columnar_batches(path: Path, scan: Callable[[], pl.LazyFrame], height: int, wanted: Sequence[str]) -> Batches:
    with open_file_to_read(path):
        frame = scan()
        schema = frame.collect_schema()
    for start in range(0, height, _ROWS):
        with open_file_to_read(path):
            rows = frame.slice(start, _ROWS).select(_as_text(name, schema[name]) for name in wanted).collect()
        yield rows.with_row_index("line", start + 1), rows.height


def _as_text(name: str, dtype: pl.DataType) -> pl.Expr:
    """A column as text. Times with a zone are in UTC."""
    column = pl.col(name)
    if isinstance(dtype, pl.Datetime):
        moment = column.dt.convert_time_zone("UTC") if dtype.time_zone else column
        return moment.dt.to_string(f"%Y-%m-%dT%H:%M:%S%.f{'Z' if dtype.time_zone else ''}")
    if dtype == pl.Float64:
        is_whole = (column == column.round()) & (column.abs() < _MAX_WHOLE)
        return (
            pl.when(is_whole)
            .then(column.cast(pl.Int64, strict=False).cast(pl.String))
            .otherwise(column.cast(pl.String))
        )
    return column.cast(pl.String)
