"""Text with a delimiter: CSV, TSV and their relatives, in UTF-8 or UTF-16.

A row is a single line of the file, so an error affects only its row, and line numbers are those that an editor shows.
Fields may be in double quotes. Blank lines before the header and at the end of a file are ignored; elsewhere they are
empty rows.
"""

import codecs
import csv
import io
import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import IO

import polars as pl

from analytics_service.errors import ImportRefused
from analytics_service.imports.files import unpacked
from analytics_service.imports.tables import LONG_FIELD, OPEN_QUOTE, Table, numbered_fields, rows_at_once

_BLOCK_CHARACTERS = 4 * 2**20
_LONGEST_HEADER = 64 * 2**10
_LONGEST_LINE = 2 * _BLOCK_CHARACTERS
_DELIMITERS = ",;\t|"
_NAMED_DELIMITER = re.compile(rf'"?sep=([{_DELIMITERS}])"?', re.IGNORECASE)
_QUOTED = re.compile(r'"[^"]*"')
_NAMES = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}


def text_table(path: Path, start: bytes) -> Table:
    """The table of a file whose content, unpacked, begins with `start`. The header names the columns, and its most
    frequent delimiter is that of the file, unless a line such as sep=; before it says which is."""
    encoding = _encoding(path, start)
    with _reading(path, encoding) as (_, stream):
        number, header = _header(path, stream, 0)
        named = _NAMED_DELIMITER.fullmatch(header)
        if named:
            number, header = _header(path, stream, number)
    delimiter = named[1] if named else max(_DELIMITERS, key=_QUOTED.sub("", header).count)
    columns = [name.strip() for name in _fields(header, delimiter)]
    if not header:
        raise ImportRefused(f"{path} is empty. Its first line must name the columns.")
    if "\N{REPLACEMENT CHARACTER}" in header:
        raise ImportRefused(f"{path} is not UTF-8. Convert it, such as with iconv -f cp1252 -t utf-8.")
    fields = numbered_fields(path, columns)
    blocks = partial(_blocks, path, encoding, fields, delimiter, number)
    shown = f"text, {encoding.upper().removesuffix('-SIG')}, separated by {_NAMES[delimiter]}"
    return Table(path, columns, fields, path.stat().st_size, "line", blocks, shown, delimiter=delimiter)


def _encoding(path: Path, start: bytes) -> str:
    if start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    if b"\0" in start:
        raise ImportRefused(
            f"{path} is not text, Parquet or Arrow that can be read. Text must be UTF-8, or UTF-16 with a byte order "
            "mark. Unpack archives, and save spreadsheets as CSV."
        )
    return "utf-8-sig"


@contextmanager
def _reading(path: Path, encoding: str) -> Iterator[tuple[IO[bytes], io.TextIOWrapper]]:
    with unpacked(path) as (raw, content):
        # Bytes that are not text invalidate only their own rows.
        yield raw, io.TextIOWrapper(content, encoding, errors="replace")


def _header(path: Path, stream: io.TextIOWrapper, before: int) -> tuple[int, str]:
    """The number and the content of the next line that is not blank, after a number of lines; empty without one."""
    for number, line in enumerate(iter(lambda: stream.readline(_LONGEST_HEADER), ""), start=before + 1):
        if len(line) == _LONGEST_HEADER:
            raise ImportRefused(f"The first line of {path}, which must name the columns, is too long.")
        if line.strip():
            return number, line.strip("\r\n")
    return 0, ""


def _fields(line: str, delimiter: str) -> list[str]:
    return next(csv.reader([line], delimiter=delimiter, skipinitialspace=True), [])


def _blocks(
    path: Path, encoding: str, fields: list[str], delimiter: str, header: int
) -> Iterator[tuple[pl.DataFrame, int]]:
    with _reading(path, encoding) as (raw, stream):
        for _ in range(header):
            stream.readline()
        line, reported, rest, chunk = header + 1, 0, "", "\n"
        while chunk:
            chunk = stream.read(_BLOCK_CHARACTERS)
            rest += chunk
            # The last line that is not blank stays in `rest`: it may be incomplete, or the end of the file.
            end = len(rest.rstrip())
            cut = rest.rfind("\n", 0, end) + 1 if chunk else end
            if not cut and len(rest) > _LONGEST_LINE:
                raise ImportRefused(f"{path} is not text in lines: no line ends within {_LONGEST_LINE:,} characters.")
            lines = pl.read_lines(rest[:cut].encode(), name="row", row_index_name="line", row_index_offset=line)
            for part in lines.iter_slices(rows_at_once(fields)):
                yield _rows(part, fields, delimiter), raw.tell() - reported
                reported = raw.tell()
            line, rest = line + lines.height, rest[cut:]


def _rows(lines: pl.DataFrame, fields: list[str], delimiter: str) -> pl.DataFrame:
    names = [*fields, "extra"]
    if lines["row"].str.contains('"', literal=True).any():
        rows = lines.select("line", pl.Series("row", _quoted(lines["row"], len(fields), delimiter), _struct(names)))
    else:
        rows = lines.with_columns(pl.col("row").str.splitn(delimiter, len(names)).struct.rename_fields(names))
    return (
        rows.unnest("row")
        .with_columns(pl.col(names).fill_null(""))
        .with_columns(pl.col("extra").str.strip_chars_end(f"{delimiter} \t"))
    )


def _struct(names: list[str]) -> pl.Struct:
    return pl.Struct(dict.fromkeys(names, pl.String()))


def _quoted(lines: pl.Series, count: int, delimiter: str) -> list[tuple[str, ...]]:
    """The fields of lines, and the rest of each after `count` fields, or why it cannot be split."""
    split = (_split(line, delimiter) for line in lines)
    return [(*row[:count], *[""] * (count - len(row)), fault or delimiter.join(row[count:])) for row, fault in split]


def _split(line: str, delimiter: str) -> tuple[list[str], str]:
    # A second line is read only if a quote is still open at the end of the first.
    reader = csv.reader([line, ""], delimiter=delimiter, skipinitialspace=True)
    try:
        fields = next(reader)
    except csv.Error:
        return [], LONG_FIELD
    return fields, "" if reader.line_num == 1 else OPEN_QUOTE
