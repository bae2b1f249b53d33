"""Large pages take turns, so that neither their memory nor the threads that they occupy add up (rule 2.13)."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from analytics_service.errors import LargePagesBusy

# How long a page waits for its turn, seconds. A turn takes a fraction of a second, unless the store is slow.
_PATIENCE = 5.0


class LargePages:
    """One turn at a time. All but one of the `threads` may wait for theirs, each for `patience` seconds at most."""

    def __init__(self, threads: int, patience: float = _PATIENCE) -> None:
        self._threads = threading.BoundedSemaphore(threads)
        self._turn = threading.Lock()
        self._patience = patience

    @contextmanager
    def turn(self) -> Iterator[None]:
        """The caller's turn lasts for the duration of the block. LargePagesBusy if it would not come soon."""
        if not self._threads.acquire(blocking=False):
            raise LargePagesBusy
        try:
            if not self._turn.acquire(timeout=self._patience):
                raise LargePagesBusy
            try:
                yield
            finally:
                self._turn.release()
        finally:
            self._threads.release()
