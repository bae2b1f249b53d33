"""Limits how many threads wait: while the store is slow or hangs, others serve answers from memory."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from analytics_service.errors import StoreUnavailable

# How long a request waits to enter while the store answers others, seconds.
_PATIENCE = 0.5


class Bulkhead:
    """Five eighths of so many `threads`, but at least one, may answer requests that need the store (rule 8.9).

    A request counts from when it first needs the store to its end. Others wait to enter while the store answers.
    Once one has waited in vain, the next ones do not, until the store answers again: they would hold all threads.
    Threads that answer no request, such as those of jobs or those that load memory, do not count.
    """

    def __init__(self, threads: int) -> None:
        self._free = threading.BoundedSemaphore(max(threads * 5 // 8, 1))
        self._here = threading.local()
        self._hangs = False

    @contextmanager
    def request(self) -> Iterator[None]:
        """Answer a request in the block."""
        self._here.counts = False
        try:
            yield
        finally:
            if self._here.counts:
                self._free.release()
            del self._here.counts

    def enter(self) -> None:
        """Called before a thread waits for the store, or for another thread that does.

        StoreUnavailable when enough requests do so already, and go on to.
        """
        if getattr(self._here, "counts", True):
            return
        if not self._free.acquire(timeout=0 if self._hangs else _PATIENCE):
            self._hangs = True
            raise StoreUnavailable("Too many requests wait for ClickHouse already.")
        self._here.counts = True

    def answered(self) -> None:
        """Called when the store has answered."""
        self._hangs = False
