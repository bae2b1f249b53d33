"""Work beside that of a thread which must not wait for it."""

import threading
from collections.abc import Callable


class Background:
    """Does one thing at a time, in a thread of this name."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._thread: threading.Thread | None = None

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
