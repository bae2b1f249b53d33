"""Limits how many threads wait: while the store is slow or hangs, others serve answers from memory."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from analytics_service.errors import StoreUnavailable

# How long a request waits for its turn while the store answers others, seconds.
_PATIENCE = 0.5


class Turns:
    """Five eighths of so many `threads`, but at least one, may answer requests that need the store (rule 8.9).

    A request counts from when it first needs the store to its end. Others wait for their turn while the store answers.
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

    def take(self) -> None:
        """Called before a thread waits for the store, or for another thread that does.

        StoreUnavailable when enough requests do so already, and go on to.
        """
        if getattr(self._here, "counts", True):
            return
        if not self._free.acquire(timeout=0 if self._hangs else _PATIENCE):
            self._hangs = True
            raise StoreUnavailable("Too many requests wait for ClickHouse already.")
        self._here.counts = True

    def tell_of_answer(self) -> None:
        """Called when the store has answered."""
        self._hangs = False


class OneAtATime:
    """A lock for work that one thread does for others.

    Those that wait while the store does not answer get that error: to try again would hold their threads one after the
    other.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._error: StoreUnavailable | None = None

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Do the work in the block, alone."""
        before = self._error
        with self._lock:
            if self._error is not None and self._error is not before:
                raise self._error
            try:
                yield
            except StoreUnavailable as error:
                self._error = error
                raise
            self._error = None
