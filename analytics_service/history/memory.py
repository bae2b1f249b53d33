"""Frames in memory: of all histories, by month, within a bound. A thread of its own loads those that pages lacked."""

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

# Stands for a month in the key of the frame after the last month's.
RECENT = -1


class _Key(NamedTuple):
    """A history, by name, and a UTC month (its start, unix s), or RECENT."""

    history: str
    month: int


class _Wanted(NamedTuple):
    """A month of a pinned history to load; `is_asked` says that a page lacked it, so that it may push out others."""

    pinned: PinnedHistory
    month: int
    is_asked: bool

    @property
    def name(self) -> _Key:
        return _Key(self.pinned.history.name, self.month)


class Memory:
    """At most `limit` bytes of frames; those that no page used for longest make room. A limit of 0 keeps nothing.

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
        self._wanted: deque[_Wanted] = deque()
        self._loading: _Wanted | None = None
        self._thread: threading.Thread | None = None

    def renew(self, pinned: PinnedHistory, since: int) -> None:
        """Begin a generation: forget what may hold instants from a unix second on."""
        name = pinned.history.name
        with self._lock:
            self._generations[name] = pinned.generation
            stale = [key for key, frame in self._frames.items() if key.history == name and frame.until > since]
            for key in stale:
                del self._frames[key]
            self._measure(int(self._frames.currsize))

    def find(self, pinned: PinnedHistory, months: Iterable[int]) -> Mapping[int, Frame]:
        """The frames of some months that are there. Superseded when there is a later generation."""
        name = pinned.history.name
        with self._lock:
            if self._generations.get(name) != pinned.generation:
                raise Superseded(f"{name} has a newer head.")
            found = {month: self._frames.get(_Key(name, month)) for month in months}
        return {month: frame for month, frame in found.items() if frame is not None}

    def put(self, pinned: PinnedHistory, month: int, frame: Frame) -> None:
        """Keep a frame, unless there is a later generation or it does not fit."""
        name = pinned.history.name
        with self._lock:
            self._largest[name] = max(self._largest.get(name, 0), frame.size)
            if self._generations.get(name) == pinned.generation and frame.size <= self.limit:
                self._frames[_Key(name, month)] = frame
                self._measure(int(self._frames.currsize))

    def load(self, pinned: PinnedHistory, months: Collection[int], beside: int) -> None:
        """Have the frames of months that a page lacked loaded soon, if they fit together with so many others."""
        with self._lock:
            if (len(months) + beside) * self._largest.get(pinned.history.name, 0) <= self.limit:
                self._want(_Wanted(pinned, month, is_asked=True) for month in months)

    def fill(self, pinned: PinnedHistory) -> None:
        """Have all months loaded, the newest first, as long as there is room."""
        months = [month_start(pinned.newest)]
        while months[-1] > pinned.first:
            months.append(month_start(months[-1] - 1))
        with self._lock:
            if pinned.ids and self.limit:
                self._want(_Wanted(pinned, month, is_asked=False) for month in months)

    def wait(self, seconds: float | None = None) -> None:
        """Return when everything that pages lacked is loaded, or after so many seconds."""
        if thread := self._thread:
            thread.join(seconds)

    def _want(self, wanted: Iterable["_Wanted"]) -> None:
        """Have months loaded, those that pages asked for first; one that is being loaded is not loaded again."""
        waiting = {(one.name, one.pinned.generation): one for one in (*filter(None, [self._loading]), *self._wanted)}
        for one in wanted:
            there = waiting.get((one.name, one.pinned.generation))
            if there and (there is self._loading or there.is_asked or not one.is_asked):
                continue
            if there:
                self._wanted.remove(there)
            (self._wanted.appendleft if one.is_asked else self._wanted.append)(one)
        if self._wanted and self._thread is None:
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
        while (wanted := self._next()) is not None:
            try:
                self.put(wanted.pinned, wanted.month, _month(wanted.pinned, wanted.month))
            except Superseded:
                # The history was rewritten; pages will ask for the month again.
                continue
            except AnalyticsError as error:
                # The rest would fail too; pages will ask for it again.
                log.warning("History is not kept in memory for now: %s", error)
                with self._lock:
                    self._wanted.clear()
            except ANY_FAILURE:
                log.exception("A month of history was not loaded")

    def _next(self) -> "_Wanted | None":
        with self._lock:
            self._loading = None
            while self._wanted and self._loading is None:
                wanted = self._wanted.popleft()
                room = self.limit - self._frames.currsize - self._largest.get(wanted.pinned.history.name, 0)
                if wanted.is_asked or (room >= 0 and wanted.name not in self._frames):
                    self._loading = wanted
            if self._loading is None:
                self._thread = None
            return self._loading


def _month(pinned: PinnedHistory, month: int) -> Frame:
    """The cells of the quarters of an hour in a month that are over."""
    until = min(next_month(month), floor(pinned.newest + 1, QUARTER))
    return pinned.frame(pinned.ids, range(month, max(until, month + 1), QUARTER), max(until, month))
