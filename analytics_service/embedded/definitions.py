"""Mends what keeps ClickHouse from starting: files of definitions that were cut short, as on a full disk."""

import logging
import os
import re
from collections.abc import Iterator
from pathlib import Path

from analytics_service.config.files import NewFile

log = logging.getLogger(__name__)

# A definition in ClickHouse's message about one that it cannot read.
_NAMED = re.compile(r"from (?:metadata )?file ((?:store|metadata)/\S+\.sql)\b")
# How ClickHouse writes the definition of a database. Those of the service have no other engine.
_DATABASE = "ATTACH DATABASE _ UUID '{uuid}'\nENGINE = Atomic\n"


class Definitions:
    """Definitions of databases, tables and views, while no server runs: data/metadata/*.sql, data/store/*/*/*.sql."""

    def __init__(self, server: Path) -> None:
        self._data = server / "data"

    def mend(self) -> None:
        """Mend all definitions that have no end. Each ends with a line break."""
        for path in [*self._data.glob("metadata/*.sql"), *self._data.glob("store/*/*/*.sql")]:
            if not _is_whole(path):
                self._mend(path)

    def mend_named(self, message: str) -> bool:
        """Mend the definition that ClickHouse could not read, according to its message. False if that is no reason."""
        if not (found := _NAMED.search(message)):
            return False
        self._mend(self._data / found[1])
        return True

    def _mend(self, path: Path) -> None:
        """Write the definition of a database again. Remove that of a view or table, because nothing is left of it that
        could be read; a view or an empty table is made again by whoever made it."""
        if path.parent.name == "metadata":
            self._mend_database(path)
            return
        database = next((link.name for link in self._databases() if link.readlink().name == path.parent.name), "")
        rows = self._rows(database, path.stem)
        if rows is None:
            log.warning("The definition of %s.%s was damaged, and is made again.", database, path.stem)
            path.unlink()
            return
        log.error(
            "The definition of the table %s.%s is damaged, so its rows, in %s, cannot be read. What cannot be derived "
            "again comes back with the last backup: `analytics-service restore FILE --replace`.",
            database,
            path.stem,
            rows,
        )
        path.unlink()

    def _mend_database(self, path: Path) -> None:
        link = path.with_suffix("")
        if not link.is_symlink():
            path.unlink()
            return
        with NewFile(path, 0o640) as new:
            new.file.write(_DATABASE.format(uuid=link.readlink().name).encode())
            new.keep()
        log.warning("The definition of the database %s was damaged, and is made again.", path.stem)

    def _databases(self) -> Iterator[Path]:
        return (path for path in (self._data / "metadata").iterdir() if path.is_symlink())

    def _rows(self, database: str, table: str) -> Path | None:
        """The folder of a table, if it has parts. A view has none."""
        link = self._data / "data" / database / table
        if not link.is_symlink():
            return None
        uuid = link.readlink().name
        folder = self._data / "store" / uuid[:3] / uuid
        parts = folder.glob("*/checksums.txt")
        return folder if any(parts) else None


def _is_whole(path: Path) -> bool:
    with path.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(size - 1, 0))
        return file.read() == b"\n"
