"""The pace of requests: evenly spaced over all threads, and none while upstream asks to be left alone."""

import threading
import time
from collections.abc import Callable

from analytics_service.config.values import Rate
from analytics_service.errors import SourceError

# Seconds that a request waits at most when upstream asks for patience. After longer ones the caller asks again.
LONGEST_HOLD = 60.0
# Seconds that are believed at most: nobody would notice before long that a wrong Retry-After has stopped all snapshots.
_MOST_PATIENCE = 300.0
# Seconds of pauses that the end of the process does not cut short.
_SHORT = 0.25


class Pace:
    """Lets requests begin at most as often as `rate` allows.

    `wait` pauses and, like `threading.Event.wait`, returns true to give up. `clock` is in seconds.
    """

    def __init__(
        self, rate: Rate, wait: Callable[[float], bool | None], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._interval = rate.seconds / rate.requests
        self._wait = wait
        self._clock = clock
        self._lock = threading.Lock()
        self._next = self._held = clock()

    def enter(self) -> None:
        """Return when a request may begin. SourceError if it would have to wait too long, or if the process ends."""
        with self._lock:
            now = self._clock()
            if self._held - now > LONGEST_HOLD:
                raise SourceError(f"It asks to be left alone for {self._held - now:.0f} s more.")
            begin = max(now, self._next, self._held)
            self._next = begin + self._interval
        if begin > now:
            self.pause(begin - now)

    def hold(self, seconds: float) -> None:
        """Let no request begin for some seconds, at most a few minutes."""
        with self._lock:
            self._held = max(self._held, self._clock() + min(seconds, _MOST_PATIENCE))

    def pause(self, seconds: float) -> None:
        """Wait. SourceError if the process ends meanwhile."""
        if not self._wait(seconds):
            return
        if seconds > _SHORT:
            raise SourceError("The process is about to end.")
        # What has begun may still finish, at the same pace.
        time.sleep(seconds)
