"""The line before the store: so many queries at once, and others wait, those of the oldest request first."""

import threading
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from sys import maxsize

from analytics_service.errors import Busy, StoreUnavailable
from analytics_service.market.share import Gate, ends_at, seconds_left, waits_in_line


class Line(Gate):
    """Lets `width` threads have a turn at the same time. Others wait while their request has time. The oldest request
    is next: if each waited anew for every query, all might be late in the end.

    While it is closed nobody waits. Threads that answer no request, such as those of jobs or those that load memory, do
    not wait in it.
    """

    def __init__(self, width: int, most_waiting: int = maxsize) -> None:
        super().__init__(most_waiting)
        self._free = width
        # With the seconds at which their requests end.
        self._waiting: dict[Future[None], float] = {}
        self._lock = threading.Lock()

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Have a turn in the block. Busy when the request's time is over first, StoreUnavailable while the line is
        closed."""
        if not waits_in_line():
            yield
            return
        if not self._enters_at_once():
            with self.place():
                self._wait()
        try:
            yield
        finally:
            self._leave()

    def close(self, cause: str) -> None:
        """Refuse all who wait, and who comes later, until the line is opened again."""
        with self._lock:
            self.cause = cause
            refused = [*self._waiting]
            self._waiting.clear()
        for waiting in refused:
            waiting.set_exception(StoreUnavailable(cause))

    def open(self) -> None:
        """Let threads have turns again."""
        self.cause = ""

    def refusal(self) -> Busy | StoreUnavailable:
        """The error of a thread whose time is over."""
        return StoreUnavailable(self.cause) if self.cause else Busy()

    def _enters_at_once(self) -> bool:
        with self._lock:
            return self._takes_free()

    def _takes_free(self) -> bool:
        """Whether a turn was free, and is taken. StoreUnavailable while the line is closed."""
        if self.cause:
            raise StoreUnavailable(self.cause)
        is_free = self._free > 0
        self._free -= is_free
        return is_free

    def _wait(self) -> None:
        with self._lock:
            if self._takes_free():
                return
            own = Future[None]()
            self._waiting[own] = ends_at()
        try:
            own.result(seconds_left())
        except TimeoutError:
            with self._lock:
                if own in self._waiting:
                    del self._waiting[own]
                    raise Busy from None
            # It was called up, or refused, at the last moment.
            own.result()

    def _leave(self) -> None:
        with self._lock:
            following = min(self._waiting, key=self._waiting.__getitem__, default=None)
            if following is None:
                self._free += 1
            else:
                del self._waiting[following]
        if following is not None:
            following.set_result(None)
