"""Writes the rows that an import rejects into a file beside the imported file."""

from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

import polars as pl

from analytics_service.config.files import NewFile
from analytics_service.errors import ImportRefused
from analytics_service.imports.tables import Table

# The mode of an ordinary new file: the umask decides who else may read it.
_MODE = 0o666
# Columns that are added after those of the file.
_ADDED = ("line", "reason")


class RejectedFile:
    """`<FILE>.rejected.csv`: the file's own columns as strings, then line (row of a Parquet file) and reason.

    It is created under a temporary name with the first bad row. `keep` renames it, replacing the file of an earlier
    import, which stays if there are no bad rows. ImportRefused when the folder cannot be written to.
    """

    def __init__(self, table: Table) -> None:
        self.path = Path(f"{table.path}.rejected.csv")
        self._columns = dict(zip(table.fields, _once(table.columns), strict=True))
        self._new: NewFile | None = None

    def add(self, bad: pl.DataFrame) -> None:
        """Append bad rows, as validate_file passes them."""
        try:
            first = self._new is None
            self._new = self._new or NewFile(self.path, _MODE)
            own = [pl.col(field).alias(column) for field, column in self._columns.items()]
            bad.select(*own, *_ADDED).write_csv(self._new.file, include_header=first)
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

    def __enter__(self) -> "RejectedFile":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._new is not None:
            self._new.discard()

    def _refused(self, error: OSError) -> ImportRefused:
        return ImportRefused(
            f"The rejected rows cannot be written to {self.path}: {error.strerror or error}. Nothing was imported. "
            "Make its folder writable, or import a copy of the file elsewhere."
        )


def _once(columns: Sequence[str]) -> list[str]:
    """The names of a file's columns, made unique among each other and the added columns."""
    names: list[str] = []
    for column in columns:
        name = column
        while name in (*_ADDED, *names):
            name += "_"
        names.append(name)
    return names
