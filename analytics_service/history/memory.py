"""Caches frames of all histories by month, up to a number of bytes. A background thread loads what pages lack."""

import logging
import threading
from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import NamedTuple

from cachetools import LRUCache

from analytics_service.errors import AnalyticsError, Superseded
from analytics_service.history.frame import Frame
from analytics_service.history.stored import PinnedHistory
from analytics_service.market.instants import month_start, next_month
from analytics_service.store.cells import QUARTER, floor
from analytics_service.store.failures import ANY_FAILURE

log = logging.getLogger(__name__)

# In place of a month: the key of the frame that follows the last month's.
RECENT = -1


class _Key(NamedTuple):
    """A history, by name, and a UTC month (its start, unix s), or RECENT."""

    history: str
    month: int


class _Load(NamedTuple):
    """A month of a pinned history to load. `on_demand`: a page lacked it, so it may evict others."""

    pinned: PinnedHistory
    month: int
    on_demand: bool

    @property
    def key(self) -> _Key:
        return _Key(self.pinned.history.name, self.month)


class Memory:
    """At most `limit` bytes of frames; the least recently used are evicted. A limit of 0 keeps nothing.

    `measure` is called with the bytes in use when they change.
    """

    def __init__(self, limit: int, measure: Callable[[int], None] = lambda size: None) -> None:
        self.limit = limit
        self._measure = measure
        self._lock = threading.Lock()
        self._frames: LRUCache[_Key, Frame] = LRUCache(limit, getsizeof=lambda frame: frame.size)
        # By history: the generation of its frames, and the size of the largest one so far.
        self._generations: dict[str, int] = {}
        self._largest: dict[str, int] = {}
        self._queue: deque[_Load] = deque()
        self._loading: _Load | None = None
        self._thread: threading.Thread | None = None

    def renew(self, pinned: PinnedHistory, since: int) -> None:
        """Begin a generation: evict frames that may hold instants at or after `since`, a unix second."""
        name = pinned.history.name
        with self._lock:
            self._generations[name] = pinned.generation
            stale = [key for key, frame in self._frames.items() if key.history == name and frame.until > since]
            for key in stale:
                del self._frames[key]
            self._measure(int(self._frames.currsize))

    def find(self, pinned: PinnedHistory, months: Iterable[int]) -> Mapping[int, Frame]:
        """The cached frames of these months. Superseded when there is a later generation."""
        name = pinned.history.name
        with self._lock:
            if self._generations.get(name) != pinned.generation:
                raise Superseded(f"{name} has a newer head.")
            frames = {month: self._frames.get(_Key(name, month)) for month in months}
        return {month: frame for month, frame in frames.items() if frame is not None}

    def put(self, pinned: PinnedHistory, month: int, frame: Frame) -> None:
        """Keep a frame, unless there is a later generation or it does not fit."""
        name = pinned.history.name
        with self._lock:
            self._largest[name] = max(self._largest.get(name, 0), frame.size)
            if self._generations.get(name) == pinned.generation and frame.size <= self.limit:
                self._frames[_Key(name, month)] = frame
                self._measure(int(self._frames.currsize))

    def load(self, pinned: PinnedHistory, months: Collection[int], beside: int) -> None:
        """Queue months that a page lacked, if their frames fit together with `beside` others."""
        with self._lock:
            if (len(months) + beside) * self._largest.get(pinned.history.name, 0) <= self.limit:
                self._enqueue(_Load(pinned, month, on_demand=True) for month in months)

    def fill(self, pinned: PinnedHistory) -> None:
        """Queue all months, the newest first. They are loaded as long as there is room."""
        months = [month_start(pinned.newest)]
        while months[-1] > pinned.first:
            months.append(month_start(months[-1] - 1))
        with self._lock:
            if pinned.ids and self.limit:
                self._enqueue(_Load(pinned, month, on_demand=False) for month in months)

    def wait(self, seconds: float | None = None) -> None:
        """Return when the queue is empty, or after this many seconds."""
        if thread := self._thread:
            thread.join(seconds)

    def _enqueue(self, loads: Iterable["_Load"]) -> None:
        """Queue loads, those on demand first. A month that is being loaded is not loaded again."""
        pending = {(load.key, load.pinned.generation): load for load in (*filter(None, [self._loading]), *self._queue)}
        for load in loads:
            queued = pending.get((load.key, load.pinned.generation))
            if queued and (queued is self._loading or queued.on_demand or not load.on_demand):
                continue
            if queued:
                self._queue.remove(queued)
            (self._queue.appendleft if load.on_demand else self._queue.append)(load)
        if self._queue and self._thread is None:
            self._start()

    def _start(self) -> None:
        thread = threading.Thread(target=self._run, name="history", daemon=True)
        try:
            thread.start()
        except RuntimeError as error:
            # The system has no thread left. Pages are read from the store, and the next one tries again.
            log.warning("History is not kept in memory for now: %s", error)
        else:
            self._thread = thread

    def _run(self) -> None:
        while (load := self._next()) is not None:
            try:
                self.put(load.pinned, load.month, _month(load.pinned, load.month))
            except Superseded:
                # The history was rewritten; pages will ask for the month again.
                continue
            except AnalyticsError as error:
                # The rest would fail too; pages will ask for it again.
                log.warning("History is not kept in memory for now: %s", error)
                with self._lock:
                    self._queue.clear()
            except ANY_FAILURE:
                log.exception("A month of history was not loaded")

    def _next(self) -> "_Load | None":
        with self._lock:
            self._loading = None
            while self._queue and self._loading is None:
                load = self._queue.popleft()
                room = self.limit - self._frames.currsize - self._largest.get(load.pinned.history.name, 0)
                if load.on_demand or (room >= 0 and load.key not in self._frames):
                    self._loading = load
            if self._loading is None:
                self._thread = None
            return self._loading


def _month(pinned: PinnedHistory, month: int) -> Frame:
    """The cells of a month's complete quarters of an hour."""
    until = min(next_month(month), floor(pinned.newest + 1, QUARTER))
    return pinned.frame(pinned.ids, range(month, max(until, month + 1), QUARTER), max(until, month))
