"""Texts in a temporary file: many more of them than a worker should take memory for.

The file has no name, so nobody else can open it, and it is gone when the process ends, however that happens. The kernel
keeps what is read of it in memory that it gives up when others need it.
"""

import os
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import NamedTuple
from weakref import finalize

# Bytes that are taken and given back together.
_CHUNK = 65_536
# Where large temporary files belong unless TMPDIR names a folder: /tmp is often in memory.
_FOLDER = "/var/tmp"  # noqa: S108 - the file has no name there
# After a failure nothing is written for so many seconds: with a full disk, texts would be made in vain all the time.
_PAUSE_SECONDS = 60.0


class Place(NamedTuple):
    """Where a text of `size` bytes is: the bytes of the file at which its chunks begin."""

    size: int
    chunks: Sequence[int]


class TextFile:
    """A file of texts, each in chunks of equal size. `clock` tells seconds.

    The file is made when the first text is added, which is after any fork.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        # Not held while a text is written, which takes long on a slow disk: those who remove others do not wait for it.
        # Garbage that is collected while room is taken may remove a text.
        self._lock = threading.RLock()
        self._file: int | None = None
        self._free: list[int] = []
        self._end = 0
        self._failed_at: float | None = None

    def may_add(self) -> bool:
        """Whether it is worth trying: not within a minute after texts could not be written."""
        return self._failed_at is None or self._clock() - self._failed_at >= _PAUSE_SECONDS

    def add(self, texts: Sequence[bytes]) -> Sequence[Place]:
        """Where some texts are from now on. OSError if they cannot be written, as when the disk is full; then none of
        them is there."""
        places: list[Place] = []
        try:
            for text in texts:
                places.append(Place(len(text), self._take(-(-len(text) // _CHUNK))))
                self._write(memoryview(text), places[-1])
        except OSError:
            self._failed_at = self._clock()
            self.remove(places)
            raise
        return places

    def _take(self, count: int) -> Sequence[int]:
        with self._lock:
            while len(self._free) < count:
                self._free.append(self._end)
                self._end += _CHUNK
            return [self._free.pop() for _ in range(count)]

    def _write(self, text: memoryview, place: Place) -> None:
        opened = self._opened()
        for part, start in _parts(text, place):
            while part:
                written = os.pwrite(opened, part, start)
                part, start = part[written:], start + written

    def _opened(self) -> int:
        with self._lock:
            if self._file is None:
                file = tempfile.TemporaryFile(buffering=0, dir=os.environ.get("TMPDIR") or _FOLDER)  # noqa: SIM115 - below
                finalize(self, file.close).atexit = False
                self._file = file.fileno()
            return self._file

    def read(self, place: Place, begin: int, end: int) -> memoryview:
        """The bytes of a text from `begin` to before `end`. OSError if they cannot be read."""
        text = memoryview(bytearray(end - begin))
        for part, start in _parts(text, place, begin):
            if self._file is None or os.preadv(self._file, [part], start) < len(part):
                raise OSError("it ends too soon")
        return text

    def remove(self, places: Sequence[Place]) -> None:
        """Make room where texts are that nobody will read again."""
        with self._lock:
            self._free += chain.from_iterable(place.chunks for place in places)

    @staticmethod
    def space(places: Sequence[Place]) -> int:
        """The bytes that texts take in the file."""
        return sum(len(place.chunks) for place in places) * _CHUNK


def _parts(text: memoryview, place: Place, begin: int = 0) -> Iterator[tuple[memoryview, int]]:
    """The parts of a text, which is a place's from `begin` on, that are in one chunk each, and where in the file."""
    done = 0
    while done < len(text):
        number, within = divmod(begin + done, _CHUNK)
        part = text[done : done + _CHUNK - within]
        yield part, place.chunks[number] + within
        done += len(part)
