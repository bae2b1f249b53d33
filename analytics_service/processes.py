"""Runs the service's processes side by side: restarts what ends by itself, stops all in order."""

import logging
import os
import signal
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence

from analytics_service import supervised
from analytics_service.errors import AnalyticsError
from analytics_service.restarts import Restarts

log = logging.getLogger(__name__)

_POLL_SECONDS = 0.1


class ProcessError(AnalyticsError):
    """A process of the service ends again and again."""


class Process:
    """A child process of a name, started with this Python."""

    def __init__(self, name: str, arguments: Sequence[str], environ: Mapping[str, str], grace: float) -> None:
        self.name = name
        self._arguments = list(arguments)
        self._environ = environ
        self._grace = grace
        self._restarts = Restarts()
        self._child: subprocess.Popen[bytes] | None = None
        self._started = 0.0
        self._due: float | None = None

    def start(self) -> None:
        """Start it; it ends with this process."""
        self._started = time.monotonic()
        self._due = None
        self._child = supervised.python(self._arguments, self._environ)

    @property
    def alive(self) -> bool:
        """Whether it runs now."""
        return self._child is not None and self._child.poll() is None

    def tend(self) -> None:
        """Start it again when it has ended and its time has come. ProcessError when that leads nowhere."""
        if self.alive or self._child is None:
            return
        now = time.monotonic()
        if self._due is None:
            code = self._child.returncode
            delay = self._restarts.next_delay(now - self._started)
            if delay is None:
                raise ProcessError(
                    f"The {self.name} ended with exit code {code} again and again; see what it logged above."
                )
            log.error("The %s ended with exit code %s; it is started again in %s s.", self.name, code, delay)
            self._close()
            self._due = now + delay
        elif now >= self._due:
            self.start()

    def stop(self) -> None:
        """Ask it to end, as on SIGTERM; by force, with its own children, when that takes longer than its grace."""
        if self._child is None:
            return
        self._child.terminate()
        try:
            self._child.wait(self._grace)
        except subprocess.TimeoutExpired:
            log.warning("The %s did not stop in %.0f s; it is killed.", self.name, self._grace)
            # It leads a session of its own, so this reaches gunicorn's workers too.
            os.killpg(self._child.pid, signal.SIGKILL)
            self._child.wait()
        self._close()

    def _close(self) -> None:
        if self._child is not None and self._child.stdin is not None:
            self._child.stdin.close()


def tend(processes: Sequence[Process], stop: threading.Event) -> None:
    """Keep processes running until `stop` is set, or until one of them cannot be kept."""
    while not stop.wait(_POLL_SECONDS):
        for process in processes:
            process.tend()
