"""A supervised program that can be replaced by another instance while it runs."""

import logging
import threading
from collections.abc import Callable

from analytics_service.errors import AnalyticsError
from analytics_service.processes.supervisor import Supervisor

log = logging.getLogger(__name__)


class Replaceable:
    """A Supervisor, and a way to replace it. One thread may call `check` while another calls the other methods."""

    def __init__(self, make: Callable[[], Supervisor]) -> None:
        self._make = make
        self._current = make()
        self._others: list[Supervisor] = []
        self._lock = threading.Lock()

    def start(self) -> None:
        """Return once the program is ready, as Supervisor.start does."""
        self._current.start()

    def check(self) -> None:
        """Restart the program if it has ended, as Supervisor.check does."""
        with self._lock:
            self._current.check()

    def signal(self, number: int) -> None:
        """Send a signal to the program."""
        with self._lock:
            self._current.signal(number)

    def replace(self) -> None:
        """Start a second instance, and stop the first once the second is ready and able. If that fails, the first goes
        on."""
        successor = self._make()
        self._others.append(successor)
        try:
            successor.start()
            successor.require_able()
        except AnalyticsError as error:
            log.error("%s The one that was running goes on.", error)
            successor.stop()
            self._others.remove(successor)
            return
        with self._lock:
            before, self._current = self._current, successor
        self._others = [before]
        before.stop()
        self._others = []

    def stop(self) -> None:
        """Stop the program, and the other instance if a replacement was interrupted."""
        for supervisor in (self._current, *self._others):
            supervisor.stop()
