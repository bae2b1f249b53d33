"""Files to import: found by name, folder or glob, unpacked, and watched for changes while they are read."""

import glob
import gzip
import sys
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, cast

import polars as pl

from analytics_service.errors import ImportRefused

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

_GZIP = b"\x1f\x8b"
_ZSTD = b"\x28\xb5\x2f\xfd"
ZIP = b"PK\x03\x04"
# What a workbook has, which is packed as zip too.
_WORKBOOK = "xl/workbook.xml"
_DAMAGES = (
    *(OSError, EOFError, ValueError, zlib.error, zstd.ZstdError, pl.exceptions.PolarsError),
    *(zipfile.BadZipFile, NotImplementedError),
)


def expanded(names: Sequence[str]) -> list[Path]:
    """The files of names, each of which may be a file, a folder or a glob, in the order of the names; those of a folder
    or a glob in alphabetic order. Files of rejected rows, hidden files, and unfinished files of killed commands are
    left out of folders and globs.

    ImportRefused when a name stands for nothing.
    """
    paths: list[Path] = []
    for name in names:
        path = Path(name)
        with readable(path):
            if path.is_dir():
                paths += _importable(path.iterdir(), f"The folder {name} has no files.")
            elif glob.has_magic(name) and not path.exists():
                paths += _importable(_matches(name), f"No file matches {name}.")
            else:
                require_file(path, "Check the name.")
                paths.append(path)
    seen: set[Path] = set()
    for path in paths:
        if path.resolve() in seen:
            raise ImportRefused(f"{path} is given twice. Name each file once.")
        seen.add(path.resolve())
    return paths


def _matches(pattern: str) -> Iterator[Path]:
    root = Path(Path(pattern).anchor)
    return root.glob(str(Path(pattern).relative_to(root)))


def _importable(paths: Iterator[Path], refusal: str) -> list[Path]:
    usable = [
        path
        for path in sorted(paths)
        if path.is_file() and not path.name.startswith(".") and not path.name.endswith((".rejected.csv", ".part"))
    ]
    if not usable:
        raise ImportRefused(refusal)
    return usable


def require_file(path: Path, cure: str) -> None:
    """ImportRefused, with `cure` as advice, when there is no such file; and for a name that is not UTF-8, which neither
    the ledger nor Polars accepts."""
    try:
        str(path).encode()
    except UnicodeEncodeError:
        raise ImportRefused(f"The name of the file {str(path)!r} is not UTF-8. Rename it.") from None
    if not path.is_file():
        raise ImportRefused(f"{path} is not a file. {cure}")


def file_state(path: Path) -> tuple[int, int, int, int]:
    """A value that changes when a file is written to or replaced."""
    with readable(path):
        status = path.stat()
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


@contextmanager
def unpacked(path: Path) -> Iterator[tuple[IO[bytes], IO[bytes]]]:
    """The file itself, whose position is the progress, and its content, unpacked if it is gzip, zstd, or a zip of one
    file that is no workbook. ImportRefused when it is damaged."""
    with readable(path), path.open("rb") as raw:
        start = raw.read(4)
        raw.seek(0)
        if start.startswith(_GZIP):
            with gzip.open(raw) as content:
                yield raw, cast(IO[bytes], content)
        elif start == _ZSTD:
            with zstd.open(raw) as content:
                yield raw, cast(IO[bytes], content)
        elif start == ZIP:
            with zipfile.ZipFile(raw) as archive, _only_member(path, archive) as content:
                if content is None:
                    raw.seek(0)
                yield raw, content or raw
        else:
            yield raw, raw


@contextmanager
def _only_member(path: Path, archive: zipfile.ZipFile) -> Iterator[IO[bytes] | None]:
    """The only file of an archive; None of a workbook."""
    if _WORKBOOK in archive.namelist():
        yield None
        return
    files = [file for file in archive.infolist() if not file.is_dir() and not file.filename.startswith("__MACOSX/")]
    if len(files) != 1:
        raise ImportRefused(f"{path} has {len(files)} files. Unpack it, and import the folder.")
    if files[0].flag_bits & 1:
        raise ImportRefused(f"{path} is encrypted. Unpack it, and import what is in it.")
    with archive.open(files[0]) as content:
        yield content


@contextmanager
def readable(path: Path) -> Iterator[None]:
    """ImportRefused in place of the errors of a file that is damaged or cannot be read."""
    try:
        yield
    except _DAMAGES as error:
        reason = str(error).partition("\n")[0][:200]
        raise ImportRefused(f"{path} cannot be read: {reason}. It may be damaged or incomplete.") from error
    except pl.exceptions.PanicException as error:
        raise ImportRefused(
            f"{path} cannot be read. It may be damaged, or have a column of an unusual type, such as times in the zone "
            "+05:30. Write times in UTC, and leave out columns that are not needed."
        ) from error
