"""Large pages take turns, so that neither their memory nor the threads that they occupy add up (rule 2.13)."""

from collections.abc import Iterator
from contextlib import contextmanager

from analytics_service.errors import LargePagesBusy
from analytics_service.store.turns import Places

# How long a page waits for its turn, seconds. A turn takes a fraction of a second, unless the store is slow.
_PATIENCE = 5.0


class LargePages:
    """One turn at a time. All but one of the `threads` may wait for theirs, each for `patience` seconds at most."""

    def __init__(self, threads: int, patience: float = _PATIENCE) -> None:
        self._turns = Places(1, threads - 1)
        self._patience = patience

    @contextmanager
    def turn(self) -> Iterator[None]:
        """The caller's turn lasts for the duration of the block. LargePagesBusy if it would not come soon."""
        if not self._turns.take(self._patience):
            raise LargePagesBusy
        try:
            yield
        finally:
            self._turns.release()
