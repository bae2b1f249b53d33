"""Caches segments of all histories by month, up to a number of bytes. A background thread loads missing months."""

import logging
import threading
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from math import inf
from typing import NamedTuple

from cachetools import LRUCache

from analytics_service.clickhouse.errors import ANY_FAILURE
from analytics_service.errors import AnalyticsError, Superseded
from analytics_service.history.segments import ROW_BYTES, PinnedHistory, Segment
from analytics_service.market.instants import month_start, next_month
from analytics_service.store.rollups import FIFTEEN_MINUTES, floor_to_width

log = logging.getLogger(__name__)

# Key, in place of a month, of the segment that follows the last month's segment.
RECENT = -1
# Pause after a failed load, in which pages read the store: further loads would slow it down for everybody.
_PAUSE_SECONDS = 60


class _Key(NamedTuple):
    """A history, by name, and a UTC month (its start, unix s), or RECENT."""

    history: str
    month: int


class _Load(NamedTuple):
    """A month of a pinned history to load. `on_demand` means that a page needed it, so it may evict others."""

    pinned: PinnedHistory
    month: int
    on_demand: bool

    @property
    def key(self) -> _Key:
        return _Key(self.pinned.history.name, self.month)

    @property
    def end(self) -> int:
        """The end of the month's closed 15min rollups, unix seconds."""
        closed = floor_to_width(self.pinned.newest + 1, FIFTEEN_MINUTES)
        return max(self.month, min(next_month(self.month), closed))


class Memory:
    """At most `limit` bytes of segments; the least recently used are evicted. A limit of 0 caches nothing.

    `measure` is called with the bytes in use whenever they change.
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
        self._lock = threading.Lock()
        self._segments: LRUCache[_Key, Segment] = LRUCache(limit, getsizeof=lambda segment: segment.size)
        # By history: the generation of its segments, and the size of the largest segment so far.
        self._generations: dict[str, int] = {}
        self._largest: dict[str, int] = {}
        # When failed months may be loaded again.
        self._not_before: dict[_Key, float] = {}
        # The last is the next to load.
        self._queue: dict[_Key, _Load] = {}
        self._thread: threading.Thread | None = None

    def renew(self, pinned: PinnedHistory, start: int) -> None:
        """Begin a generation: evict segments that may hold instants at or after `start`, a unix second."""
        name = pinned.history.name
        with self._lock:
            self._generations[name] = pinned.generation
            stale = [key for key, segment in self._segments.items() if key.history == name and segment.end > start]
            for key in stale:
                del self._segments[key]
            self._measure(int(self._segments.currsize))

    def find(self, pinned: PinnedHistory, months: Iterable[int]) -> Mapping[int, Segment]:
        """The cached segments of these months. Raises Superseded if there is a later generation."""
        name = pinned.history.name
        with self._lock:
            if self._generations.get(name) != pinned.generation:
                raise Superseded(f"{name} has a newer head.")
            segments = {month: self._segments.get(_Key(name, month)) for month in months}
        return {month: segment for month, segment in segments.items() if segment is not None}

    def put(self, pinned: PinnedHistory, month: int, segment: Segment) -> None:
        """Cache a segment, unless there is a later generation or the segment does not fit."""
        key = _Key(pinned.history.name, month)
        with self._lock:
            if segment.size > self.limit:
                self._refuse(key)
            elif self._generations.get(key.history) == pinned.generation:
                self._largest[key.history] = max(self._largest.get(key.history, 0), segment.size)
                self._segments[key] = segment
                self._measure(int(self._segments.currsize))

    def load(self, pinned: PinnedHistory, months: Collection[int], beside: int) -> None:
        """Queue months that a page needs, if all may be loaded, and fit into memory with `beside` other segments."""
        loads = [_Load(pinned, month, on_demand=True) for month in months]
        with self._lock:
            fit = (len(months) + beside) * self._largest.get(pinned.history.name, 0) <= self.limit
            if fit and all(self._is_due(load.key) for load in loads):
                self._enqueue(loads)

    def fill(self, pinned: PinnedHistory) -> None:
        """Queue all months, the newest first. They are loaded while there is room."""
        months = [month_start(pinned.newest)]
        while months[-1] > pinned.first:
            months.append(month_start(months[-1] - 1))
        with self._lock:
            if pinned.ids and self.limit:
                self._enqueue(_Load(pinned, month, on_demand=False) for month in reversed(months))

    def wait(self, seconds: float | None = None) -> None:
        """Return when the queue is empty, or after this many seconds."""
        if thread := self._thread:
            thread.join(seconds)

    def _enqueue(self, loads: Iterable[_Load]) -> None:
        for load in loads:
            self._queue.pop(load.key, None)
            self._queue[load.key] = load
        if self._queue and self._thread is None:
            thread = threading.Thread(target=self._run, name="history", daemon=True)
            thread.start()
            self._thread = thread

    def _run(self) -> None:
        while (load := self._next()) is not None:
            try:
                self._load(load)
            except Superseded:
                # The history was rewritten; pages will request the month again.
                continue
            except AnalyticsError as error:
                # Other loads would fail, too; pages will request them again.
                log.warning("History is not cached for now: %s", error)
                with self._lock:
                    self._queue.clear()
                    self._pause(load.key)
            except ANY_FAILURE:
                log.exception("Loading a month of history failed")
                with self._lock:
                    self._pause(load.key)

    def _load(self, load: _Load) -> None:
        """Cache a month's closed 15min rollups. If there are too many, they are not read."""
        pinned, month, end = load.pinned, load.month, load.end
        most = self.limit // ROW_BYTES
        if pinned.count_rollups(month, end, most + 1) > most:
            with self._lock:
                self._refuse(load.key)
        else:
            self.put(pinned, month, pinned.segment(pinned.ids, range(month, max(end, month + 1), FIFTEEN_MINUTES), end))

    def _next(self) -> _Load | None:
        """The next load that is still needed; None ends the thread."""
        with self._lock:
            while self._queue:
                _, load = self._queue.popitem()
                if self._is_needed(load) and self._is_due(load.key):
                    return load
            self._thread = None
            return None

    def _is_needed(self, load: _Load) -> bool:
        """Whether memory lacks a part of the month, and has room for it or a page needs it."""
        cached = self._segments.get(load.key)
        room = self.limit - self._segments.currsize - self._largest.get(load.pinned.history.name, 0)
        return (cached is None or cached.end < load.end) and (load.on_demand or room >= 0)

    def _refuse(self, key: _Key) -> None:
        """Evict a month and never load it again: it has outgrown memory, and months only grow."""
        self._not_before[key] = inf
        self._segments.pop(key, None)
        self._measure(int(self._segments.currsize))

    def _pause(self, key: _Key) -> None:
        self._not_before[key] = self._clock() + _PAUSE_SECONDS

    def _is_due(self, key: _Key) -> bool:
        return self._clock() >= self._not_before.get(key, 0)
