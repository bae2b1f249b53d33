"""The blocks of all histories in this process: bounded in bytes, and loaded by a thread of their own."""

import logging
import threading
from collections import OrderedDict
from collections.abc import Callable, Collection
from typing import NamedTuple

from cachetools import LRUCache

from analytics_service.errors import AnalyticsError, Superseded
from analytics_service.history.blocks import Block, Observations
from analytics_service.history.slots import Slot

log = logging.getLogger(__name__)

# A rewritten history is shown once the blocks that were in memory are loaded again, or after so many seconds.
_SETTLE_SECONDS = 1.0

Blocks = Block | Observations


class Key(NamedTuple):
    """Identity of a block: the history's table, slot, and the number of the last rewrite that changed its content."""

    table: str
    slot: Slot
    rewrite: int


Load = Callable[[Key], Blocks | None]


class Memory:
    """The blocks that pages needed most recently; the least recently used ones make room.

    `limit` is in bytes; with 0 nothing is ever kept. `measure` is called with the bytes in use when they change.
    """

    def __init__(self, limit: int, measure: Callable[[int], None] = lambda size: None) -> None:
        self.limit = limit
        self._measure = measure
        self._blocks: LRUCache[Key, Blocks] = LRUCache(max(limit, 1), getsizeof=lambda block: block.size)
        self._lock = threading.Lock()
        self._largest = 0

    def get(self, key: Key) -> Blocks | None:
        """A block, if it is there."""
        with self._lock:
            return self._blocks.get(key)

    def put(self, key: Key, block: Blocks) -> None:
        """Keep a block, if it fits."""
        with self._lock:
            if block.size <= self.limit:
                self._blocks[key] = block
                self._largest = max(self._largest, block.size)
                self._measure(int(self._blocks.currsize))

    def keys(self, table: str) -> list[Key]:
        """The keys of the blocks of a table's history."""
        with self._lock:
            return [key for key in self._blocks if key.table == table]

    def drop(self, keys: Collection[Key]) -> None:
        """Forget some blocks."""
        with self._lock:
            for key in keys:
                self._blocks.pop(key, None)
            self._measure(int(self._blocks.currsize))

    @property
    def has_room(self) -> bool:
        """Whether one more block fits without another making room."""
        with self._lock:
            return self._blocks.currsize + self._largest <= self.limit

    def is_worth(self, count: int) -> bool:
        """Whether so many blocks may push out others: not if they would push out half of all."""
        return 2 * count * self._largest <= self.limit


class Loader:
    """Loads blocks in a thread of its own: urgent ones first, others while there is room for them."""

    def __init__(self, memory: Memory) -> None:
        self.memory = memory
        self._lock = threading.Lock()
        self._queue: OrderedDict[Key, tuple[Load, bool]] = OrderedDict()
        self._thread: threading.Thread | None = None

    def request(self, keys: Collection[Key], load: Load, *, urgent: bool) -> None:
        """Have blocks loaded soon."""
        if not keys or not self.memory.limit:
            return
        urgent = urgent and self.memory.is_worth(len(keys))
        with self._lock:
            for key in keys:
                if urgent:
                    self._queue[key] = load, True
                    self._queue.move_to_end(key, last=False)
                else:
                    self._queue.setdefault(key, (load, False))
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
            except Exception:
                log.exception("A block of history was not loaded")

    def _next(self) -> tuple[Key, Load] | None:
        with self._lock:
            while self._queue:
                key, (load, urgent) = self._queue.popitem(last=False)
                if urgent or self.memory.has_room:
                    return key, load
            self._thread = None
            return None
