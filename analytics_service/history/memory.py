"""The blocks of all histories in this process: bounded in bytes, and loaded by a thread of their own."""

import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Collection
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple, Protocol

import polars as pl
from cachetools import LRUCache

from analytics_service.errors import AnalyticsError, Superseded
from analytics_service.failures import ANY_FAILURE
from analytics_service.history.slots import Slot

log = logging.getLogger(__name__)

# A rewritten history is shown once the blocks that were in memory are loaded again, or after so many seconds.
_SETTLE_SECONDS = 1.0
# What was not used for so many seconds makes room for blocks that are only of use if they are asked for again.
_IDLE_SECONDS = 5.0
# How many blocks are remembered as too large.
_MOST_TOO_LARGE = 1000
# Bytes of the view that each text in a column has, beside its characters.
_VIEW = 16


class Kept(Protocol):
    """What is kept, in memory or in a file."""

    @property
    def size(self) -> int:
        """Bytes that count towards the limit."""


class Key(NamedTuple):
    """Identity of a block: the history's table, slot, and the number of the last rewrite that changed its content."""

    table: str
    slot: Slot
    rewrite: int


Load = Callable[[Key], Kept | None]


class Need(Enum):
    """How much a block is needed."""

    URGENT = "It comes before others, and may push out what was used less recently."
    USEFUL = "It is loaded while there is room, and may push out what nobody has used for a while."
    LATER = "It is loaded while there is room."


def bytes_of(values: pl.DataFrame) -> int:
    """The bytes of a table in memory. Polars' estimate counts the characters of texts, and not the views of them."""
    texts = sum(dtype == pl.String for dtype in values.dtypes)
    return int(values.estimated_size()) + texts * values.height * _VIEW


@dataclass(slots=True)
class _Entry:
    block: Kept
    used_at: float


class Memory:
    """The blocks that pages needed most recently; the least recently used ones make room.

    `limit` is in bytes; with 0 nothing is ever kept. `measure` is called with the bytes in use when they change, and
    `clock` tells seconds.
    """

    def __init__(
        self,
        limit: int,
        measure: Callable[[int], None] = lambda size: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.limit = limit
        self._measure = measure
        self._clock = clock
        # The least recently used ones come first. A cache of cachetools does not tell which one would be next to go.
        self._entries: OrderedDict[Key, _Entry] = OrderedDict()
        self._too_large: LRUCache[Key, None] = LRUCache(_MOST_TOO_LARGE)
        self._lock = threading.Lock()
        self._size = 0
        self._largest = 0

    def get(self, key: Key) -> Kept | None:
        """A block, if it is there."""
        with self._lock:
            entry = self._entries.get(key)
            if entry is None:
                return None
            entry.used_at = self._clock()
            self._entries.move_to_end(key)
            return entry.block

    def put(self, key: Key, block: Kept) -> None:
        """Keep a block, if it fits."""
        with self._lock:
            if block.size > self.limit:
                self._too_large[key] = None
                return
            self._remove(key)
            while self._size + block.size > self.limit:
                self._remove(next(iter(self._entries)))
            self._entries[key] = _Entry(block, self._clock())
            self._size += block.size
            self._largest = max(self._largest, block.size)
            self._measure(self._size)

    def may_fit(self, key: Key) -> bool:
        """Whether a block may fit: not if it was too large before, because blocks only grow."""
        with self._lock:
            return key not in self._too_large

    def keys(self, table: str) -> list[Key]:
        """The keys of the blocks of a table's history."""
        with self._lock:
            return [key for key in self._entries if key.table == table]

    def drop(self, keys: Collection[Key]) -> None:
        """Forget some blocks."""
        with self._lock:
            for key in keys:
                self._remove(key)
            self._measure(self._size)

    def accepts(self, need: Need) -> bool:
        """Whether a block that is needed so much may be loaded."""
        with self._lock:
            if need is Need.URGENT or self._size + self._largest <= self.limit:
                return True
            oldest = next(iter(self._entries.values()))
            return need is Need.USEFUL and self._clock() - oldest.used_at >= _IDLE_SECONDS

    def is_worth(self, count: int) -> bool:
        """Whether so many blocks may push out others: not if they would push out half of all."""
        return 2 * count * self._largest <= self.limit

    def _remove(self, key: Key) -> None:
        entry = self._entries.pop(key, None)
        self._size -= entry.block.size if entry else 0


class Loader:
    """Loads blocks in a thread of its own: urgent ones first, others while memory accepts them."""

    def __init__(self, memory: Memory) -> None:
        self.memory = memory
        self._lock = threading.Lock()
        self._queue: OrderedDict[Key, tuple[Load, Need]] = OrderedDict()
        self._loading: Key | None = None
        self._thread: threading.Thread | None = None

    def request(self, keys: Collection[Key], load: Load, need: Need) -> None:
        """Have blocks loaded soon. One that is being loaded is not loaded again, though pages ask for it meanwhile."""
        keys = [key for key in keys if self.memory.may_fit(key)]
        if not keys or not self.memory.limit:
            return
        if need is Need.URGENT and not self.memory.is_worth(len(keys)):
            need = Need.LATER
        if not self.memory.accepts(need):
            return
        with self._lock:
            for key in keys:
                if key == self._loading:
                    continue
                if need is Need.URGENT:
                    self._queue[key] = load, need
                    self._queue.move_to_end(key, last=False)
                else:
                    self._queue.setdefault(key, (load, need))
            if self._thread is None:
                self._start()

    def _start(self) -> None:
        thread = threading.Thread(target=self._run, name="history", daemon=True)
        try:
            thread.start()
        except RuntimeError as error:
            # The system has no thread left. Pages are read from the store, and the next request tries again.
            log.warning("History is not kept in memory for now: %s", error)
        else:
            self._thread = thread

    def settle(self) -> None:
        """Return when everything that was requested is loaded, or after a second."""
        self.wait(_SETTLE_SECONDS)

    def wait(self, seconds: float | None = None) -> None:
        """Return when everything that was requested is loaded, or after so many seconds."""
        if thread := self._thread:
            thread.join(seconds)

    def _run(self) -> None:
        while (following := self._next()) is not None:
            key, load = following
            try:
                block = load(key)
                if block is not None:
                    self.memory.put(key, block)
            except Superseded:
                # The history was rewritten; pages will request the block again.
                continue
            except AnalyticsError as error:
                # The rest would fail too; pages will request it again.
                log.warning("History is not kept in memory for now: %s", error)
                with self._lock:
                    self._queue.clear()
            except ANY_FAILURE:
                log.exception("A block of history was not loaded")

    def _next(self) -> tuple[Key, Load] | None:
        with self._lock:
            while self._queue:
                key, (load, need) = self._queue.popitem(last=False)
                if self.memory.accepts(need):
                    self._loading = key
                    return key, load
            self._loading = self._thread = None
            return None
