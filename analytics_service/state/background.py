"""Work beside that of a thread which must not wait for it."""

import threading
from collections.abc import Callable


class Background:
    """Does one thing at a time, in a thread of this name."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._thread: threading.Thread | None = None
        self._repeated_at = float("-inf")

    @property
    def is_busy(self) -> bool:
        """Whether the last thing is not done yet."""
        return self._thread is not None and self._thread.is_alive()

    def do(self, work: Callable[[], None], *, in_background: bool) -> None:
        """Begin the work; not `in_background`, return when it is done."""
        if not in_background:
            work()
            return
        self._thread = threading.Thread(target=work, name=self._name, daemon=True)
        self._thread.start()

    def repeat(self, work: Callable[[], None], now: float, interval: float, *, in_background: bool) -> None:
        """The same, unless it was repeated less than `interval` seconds before `now`, or is under way."""
        if now >= self._repeated_at + interval and not self.is_busy:
            self._repeated_at = now
            self.do(work, in_background=in_background)
