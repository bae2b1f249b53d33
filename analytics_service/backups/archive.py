"""The file of a backup: a zip with the rows of each table in ClickHouse's Native format, and a manifest.

Native keeps every type exactly, and any newer ClickHouse reads it. A zip ends with the names and sizes of its members,
so a truncated file is always detected.
"""

import hashlib
import json
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from analytics_service.config.files import NewFile
from analytics_service.errors import BackupFailed, BackupRefused
from analytics_service.store.retries import Reporter
from analytics_service.store.schema import Applied

FORMAT = 2
_MANIFEST = "manifest.json"
# Bytes of a manifest at most, and of what is read at once.
_CHUNK = 2**20
# The fastest level of zlib. Native is columnar, so higher levels gain little.
_LEVEL = 1
# Raised when a damaged or truncated zip is read. RuntimeError if it seems to be encrypted, or compressed in an unknown
# way: NotImplementedError is a RuntimeError.
_DAMAGED = (zipfile.BadZipFile, zlib.error, EOFError, KeyError, AttributeError, RuntimeError)


@dataclass(frozen=True, slots=True)
class TableContent:
    """A table in a backup: approximate number of rows, bytes before compression, and their SHA-256 in hex."""

    rows: int
    bytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class BackupFamily:
    """The newest snapshot of a family in a backup. Instants are unix seconds."""

    at: int
    last_observed_at: int
    version: int


@dataclass(frozen=True, slots=True)
class Manifest:
    """The contents of a backup. `taken_at` is a unix second, `migrations` are those that were applied to the store."""

    format: int
    taken_at: int
    service: str
    clickhouse: str
    origins: Sequence[str]
    migrations: Sequence[Applied]
    families: Mapping[str, BackupFamily]
    tables: Mapping[str, TableContent]

    def to_json(self) -> str:
        """The manifest as it is written into the file."""
        return json.dumps(asdict(self), indent=2)

    @classmethod
    def from_json(cls, document: str) -> "Manifest":
        """The manifest from a file of this format."""
        fields: dict[str, Any] = json.loads(document)
        fields["migrations"] = [Applied(**each) for each in fields["migrations"]]
        fields["families"] = {name: BackupFamily(**each) for name, each in fields["families"].items()}
        fields["tables"] = {name: TableContent(**each) for name, each in fields["tables"].items()}
        return cls(**fields)


class ArchiveWriter:
    """Writes the tables of a backup, one after the other, and then its manifest."""

    def __init__(self, archive: zipfile.ZipFile) -> None:
        self._archive = archive

    def add(self, table: str, chunks: Iterator[bytes], reporter: Reporter) -> tuple[int, str]:
        """Write a table's rows. Returns the number of bytes, and their SHA-256 in hex."""
        digest, size = hashlib.sha256(), 0
        with self._archive.open(_member(table), "w", force_zip64=True) as member:
            for chunk in chunks:
                member.write(chunk)
                digest.update(chunk)
                size += len(chunk)
                reporter.advance(len(chunk))
        return size, digest.hexdigest()

    def finish(self, manifest: Manifest) -> None:
        """Write the manifest, which completes the backup."""
        self._archive.writestr(_MANIFEST, manifest.to_json())


def require_writable(path: Path, *, overwrite: bool) -> None:
    """BackupRefused for a file that exists, unless it may be overwritten, and for anything that is not a file."""
    _require_no_other(path)
    if path.exists() and not overwrite:
        raise BackupRefused(f"{path} exists. Name another file, or overwrite it with --force.")


def _require_no_other(path: Path) -> None:
    """BackupRefused for a path that is not a file, such as a folder or a named pipe."""
    if path.exists() and not path.is_file():
        raise BackupRefused(f"{path} is not a file. Name another one.")


@contextmanager
def writing(path: Path) -> Iterator[ArchiveWriter]:
    """A new file, which gets its name when the block ends. After an error nothing of it is left.

    BackupFailed when the system refuses, for example because the disk is full.
    """
    try:
        with NewFile(path) as new:
            with zipfile.ZipFile(new.file, "w", zipfile.ZIP_DEFLATED, compresslevel=_LEVEL) as archive:
                yield ArchiveWriter(archive)
            new.keep()
    except OSError as error:
        raise BackupFailed(f"The backup {path} cannot be written ({error.strerror or error}).") from error


class ArchiveReader:
    """Reads the file of a backup. BackupRefused if it is no backup, is damaged, or has another format."""

    def __init__(self, path: Path) -> None:
        self._path = path
        # Opening a named pipe would wait for its writer.
        _require_no_other(path)
        with self._checked(), zipfile.ZipFile(path) as archive, archive.open(_MANIFEST) as member:
            document = member.read(_CHUNK).decode()
            written_as = json.loads(document)["format"]
            if written_as != FORMAT:
                cure = "Install a newer version." if written_as > FORMAT else "It is of an earlier, unreleased version."
                raise BackupRefused(f"{path} is of format {written_as}, and this version reads {FORMAT}. {cure}")
            self.manifest = Manifest.from_json(document)

    def check(self, reporter: Reporter) -> None:
        """Read the complete file. BackupRefused when it is not as it was written."""
        reporter.stage("Checking the backup", sum(table.bytes for table in self.manifest.tables.values()))
        for name, table in self.manifest.tables.items():
            digest, size = hashlib.sha256(), 0
            for chunk in self.chunks(name):
                digest.update(chunk)
                size += len(chunk)
                reporter.advance(len(chunk))
            if (size, digest.hexdigest()) != (table.bytes, table.sha256):
                raise BackupRefused(f"{self._path} is damaged: table {name} is not as it was written.")

    def chunks(self, table: str) -> Iterator[bytes]:
        """The bytes of a table's rows, in chunks."""
        with self._checked(), zipfile.ZipFile(self._path) as archive, archive.open(_member(table)) as member:
            while chunk := member.read(_CHUNK):
                yield chunk

    @contextmanager
    def _checked(self) -> Iterator[None]:
        try:
            yield
        except (*_DAMAGED, ValueError, TypeError) as error:
            raise BackupRefused(f"{self._path} is no backup of this service, or it is damaged.") from error
        except OSError as error:
            raise BackupRefused(f"{self._path} cannot be read ({error.strerror or error}).") from error


def _member(table: str) -> str:
    return f"tables/{table}.native"
