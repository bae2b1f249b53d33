"""Chunks of all histories in this process: bounded in bytes, and loaded by a thread of their own."""

import logging
import threading
from collections import OrderedDict
from collections.abc import Callable, Collection, Hashable, Mapping

from analytics_service.errors import AnalyticsError, Superseded
from analytics_service.series.chunk import Chunk, Place
from analytics_service.series.rows import History

log = logging.getLogger(__name__)

_Key = tuple[History, Place]
Load = Callable[[Place], None]


class Memory:
    """The chunks that pages need most, of one state of each history; the least recently used ones make room.

    `limit` is in bytes; with 0 nothing is ever kept.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._lock = threading.Lock()
        self._states: dict[History, Hashable] = {}
        self._chunks: OrderedDict[_Key, Chunk] = OrderedDict()
        self._size = 0
        self._largest = 0
        self._wanted: OrderedDict[_Key, tuple[Load, bool]] = OrderedDict()
        self._loader: threading.Thread | None = None

    def move(self, history: History, state: Hashable, keeps: Callable[[Place], int]) -> None:
        """The history has another state; of a chunk only as many hours as `keeps` says are what they were."""
        with self._lock:
            self._states[history] = state
            for key in [key for key in self._chunks if key[0] == history]:
                hours = keeps(key[1])
                if hours:
                    self._chunks[key] = self._chunks[key].knowing(hours)
                else:
                    self._size -= self._chunks.pop(key).size

    def find(self, history: History, state: Hashable, hours: Mapping[Place, int]) -> Mapping[Place, Chunk] | None:
        """The chunks at these places that know the hour given there; None when the history has another state."""
        with self._lock:
            if self._states.get(history) != state:
                return None
            known = [place for place, hour in hours.items() if self._knows(history, place, hour)]
            found = {place: self._chunks[history, place] for place in known}
            for place in found:
                self._chunks.move_to_end((history, place))
            return found

    def put(self, history: History, state: Hashable, place: Place, chunk: Chunk) -> None:
        """Keep a chunk of a state, unless the history has another one by now."""
        with self._lock:
            if self._states.get(history) != state or chunk.size > self._limit:
                return
            old = self._chunks.pop((history, place), None)
            self._chunks[history, place] = chunk
            self._size += chunk.size - (old.size if old else 0)
            self._largest = max(self._largest, chunk.size)
            while self._size > self._limit:
                self._size -= self._chunks.popitem(last=False)[1].size

    def want(self, history: History, places: Collection[Place], load: Load, *, urgent: bool) -> None:
        """Have chunks loaded soon: urgent ones before all others, others while there is room for them."""
        with self._lock:
            if not self._limit:
                return
            # What would push out half of all else is not worth it.
            urgent = urgent and 2 * len(places) * self._largest <= self._limit
            for place in places:
                if urgent:
                    self._wanted[history, place] = load, True
                    self._wanted.move_to_end((history, place), last=False)
                else:
                    self._wanted.setdefault((history, place), (load, False))
            if self._wanted and self._loader is None:
                loader = threading.Thread(target=self._load_wanted, name="history", daemon=True)
                loader.start()
                self._loader = loader

    def settle(self) -> None:
        """Wait until everything that is wanted has been loaded."""
        if loader := self._loader:
            loader.join()

    def _load_wanted(self) -> None:
        while wanted := self._next():
            load, place = wanted
            try:
                load(place)
            except Superseded:
                # A new snapshot came; pages of that one will want it again.
                continue
            except AnalyticsError as error:
                # What else is wanted would fail too; pages will want it again.
                log.warning("History is not kept in memory for now: %s", error)
                self._forget_wanted()
            except Exception:
                log.exception("A part of history is not loaded")

    def _next(self) -> tuple[Load, Place] | None:
        with self._lock:
            while self._wanted:
                key, (load, urgent) = self._wanted.popitem(last=False)
                has_room = self._size + self._largest <= self._limit
                if not self._knows(*key, key[1].span - 1) and (urgent or has_room):
                    return load, key[1]
            self._loader = None
            return None

    def _knows(self, history: History, place: Place, hour: int) -> bool:
        chunk = self._chunks.get((history, place))
        return chunk is not None and hour < chunk.known

    def _forget_wanted(self) -> None:
        with self._lock:
            self._wanted.clear()
