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
    failures: list[Exception] = []
    stopping = threading.Event()

    def check_all() -> None:
        try:
            while not stopping.wait(_POLL_SECONDS):
                for supervisor in supervisors:
                    supervisor.check()
        # Any exception: it ends the watch, so the main thread must learn of it.
        except Exception as error:
            log.error("%s", error)
            failures.append(error)
            on_failure()

    watcher = threading.Thread(target=check_all, name="process-watcher", daemon=True)
    try:
        with ExitStack() as at_end:
            for supervisor in reversed(supervisors):
                at_end.callback(supervisor.stop)
            try:
                for supervisor in supervisors:
                    supervisor.start()
                watcher.start()
                yield
            finally:
                stopping.set()
                if watcher.ident is not None:
                    watcher.join()
    finally:
        if failures:
            raise failures[0]
