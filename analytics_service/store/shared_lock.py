"""A lock for work that a thread does for others, whose failure they share."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from analytics_service.errors import StoreUnavailable


class SharedLock:
    """A lock for work that one thread does for others.

    Those that wait while the store does not answer get that error: to try again would hold their threads one after the
    other.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._error: StoreUnavailable | None = None

    @contextmanager
    def held(self) -> Iterator[None]:
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
