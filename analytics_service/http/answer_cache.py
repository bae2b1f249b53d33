"""A cache of rendered answers, bounded in bytes. Threads that need the same answer render it once."""

import threading
from collections.abc import Callable, Hashable
from operator import itemgetter
from typing import NamedTuple

from cachetools import LRUCache

from analytics_service.concurrency import SingleFlight
from analytics_service.http.answer import Answer

# Measured bytes of an entry without its body and key: validators, headers and slots in tables.
_OVERHEAD = 1000
# An answer may take a quarter of the cache at most, compressed and not: a huge page would evict thousands of others.
_LARGEST_SHARE = 4


class CacheKey(NamedTuple):
    """Identifies an answer: path and query as the caller wrote them, and the preferred media type."""

    path: str
    query: str
    media: str = ""


class AnswerCache:
    """Up to `limit` bytes of answers: one for each key, for one state of the data. A limit of 0 caches nothing.

    `measure` is called with the most bytes that may be in use whenever they change.
    """

    def __init__(self, limit: int, measure: Callable[[int], None] = lambda size: None) -> None:
        self._limit = limit
        self._measure = measure
        # Answers with their sizes.
        self._entries: LRUCache[CacheKey, tuple[Answer, int]] = LRUCache(limit, itemgetter(1))
        self._rendering: SingleFlight[Answer] = SingleFlight()
        self._lock = threading.Lock()

    def find(self, key: CacheKey) -> Answer | None:
        """The cached answer for a key, for any state."""
        with self._lock:
            answer, _ = self._entries.get(key, (None, 0))
        return answer

    def rendered(self, key: CacheKey, state: Hashable, render: Callable[[], Answer]) -> Answer:
        """The cached answer for a state, or a new one (single flight)."""

        def find() -> Answer | None:
            answer = self.find(key)
            return answer if answer is not None and answer.validators.state == state else None

        return find() or self._rendering.get((key, state), lambda: find() or self._keep(key, render()))

    def _keep(self, key: CacheKey, answer: Answer) -> Answer:
        """Cache an answer, unless it is too large, and return it."""
        # The key counts, because callers may send long queries; the body twice, because it may be compressed later.
        texts = len(key.path) + len(key.query) + len(answer.validators.next or "")
        size = _OVERHEAD + texts + len(answer.body) * (2 if answer.gains_by_gzip else 1)
        with self._lock:
            self._entries.pop(key, None)
            if size * _LARGEST_SHARE <= self._limit:
                self._entries[key] = answer, size
            self._measure(int(self._entries.currsize))
        return answer
