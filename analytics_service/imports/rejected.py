"""Writes the rows that an import rejects into a file beside the one they came from."""

from pathlib import Path
from types import TracebackType
from typing import IO

import polars as pl

from analytics_service.errors import ImportRefused
from analytics_service.imports.tables import Table


class RejectedFile:
    """`<FILE>.rejected.csv`: the file's own columns as text, then line (row of a Parquet file) and reason.

    It is created under a temporary name with the first bad row; `keep` renames it, replacing that of an earlier import.
    Without bad rows an earlier one is left alone. ImportRefused when the folder cannot be written to.
    """

    def __init__(self, table: Table) -> None:
        self.path = Path(f"{table.path}.rejected.csv")
        self._part = Path(f"{self.path}.part")
        self._columns = dict(zip(table.fields, table.columns, strict=True))
        self._file: IO[bytes] | None = None

    def add(self, bad: pl.DataFrame) -> None:
        """Append bad rows, as validate_file passes them."""
        try:
            first = self._file is None
            self._file = self._file or self._part.open("wb")
            own = [pl.col(field).alias(column) for field, column in self._columns.items()]
            bad.select(*own, "line", "reason").write_csv(self._file, include_header=first)
        except OSError as error:
            raise self._refused(error) from error

    def keep(self) -> list[Path]:
        """Give the file its name, and return its path; nothing when there was no bad row."""
        if self._file is None:
            return []
        try:
            self._file.close()
            self._part.replace(self.path)
        except OSError as error:
            raise self._refused(error) from error
        self._file = None
        return [self.path]

    def __enter__(self) -> "RejectedFile":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._file is not None:
            self._file.close()
            self._part.unlink(missing_ok=True)

    def _refused(self, error: OSError) -> ImportRefused:
        return ImportRefused(
            f"The rejected rows cannot be written to {self.path}: {error.strerror or error}. Nothing was imported. "
            "Make its folder writable, or import a copy of the file elsewhere."
        )
