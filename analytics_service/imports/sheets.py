"""Workbooks of spreadsheets (xlsx): one sheet, whose first row with more than its first cell names the columns."""

import warnings
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import date, datetime, time
from decimal import Decimal
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import ParseError
from zipfile import ZipFile

import polars as pl

from analytics_service.errors import ImportRefused
from analytics_service.imports.files import readable
from analytics_service.imports.tables import (
    Table,
    TableRules,
    numbered_fields,
    require_names,
    require_unsaid,
    rows_at_once,
    text_frame,
)

# Unpacked. Workbooks have a million rows at most.
_MAX_BYTES = 2**30
_Row = tuple[int, list[str]]


def sheet_table(path: Path, _: bytes, rules: TableRules) -> Table:
    """The table of a workbook: of its only sheet, or of the one that the rules name."""
    require_unsaid(path, "a workbook", rules, "encoding")
    with _sheet(path, rules.rows) as sheet:
        found = ((number, cells) for number, cells in _rows(sheet) if number > rules.skip)
        first = next(((number, cells) for number, cells in islice(found, 20) if any(cells[1:])), None)
    if first is None:
        raise ImportRefused(f"{path} is empty. The first row of its sheet must name the columns.")
    number, columns = first
    if rules.columns:
        require_names(f"Row {number} of {path}", rules.columns, columns)
        number, columns = number - 1, list(rules.columns)
    fields, size = numbered_fields(path, columns), path.stat().st_size
    return Table(path, columns, fields, size, "row", partial(_blocks, path, rules.rows, fields, number), "a workbook")


def _blocks(path: Path, name: str | None, fields: list[str], before: int) -> Iterator[tuple[pl.DataFrame, int]]:
    with _sheet(path, name) as sheet:
        rows = ((number, cells) for number, cells in _rows(sheet) if number > before)
        for block in iter(lambda: list(islice(rows, min(rows_at_once(fields), 20_000))), []):
            yield text_frame(fields, [number for number, _ in block], [cells for _, cells in block]), 0


@contextmanager
def _sheet(path: Path, name: str | None) -> Iterator[Any]:
    # A fifth of what an import of a small file takes, and few files are workbooks.
    import openpyxl

    with readable(path), ZipFile(path) as archive:
        if sum(file.file_size for file in archive.infolist()) > _MAX_BYTES:
            raise ImportRefused(f"{path} has more than {_MAX_BYTES // 2**20} MiB unpacked. Save it as CSV.")
    with readable(path), warnings.catch_warnings():
        # About styles and extensions, which do not matter.
        warnings.simplefilter("ignore")
        try:
            with closing(openpyxl.load_workbook(path, read_only=True, data_only=True, keep_links=False)) as book:
                sheets = {sheet.title: sheet for sheet in book.worksheets}
                if name is None and len(sheets) != 1:
                    raise ImportRefused(f"{path} has the sheets {', '.join(sheets)[:200]}. Name one with --rows.")
                if name is not None and name not in sheets:
                    raise ImportRefused(f"{path} has no sheet {name!r}; it has {', '.join(sheets)[:200]}.")
                yield sheets[name] if name is not None else next(iter(sheets.values()))
        except (KeyError, IndexError, TypeError, AttributeError, ParseError) as error:
            if "out of memory" in str(error):
                raise MemoryError from error
            raise ValueError(f"it is no workbook, {type(error).__name__} {error}") from error


def _rows(sheet: Any) -> Iterator[_Row]:
    """The number and the texts of each row."""
    # What a sheet says of its size may be wrong.
    sheet.reset_dimensions()
    for number, cells in enumerate(sheet.iter_rows(), start=1):
        yield number, [_text(cell) for cell in cells]


def _text(cell: Any) -> str:
    """What a cell says; fractions that are shown as percents have the sign."""
    value = cell.value
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, datetime):
        from openpyxl.styles.numbers import is_datetime

        is_date = is_datetime(cell.number_format.lower()) == "date" and value.time() == time.min
        return value.date().isoformat() if is_date else value.isoformat(" ")
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, float) and "%" in cell.number_format:
        return f"{Decimal(repr(value)).scaleb(2):f}%"
    return repr(value) if isinstance(value, float) else str(value).strip()
