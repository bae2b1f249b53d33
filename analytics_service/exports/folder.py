"""The folder of exports: its files, and export.json, which lists those that are whole."""

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import BinaryIO

from analytics_service.config.files import NewFile
from analytics_service.errors import ExportFailed, ExportRefused

MANIFEST = "export.json"
# Names of files, of which those of a manifest may be anything.
_NAME = re.compile(r"\w+(/\d{4}-\d\d)?\.(parquet|csv|arrow)", re.ASCII)
# Of files, before the umask: exports are for others, too.
_MODE = 0o666


@dataclass(frozen=True, slots=True)
class FileContent:
    """What a file has: the rows of [start, end) (unix seconds) as of a state of the store.

    `heads` are the version and the number of runs of each family that the rows may depend on, `definitions` is the
    version of the newest definition of an asset, and `columns` stands for the names and types of the columns.
    """

    start: int
    end: int
    definitions: int
    heads: Mapping[str, tuple[int, int]]
    columns: int = 0


@dataclass(frozen=True, slots=True)
class _Entry:
    bytes: int
    content: FileContent


class ExportFolder:
    """A folder that only exports write to. It is made if there is none.

    ExportRefused for a folder that cannot be written to, or that has other files, which an export might overwrite.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._entries: dict[str, _Entry] = {}
        try:
            path.mkdir(parents=True, exist_ok=True)
            if (path / MANIFEST).exists():
                self._entries = _entries((path / MANIFEST).read_text("utf-8"))
            elif any(path.iterdir()):
                raise ExportRefused(f"{path} has files, and none of them is the {MANIFEST} of an export. {_OTHER}")
            self._save()
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise ExportRefused(f"{path / MANIFEST} is damaged, or of something else. {_OTHER}") from error
        except OSError as error:
            raise ExportRefused(f"{path} cannot be written to ({error.strerror or error}). {_OTHER}") from error

    def content(self, name: str) -> FileContent | None:
        """What the file of that name has; None if it is missing or not whole."""
        entry, path = self._entries.get(name), self.path / name
        whole = entry and path.is_file() and path.stat().st_size == entry.bytes
        return entry.content if entry and whole else None

    @contextmanager
    def writing(self, name: str, content: FileContent) -> Iterator[BinaryIO]:
        """A new file, which gets its name, and is listed, when the block ends. After an error nothing of it is left.

        ExportFailed when the system refuses, for example because the disk is full.
        """
        with self._explained(name):
            path = self._own(name)
            path.parent.mkdir(exist_ok=True)
            with NewFile(path, _MODE) as new:
                yield new.file
                new.keep()
            self._entries[name] = _Entry(path.stat().st_size, content)
            self._save()

    def listed(self, view: str, suffix: str) -> dict[str, FileContent]:
        """The listed files of a view in a format, by name."""
        names = [name for name in self._entries if name.startswith((f"{view}/", f"{view}.")) and name.endswith(suffix)]
        return {name: self._entries[name].content for name in names}

    def remove(self, name: str) -> None:
        """Remove a listed file."""
        with self._explained(name):
            self._own(name).unlink(missing_ok=True)
            del self._entries[name]
            self._save()

    def _own(self, name: str) -> Path:
        """The path of a file that may be written or removed. ExportRefused if it is in another folder."""
        path = self.path / name
        if path.parent.resolve() != (self.path.resolve() / name).parent:
            raise ExportRefused(f"{path.parent} is a link to another folder. Remove it, or name another with --out.")
        return path

    def _save(self) -> None:
        files = {
            name: {"bytes": self._entries[name].bytes} | asdict(self._entries[name].content)
            for name in sorted(self._entries)
        }
        with NewFile(self.path / MANIFEST, _MODE) as new:
            new.file.write(json.dumps({"files": files}, indent=1).encode())
            new.keep()

    @contextmanager
    def _explained(self, name: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise ExportFailed(
                f"{self.path / name} cannot be written ({error.strerror or error}). All files are whole; the same "
                "command goes on."
            ) from error


_OTHER = "Name another folder with --out."


def _entries(document: str) -> dict[str, _Entry]:
    """The entries of a manifest. One of ValueError, TypeError, KeyError and AttributeError if it is none."""
    entries = {}
    for name, fields in json.loads(document)["files"].items():
        if not _NAME.fullmatch(name):
            raise ValueError(name)
        heads = {family: (int(version), int(runs)) for family, (version, runs) in fields.pop("heads").items()}
        size, numbers = int(fields.pop("bytes")), {field: int(number) for field, number in fields.items()}
        entries[name] = _Entry(size, FileContent(heads=heads, **numbers))
    return entries
