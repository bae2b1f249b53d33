"""Texts in a temporary file: many more of them than a worker should take memory for.

The file has no name, so nobody else can open it, and it is gone when the process ends, however that happens. The kernel
keeps what is read of it in memory that it gives up when others need it.
"""

import os
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from itertools import chain
from pathlib import Path
from weakref import finalize

# Bytes that are taken and given back together.
_CHUNK = 65_536
# Where large temporary files belong: /tmp is often in memory.
_FOLDER = "/var/tmp"  # noqa: S108 - the file has no name there
# After a failure nothing is written for so many seconds: with a full disk, texts would be made in vain all the time.
_PAUSE_SECONDS = 60.0


class TextFile:
    """A file of texts, each in chunks of equal size. `clock` tells seconds.

    The file is made when the first text is added, which is after any fork.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        # Garbage that is collected while a text is added may remove another one.
        self._lock = threading.RLock()
        self._file: int | None = None
        self._free: list[int] = []
        self._end = 0
        self._failed_at: float | None = None

    def may_add(self) -> bool:
        """Whether it is worth trying: not within a minute after texts could not be written."""
        return self._failed_at is None or self._clock() - self._failed_at >= _PAUSE_SECONDS

    def add(self, texts: Sequence[bytes]) -> Sequence[Sequence[int]]:
        """Where texts are from now on: the bytes at which the chunks of each begin. OSError if they cannot be written,
        as when the disk is full; then none of them is there."""
        with self._lock:
            taken = [self._take(len(text) // _CHUNK + 1) for text in texts]
            try:
                for text, chunks in zip(texts, taken, strict=True):
                    self._write(text, chunks)
            except OSError:
                self._failed_at = self._clock()
                self._free += chain.from_iterable(taken)
                raise
            return taken

    def _take(self, count: int) -> Sequence[int]:
        while len(self._free) < count:
            self._free.append(self._end)
            self._end += _CHUNK
        return [self._free.pop() for _ in range(count)]

    def _write(self, text: bytes, chunks: Sequence[int]) -> None:
        if self._file is None:
            self._file, path = tempfile.mkstemp(dir=_folder())
            finalize(self, os.close, self._file).atexit = False
            Path(path).unlink()
        for first, chunk in zip(range(0, len(text), _CHUNK), chunks, strict=False):
            part = memoryview(text)[first : first + _CHUNK]
            while part:
                written = os.pwrite(self._file, part, chunk)
                part, chunk = part[written:], chunk + written

    def read(self, chunks: Sequence[int], begin: int, end: int) -> bytes:
        """Some bytes of a text, one at least. OSError if they cannot be read."""
        first, last = begin // _CHUNK, (end - 1) // _CHUNK
        if first == last:
            return self._read(chunks[first] + begin % _CHUNK, end - begin)
        parts = []
        for number in range(first, last + 1):
            start = max(begin - number * _CHUNK, 0)
            parts.append(self._read(chunks[number] + start, min(end - number * _CHUNK, _CHUNK) - start))
        return b"".join(parts)

    def _read(self, begin: int, size: int) -> bytes:
        found = os.pread(self._file, size, begin) if self._file is not None else b""
        if len(found) < size:
            raise OSError("it ends too soon")
        return found

    def remove(self, places: Sequence[Sequence[int]]) -> None:
        """Make room where texts are that nobody will read again."""
        with self._lock:
            self._free += chain.from_iterable(places)

    @staticmethod
    def space(places: Sequence[Sequence[int]]) -> int:
        """The bytes that texts take in the file."""
        return sum(map(len, places)) * _CHUNK


def _folder() -> str | None:
    """Where the file is made; None for where the environment says, or the system's choice."""
    return None if os.environ.get("TMPDIR") or not os.access(_FOLDER, os.W_OK) else _FOLDER
