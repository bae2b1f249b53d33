"""Limits how many threads wait: while the store is slow or hangs, others serve answers from memory."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple

from analytics_service.errors import AnalyticsError, StoreUnavailable

# Seconds that a request waits for its turn; only with a turn may it wait for the store.
_QUEUE_SECONDS = 1.0


class Shares(NamedTuple):
    """How many of a worker's threads may be busy with what takes long.

    Of three threads or more, at least one is left for everything else (rule 8.9).
    """

    store: int
    """Wait for the store."""
    queue: int
    """Wait for their turn to do so."""
    large_pages: int
    """Build a large page, or wait for their turn to do so."""


def shares_of(threads: int) -> Shares:
    """The shares of so many threads. The store and large pages have one each, even if nothing is left."""
    return Shares(max(threads // 2, 1), threads // 8, max(threads // 4, 1))


@dataclass(slots=True)
class Turn:
    """Whether a request is one of those that may wait for the store."""

    taken: bool = False


class Places:
    """So many places at a time. At most `waiting` threads wait for one."""

    def __init__(self, count: int, waiting: int) -> None:
        self._places = threading.BoundedSemaphore(count)
        self._queue = threading.BoundedSemaphore(waiting)

    def take(self, seconds: float) -> bool:
        """Take a place; False when too many threads wait, or none comes free within so many seconds."""
        if self._places.acquire(blocking=False):
            return True
        if not self._queue.acquire(blocking=False):
            return False
        try:
            return self._places.acquire(timeout=seconds)
        finally:
            self._queue.release()

    def release(self) -> None:
        """Give a place back."""
        self._places.release()


class Turns:
    """Of so many `threads`, half may wait for the store at the same time, and an eighth for their turn (rule 8.9).

    A request takes its turn when it first needs the store, and keeps it to its end. Threads that answer no request,
    such as those of jobs or those that load memory, need no turn.
    """

    def __init__(self, threads: int) -> None:
        shares = shares_of(threads)
        self._places = Places(shares.store, shares.queue)
        self._here = threading.local()

    @contextmanager
    def request(self) -> Iterator[None]:
        """Answer a request in the block."""
        mine = self._here.turn = Turn()
        try:
            yield
        finally:
            self._here.turn = None
            if mine.taken:
                self._places.release()

    @property
    def mine(self) -> Turn | None:
        """The turn of the request that this thread answers, taken or not; None if it answers none."""
        return getattr(self._here, "turn", None)

    def take(self, queue_seconds: float = _QUEUE_SECONDS) -> None:
        """Called before a thread waits for the store, or for another thread that does.

        StoreUnavailable when enough requests wait for their turn, or when it does not come within so many seconds.
        """
        mine = self.mine
        if mine is None or mine.taken:
            return
        if not self._places.take(queue_seconds):
            raise StoreUnavailable("Too many requests wait for ClickHouse already.")
        mine.taken = True


class OneAtATime:
    """A lock for work that one thread does for others.

    Those that wait while it fails get its error: to try again would hold their threads one after the other.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._error: AnalyticsError | None = None

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Do the work in the block, alone."""
        before = self._error
        with self._lock:
            if self._error is not None and self._error is not before:
                raise self._error
            try:
                yield
            except AnalyticsError as error:
                self._error = error
                raise
            self._error = None
