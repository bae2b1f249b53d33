"""Remembers, for pages that were just read, when the last observation before their end was made."""

import threading

from cachetools import LRUCache

from analytics_service.store.ledger import Head

# Pages that are remembered from the time one was read until its headers are made.
_MOST = 256


class LastInstants:
    """Unix seconds by a history's head and the end of a page."""

    def __init__(self) -> None:
        self._known: LRUCache[tuple[Head, int], int] = LRUCache(_MOST)
        self._lock = threading.Lock()

    def note(self, head: Head, end: int, last: int) -> None:
        """Remember the last instant before a unix second."""
        with self._lock:
            self._known[head, end] = last

    def before(self, head: Head, end: int) -> int | None:
        """The last instant before a unix second, if it is remembered."""
        with self._lock:
            return self._known.get((head, end))
