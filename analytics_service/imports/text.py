"""Text with a delimiter: CSV, TSV and their relatives, in UTF-8, UTF-16 or what the caller says.

A row is a single line of the file, so an error affects only its row, and line numbers are those that an editor shows.
Fields may be in double quotes. Lines without a delimiter before the header, and blank ones at the end of a file, are
ignored; elsewhere they are rows. So are lines that begin with #, in files that do so before the header.
"""

import codecs
import csv
import io
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import IO

import polars as pl

from analytics_service.errors import ImportRefused
from analytics_service.imports.files import unpacked
from analytics_service.imports.tables import (
    LONG_FIELD,
    OPEN_QUOTE,
    Table,
    TableRules,
    numbered_fields,
    require_names,
    require_unsaid,
    rows_at_once,
)

_BLOCK_CHARACTERS = 4 * 2**20
_LONGEST_HEADER = 64 * 2**10
_LONGEST_LINE = 2 * _BLOCK_CHARACTERS
# Lines among which the header is looked for.
_LOOKED_AT = 20
_DELIMITERS = ",;\t|"
_NAMED_DELIMITER = re.compile(rf'"?sep=([{_DELIMITERS}])"?', re.IGNORECASE)
_QUOTED = re.compile(r'"[^"]*"')
_NAMES = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}


@dataclass(frozen=True, slots=True)
class _Form:
    """How a text is read: its encoding and delimiter, the lines before its rows, whether some are comments."""

    encoding: str
    delimiter: str
    before: int
    commented: bool


def text_table(path: Path, start: bytes, rules: TableRules) -> Table:
    """The table of a file whose content, unpacked, begins with `start`. The header names the columns unless the rules
    do, and its most frequent delimiter is that of the file, unless a line such as sep=; before it says which is."""
    require_unsaid(path, "text", rules, "rows")
    encoding = rules.encoding or _encoding(path, start)
    with _reading(path, encoding) as (_, stream):
        number, header, form = _header(path, stream, encoding, rules.skip)
    if not header:
        raise ImportRefused(f"{path} is empty. Its first line must name the columns.")
    shown = encoding.upper().removesuffix("-SIG")
    if "\N{REPLACEMENT CHARACTER}" in header:
        raise ImportRefused(f"{path} is not {shown}. Say what it is, such as --encoding latin-1.")
    columns = [name.strip() for name in _fields(header, form.delimiter)]
    if rules.columns:
        require_names(f"Line {number} of {path}", rules.columns, columns)
        columns, form = list(rules.columns), replace(form, before=number - 1)
    fields = numbered_fields(path, columns)
    kind = f"text, {shown}, separated by {_NAMES[form.delimiter]}"
    if form.before > 1:
        kind += f", from line {form.before + 1} on"
    blocks = partial(_blocks, path, fields, form)
    return Table(path, columns, fields, path.stat().st_size, "line", blocks, kind, delimiter=form.delimiter)


def _encoding(path: Path, start: bytes) -> str:
    if start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    if b"\0" in start:
        raise ImportRefused(
            f"{path} has NUL bytes and is neither Parquet nor Arrow. Text must be UTF-8, or UTF-16 with a byte order "
            "mark. Unpack archives, and save spreadsheets as xlsx or CSV."
        )
    return "utf-8-sig"


@contextmanager
def _reading(path: Path, encoding: str) -> Iterator[tuple[IO[bytes], io.TextIOWrapper]]:
    with unpacked(path) as (raw, content):
        # Bytes that are not text invalidate only their own rows.
        yield raw, io.TextIOWrapper(content, encoding, errors="replace")


def _header(path: Path, stream: io.TextIOWrapper, encoding: str, skip: int) -> tuple[int, str, _Form]:
    """The number and the content of the first line with a delimiter, after those to skip and among the first that are
    neither blank nor comments; else of the first of these. The content is empty without one."""
    delimiter: str | None = None
    lines: list[tuple[int, str]] = []
    comment = 0, ""
    for number, line in enumerate(iter(lambda: stream.readline(_LONGEST_HEADER), ""), start=1):
        text = line.removeprefix("\ufeff").strip("\r\n")
        if number <= skip or not text.strip():
            continue
        if len(line) == _LONGEST_HEADER:
            if lines:
                break
            raise ImportRefused(f"The first line of {path}, which must name the columns, is too long.")
        if text.startswith("#"):
            comment = number, text
        elif not lines and (named := _NAMED_DELIMITER.fullmatch(text)):
            delimiter = named[1]
        else:
            lines.append((number, text))
            if (delimiter or _delimiter(text)) in text or len(lines) == _LOOKED_AT:
                break
    is_found = lines and (delimiter or _delimiter(lines[-1][1])) in lines[-1][1]
    number, header = lines[-1 if is_found else 0] if lines else comment
    delimiter = delimiter or _delimiter(header)
    if header[:1].isdigit() and 0 < header.count(delimiter) == comment[1].count(delimiter):
        # Some programs write # before the names of columns.
        number, header = comment[0], comment[1].lstrip("# ")
    return number, header, _Form(encoding, delimiter, number, bool(comment[1]))


def _delimiter(line: str) -> str:
    return max(_DELIMITERS, key=_QUOTED.sub("", line).count)


def _fields(line: str, delimiter: str) -> list[str]:
    return next(csv.reader([line], delimiter=delimiter, skipinitialspace=True), [])


def _blocks(path: Path, fields: list[str], form: _Form) -> Iterator[tuple[pl.DataFrame, int]]:
    with _reading(path, form.encoding) as (raw, stream):
        for _ in range(form.before):
            stream.readline()
        line, reported, rest, chunk = form.before + 1, 0, "", "\n"
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
                rows = part.filter(~pl.col("row").str.starts_with("#")) if form.commented else part
                yield _rows(rows, fields, form.delimiter), raw.tell() - reported
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
