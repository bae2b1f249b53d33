"""Limits the threads that wait for the store, so that others can answer from memory while it is slow or hangs."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from analytics_service.errors import StoreUnavailable

# Seconds that a request waits to enter while the store answers other requests.
_PATIENCE = 0.5


class Bulkhead:
    """Lets five eighths of the `threads`, at least one, answer requests that need the store (rule 8.9).

    A request counts from when it first needs the store to its end. Others wait to enter while the store answers. After
    a request has waited in vain, later requests fail at once until the store answers again: waiting would occupy all
    threads. Threads that answer no request, such as those of jobs or those that load memory, do not count.
    """

    def __init__(self, threads: int) -> None:
        self._free = threading.BoundedSemaphore(max(threads * 5 // 8, 1))
        self._local = threading.local()
        self._hangs = False

    @contextmanager
    def request(self) -> Iterator[None]:
        """Answer a request in the block."""
        self._local.counts = False
        try:
            yield
        finally:
            if self._local.counts:
                self._free.release()
            del self._local.counts

    def enter(self) -> None:
        """Called before a thread waits for the store, or for another thread that does.

        StoreUnavailable when too many requests wait already.
        """
        if getattr(self._local, "counts", True):
            return
        if not self._free.acquire(timeout=0 if self._hangs else _PATIENCE):
            self._hangs = True
            raise StoreUnavailable("Too many requests wait for ClickHouse already.")
        self._local.counts = True

    def answered(self) -> None:
        """Called when the store has answered."""
        self._hangs = False
