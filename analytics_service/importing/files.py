"""Finds files to import by name, folder or glob, and unpacks them."""

import glob
import gzip
import sys
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, cast

import polars as pl

from analytics_service.errors import UserError

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

_GZIP, _ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
_DAMAGES = (OSError, EOFError, ValueError, zlib.error, zstd.ZstdError, pl.exceptions.PolarsError)


def find_files(names: Sequence[str]) -> list[Path]:
    """The files of names, in order. A name is a file, a folder with its subfolders, or a glob; the last two are in
    alphabetic order, without hidden files and unfinished files of killed commands.

    UserError if a name matches nothing, or a file is named twice.
    """
    paths: list[Path] = []
    for name in names:
        path = Path(name)
        with open_file_to_read(path):
            if path.is_dir():
                paths += _visible(path.rglob("*"), f"The folder {name} has no files.")
            elif glob.has_magic(name) and not path.exists():
                paths += _visible(_matches(name), f"No file matches {name}.")
            else:
                paths.append(path)
    resolved = [path.resolve() for path in paths]
    for number, path in enumerate(paths):
        if resolved[number] in resolved[:number]:
            raise UserError(f"{path} is given twice. Name each file once.")
    return paths


def _matches(pattern: str) -> Iterator[Path]:
    root = Path(Path(pattern).anchor)
    return root.glob(str(Path(pattern).relative_to(root)))


def _visible(paths: Iterator[Path], message: str) -> list[Path]:
    visible = [
        path for path in sorted(paths) if path.is_file() and not path.name.startswith(".") and path.suffix != ".part"
    ]
    if not visible:
        raise UserError(message)
    return visible


def file_state(path: Path) -> tuple[int, int, int, int]:
    """A value that changes when a file is written or replaced. UserError if the file is missing or empty, or its name
    is not UTF-8, which neither the ledger nor Polars accepts."""
    if not str(path.name).isprintable():
        raise UserError(f"The name of the file {path.name!r} is not UTF-8 or not printable. Rename it.")
    if not path.is_file():
        raise UserError(f"{path} is not a file. Check the name.")
    with open_file_to_read(path):
        status = path.stat()
    if not status.st_size:
        raise UserError(f"{path} is empty.")
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


@contextmanager
def unpack(path: Path) -> Iterator[tuple[IO[bytes], IO[bytes]]]:
    """The file, whose position shows the progress, and its content, unpacked if it is gzip or zstd. UserError if the
    file is damaged."""
    with open_file_to_read(path), path.open("rb") as raw:
        start = raw.read(4)
        raw.seek(0)
        if start.startswith(_GZIP):
            with gzip.open(raw) as content:
                yield raw, cast(IO[bytes], content)
        elif start == _ZSTD:
            with zstd.open(raw) as content:
                yield raw, cast(IO[bytes], content)
        else:
            yield raw, raw


@contextmanager
def open_file_to_read(path: Path) -> Iterator[None]:
    """Raises UserError in place of the errors of a damaged or unreadable file."""
    try:
        yield
    except (*_DAMAGES, pl.exceptions.PanicException) as error:
        reason = str(error).partition("\n")[0][:200]
        raise UserError(f"{path} cannot be read: {reason}. It may be damaged or incomplete.") from error
