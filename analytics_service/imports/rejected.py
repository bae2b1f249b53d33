"""Rows that an import rejects: examples for a message, and a file of them beside the imported file."""

from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path
from typing import TypeVar

import polars as pl

from analytics_service.clickhouse.retries import Reporter
from analytics_service.config.files import NewFile
from analytics_service.errors import ImportRefused
from analytics_service.imports.reading import FileRead
from analytics_service.imports.tables import Table
from analytics_service.market.spreadsheets import csv_field

# The mode of an ordinary new file: the umask decides who else may read it.
_MODE = 0o666
# Fields that are added after those of the file.
_ADDED = ("line", "reason")
# Limit of rows, or assets, that a message names.
SHOWN = 5
_SHOWN_LENGTH = 60
File = TypeVar("File", bound=FileRead)
Reject = Callable[[pl.DataFrame], None]


class RejectedFile:
    """`<FILE>.rejected.csv`: the file's own columns as strings, then line (or row) and reason.

    It is created under a temporary name with the first bad row. `keep` renames it, replacing the file of an earlier
    import, which stays if there are no bad rows. ImportRefused when the folder cannot be written to.
    """

    def __init__(self, table: Table) -> None:
        self.path = Path(f"{table.path}.rejected.csv")
        added = table.row_label, "reason"
        self._head = pl.DataFrame([[*_once(table.columns, added), *added]], [*table.fields, *_ADDED], orient="row")
        self._new: NewFile | None = None

    def add(self, bad: pl.DataFrame) -> None:
        """Append bad rows (line, the file's fields, reason)."""
        try:
            rows = bad.select(pl.col(self._head.columns).cast(pl.String))
            if self._new is None:
                self._new, rows = NewFile(self.path, _MODE), pl.concat([self._head, rows])
            lines = rows.select(pl.concat_str(map(csv_field, map(pl.col, rows.columns)), separator=",")).to_series()
            self._new.file.writelines(f"{line}\n".encode() for line in lines)
        except OSError as error:
            raise self._refused(error) from error

    def keep(self) -> list[Path]:
        """Give the file its final name, and return its path; empty if there was no bad row."""
        if self._new is None:
            return []
        try:
            self._new.keep()
        except OSError as error:
            raise self._refused(error) from error
        return [self.path]

    def close(self) -> None:
        """Discard the file, unless it was kept."""
        if self._new is not None:
            self._new.discard()

    def _refused(self, error: OSError) -> ImportRefused:
        return ImportRefused(
            f"The rejected rows cannot be written to {self.path}: {error.strerror or error}. Nothing was imported. "
            "Make its folder writable, or import a copy of the file elsewhere."
        )


def _once(columns: Sequence[str], added: Sequence[str]) -> list[str]:
    """The names of a file's columns, made unique among each other and the added columns."""
    names: list[str] = []
    for column in columns:
        name = column
        while name in (*added, *names):
            name += "_"
        names.append(name)
    return names


def read_all(
    files: Sequence[File], read: Callable[[File, Reject], None], reporter: Reporter, *, skip: bool, keep: bool
) -> list[Path]:
    """Read files one after the other; `read` hands over bad rows (line, the file's fields, reason) in order. Returns
    the files of rejected rows, which are written with `keep`.

    ImportRefused, with examples, if there are bad rows and none may be skipped.
    """
    examples: list[str] = []

    def reject(file: File, rejects: RejectedFile, bad: pl.DataFrame) -> None:
        examples.extend(_example(file.table, row) for row in bad.head(SHOWN - len(examples)).iter_rows(named=True))
        if skip and keep:
            rejects.add(bad)

    with ExitStack() as stack:
        kept = [stack.enter_context(closing(RejectedFile(file.table))) for file in files]
        for file, rejects in zip(files, kept, strict=True):
            reporter.stage(f"Reading {file.table.path.name}", file.table.size)
            read(file, partial(reject, file, rejects))
        rejected = sum(file.rejected for file in files)
        if rejected and not skip:
            raise ImportRefused(_refusal(rejected, sum(file.read for file in files), examples))
        return [path for rejects in kept for path in rejects.keep()]


def require_rows(files: Sequence[FileRead], left: int, rejected_files: Sequence[Path]) -> None:
    """ImportRefused if no row is left to import."""
    if not left:
        rejected = sum(file.rejected for file in files)
        where = "".join(f" Rejected rows are in {path}." for path in rejected_files)
        name = f"{files[0].table.path}{' and the others' if len(files) > 1 else ''}"
        why = f"all {rejected:,} rows with a value are rejected" if rejected else "there are no rows with a value"
        raise ImportRefused(f"{name}: {why}, so nothing was written.{where}")


def with_rest(lines: Sequence[str], count: int) -> list[str]:
    """Lines about the first of `count` items, and a line with the number of the others."""
    remaining = count - len(lines)
    return [*lines, f"  and {remaining:,} more"] if remaining else [*lines]


def _example(table: Table, row: dict[str, str]) -> str:
    raw = table.delimiter.join(row[field] for field in table.fields)
    shown = raw if len(raw) <= _SHOWN_LENGTH else raw[:_SHOWN_LENGTH] + "..."
    return f"  {table.path}, {table.row_label} {row['line']}: {shown!r}: {row['reason']}"


def _refusal(rejected: int, read: int, examples: list[str]) -> str:
    return "\n".join(
        [
            f"{rejected:,} of {read:,} rows cannot be imported, so nothing was written:",
            *with_rest(examples, rejected),
            "Correct them." if rejected == read else "Correct them, or import the others with --skip-invalid.",
        ]
    )
