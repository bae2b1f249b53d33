"""Reads files as blocks of rows of strings, whatever their format, which their content tells.

Text, JSON and integer or decimal columns are read exactly. Binary floats are read as their shortest decimal string,
which is most likely the intended number.
"""

import csv
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import polars as pl

from analytics_service.errors import ImportRefused
from analytics_service.imports.files import file_state, require_file

OPEN_QUOTE = "a quote is not closed on the line; fields may not have line ends in them"
LONG_FIELD = f"a field has more than {csv.field_size_limit():,} characters"
NOT_AN_OBJECT = "the line is not a JSON object"
# In place of the rest of a line that cannot be split into fields.
FAULTS = (OPEN_QUOTE, LONG_FIELD, NOT_AN_OBJECT)
# Fields of a block. One takes 16 bytes in each of the frames that a block passes through, and up to 60 as text.
_FIELDS_AT_ONCE = 2_000_000
_MOST_COLUMNS = 10_000
Blocks = Callable[[], Iterator[tuple[pl.DataFrame, int]]]


@dataclass(frozen=True, slots=True)
class TableRules:
    """How tables are to be found in files: the names of `columns` where no header has them, the lines to `skip` before
    it, the `rows` meant in a file of several tables, the `encoding` of text, and the column of times, or several with
    commas between them. None or nothing of what was not said."""

    columns: Sequence[str] = ()
    skip: int = 0
    rows: str | None = None
    encoding: str | None = None
    time: str | None = None


@dataclass(frozen=True, slots=True)
class Table:
    """A file as rows of strings.

    `columns` are the names in the file, in its order, and `fields` the corresponding columns of the rows. `blocks`
    yields rows and the size of each block, which add up to `size`. Rows have the columns `line` (number of the row in
    the file), the fields, and `extra` (the rest of a line after the last field, without empty fields at the end, or one
    of FAULTS).
    `row_label` is the unit of a row's number: "line", "row" or "point". `types` are those of typed columns, by name;
    a column that is not `readable` is empty in all rows. `delimiter` is that of text.
    """

    path: Path
    columns: list[str]
    fields: list[str]
    size: int
    row_label: str
    blocks: Blocks
    format: str
    types: Mapping[str, pl.DataType] = field(default_factory=dict)
    delimiter: str = ","

    @property
    def has_header(self) -> bool:
        """Whether the names of columns are what a first row says."""
        return self.format.startswith(("text", "a workbook"))

    def title(self, field: str) -> str:
        """The name of a field's column in the file."""
        return self.columns[self.fields.index(field)]

    def where(self, seen: tuple[int, str]) -> str:
        """A row, by its number, and what it says, in words."""
        return f"{self.row_label} {seen[0]}: {seen[1][:60]!r}"

    def cite(self, seen: tuple[int, str]) -> str:
        """The file and a row of it, in words."""
        return f"{self.path}, {self.where(seen)}"

    def unread(self, used: Collection[str | None]) -> list[str]:
        """The names of the columns whose fields are not among those used."""
        return [column for column, field in zip(self.columns, self.fields, strict=True) if field not in used]

    def filled(self, block: pl.DataFrame) -> pl.DataFrame:
        """The rows of a block that are not blank."""
        if (block[self.fields[0]].str.strip_chars() != "").all():
            return block
        return block.filter(pl.any_horizontal(pl.col([*self.fields, "extra"]).str.strip_chars() != ""))

    def rejected(self, rows: pl.DataFrame) -> pl.DataFrame:
        """The line, fields and reason of rows, with the rest of a line in its last field."""
        last, rest = self.fields[-1], pl.concat_str(pl.lit(self.delimiter), "extra")
        whole = pl.when(pl.col("extra").is_in(["", *FAULTS])).then(last).otherwise(pl.concat_str(last, rest))
        return rows.with_columns(whole.alias(last)).select("line", *self.fields, "reason")

    def watched(self) -> "Table":
        """The same table. Its blocks end with ImportRefused if the file has changed since now."""
        return replace(self, blocks=partial(_unchanged, self.path, file_state(self.path), self.blocks))


def require_unsaid(path: Path, format: str, rules: TableRules, *names: str) -> None:
    """ImportRefused for rules that have no meaning in a format."""
    for name in names:
        if getattr(rules, name):
            raise ImportRefused(f"{path} is {format}, where --{name} has no meaning. Leave it out.")


def require_names(where: str, names: Sequence[str], values: Sequence[object]) -> None:
    """ImportRefused if there are not as many names of columns as values of the first row, some of which may be
    empty at its end."""
    filled = max((number for number, value in enumerate(values, start=1) if value not in ("", None)), default=0)
    if not filled <= len(names) <= len(values):
        raise ImportRefused(f"{where} has {len(values)} values, and --columns has {len(names)} names.")


def numbered_fields(path: Path, columns: Sequence[str]) -> list[str]:
    """Names of fields for the columns of a file, whose own names may be used twice."""
    if not columns:
        raise ImportRefused(f"{path} has no rows.")
    if len(columns) > _MOST_COLUMNS:
        raise ImportRefused(f"{path} has {len(columns):,} columns, and at most {_MOST_COLUMNS:,} can be read.")
    return [f"column {index}" for index in range(len(columns))]


def text_frame(fields: Sequence[str], numbers: list[int], rows: Sequence[Sequence[str]]) -> pl.DataFrame:
    """Rows of text with their numbers, short ones filled up; what is beyond the fields is `extra`."""
    count = len(fields)
    filled = [(*row[:count], *[""] * (count - len(row)), ",".join(row[count:]).rstrip(",")) for row in rows]
    frame = pl.DataFrame(filled, dict.fromkeys((*fields, "extra"), pl.String), orient="row")
    return frame.select(pl.Series("line", numbers, pl.UInt32), pl.all())


def rows_at_once(columns: Sequence[str]) -> int:
    """The number of rows of a block."""
    return max(1, _FIELDS_AT_ONCE // (len(columns) + 2))


def require_content(path: Path) -> None:
    """ImportRefused when a file is missing or empty."""
    require_file(path, "Check the name.")
    if not file_state(path)[2]:
        raise ImportRefused(f"{path} is empty.")


def _unchanged(path: Path, opened: tuple[int, int, int, int], blocks: Blocks) -> Iterator[tuple[pl.DataFrame, int]]:
    """The blocks. ImportRefused at the end if the file has changed since it was opened: they may be inconsistent."""
    yield from blocks()
    if file_state(path) != opened:
        raise ImportRefused(
            f"{path} changed while it was read, so nothing was imported. Import it when it is complete."
        )
