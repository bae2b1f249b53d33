"""Runs supervised programs side by side for the duration of a block, watched by a thread."""

import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Protocol

log = logging.getLogger(__name__)

_POLL_SECONDS = 0.05


class Supervised(Protocol):
    """A Supervisor, or anything else that can be started, checked regularly and stopped."""

    def start(self) -> None: ...
    def check(self) -> None: ...
    def stop(self) -> None: ...


@contextmanager
def running(supervisors: Sequence[Supervised], on_failure: Callable[[], None]) -> Iterator[None]:
    """Start programs in order, keep them running during the block, then stop them in the same order.

    `on_failure` is called from another thread when a program cannot be kept running. From then on no program is
    restarted, and the end of the block raises that program's error.
    """
    watch = _Watch(supervisors, on_failure)
    with ExitStack() as at_end:
        # Called in reverse.
        at_end.callback(watch.raise_failure)
        for supervisor in reversed(supervisors):
            at_end.callback(supervisor.stop)
        at_end.callback(watch.stop)
        for supervisor in supervisors:
            supervisor.start()
        watch.start()
        yield


class _Watch:
    """A thread that checks supervisors until it is stopped or one of them fails."""

    def __init__(self, supervisors: Sequence[Supervised], on_failure: Callable[[], None]) -> None:
        self._supervisors = supervisors
        self._on_failure = on_failure
        self._failure: Exception | None = None
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._check_all, name="process-watcher", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Return once no check is under way."""
        self._stopping.set()
        if self._thread.ident is not None:
            self._thread.join()

    def raise_failure(self) -> None:
        if self._failure is not None:
            raise self._failure

    def _check_all(self) -> None:
        try:
            while not self._stopping.wait(_POLL_SECONDS):
                for supervisor in self._supervisors:
                    supervisor.check()
        # Any exception: it ends the watch, so the main thread must learn of it.
        except Exception as error:
            log.error("%s", error)
            self._failure = error
            self._on_failure()
