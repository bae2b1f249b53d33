"""Unpacks files to import."""

import gzip
import sys
import zlib
from collections.abc import Iterator
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


def size_of(path: Path) -> int:
    """The size of a file in bytes. UserError if it is missing or empty, or its name is not UTF-8, which neither the
    ledger nor Polars accepts."""
    if not path.name.isprintable():
        raise UserError(f"The name of the file {path.name!r} is not UTF-8 or not printable. Rename it.")
    if not path.is_file():
        raise UserError(f"{path} is not a file. Check the name.")
    if not (size := path.stat().st_size):
        raise UserError(f"{path} is empty.")
    return size


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
