"""A lock for work that a thread does for others. They share its failure."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from analytics_service.errors import StoreUnavailable


class SharedLock:
    """A lock for work that one thread does for others.

    If the store is unavailable, all waiting threads get that error. Otherwise they would try again one after the other,
    and the last would wait for all time-outs.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._error: StoreUnavailable | None = None

    @contextmanager
    def held(self) -> Iterator[None]:
        """Do the work in the block under the lock."""
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
