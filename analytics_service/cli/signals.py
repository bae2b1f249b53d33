"""How SIGTERM and Ctrl-C end the commands."""

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_TERMINATED = 128 + signal.SIGTERM


def terminate(number: int, frame: FrameType | None) -> None:
    """A signal handler: unwind the command, once. A second signal must not interrupt what the first one began."""
    for each in (signal.SIGTERM, signal.SIGINT):
        signal.signal(each, signal.SIG_IGN)
    sys.exit(_TERMINATED)


@contextmanager
def stopped_by_signals() -> Iterator[None]:
    """For services: SIGTERM and Ctrl-C are the normal way to stop, so the exit code is 0."""
    signal.signal(signal.SIGINT, terminate)
    try:
        yield
    except SystemExit as stopped:
        if stopped.code != _TERMINATED:
            raise


def set_on_signals(stop: threading.Event) -> None:
    """Set an event on SIGTERM and Ctrl-C. A thread does it: a handler might interrupt the event while it is locked."""
    read_end, write_end = os.pipe()
    os.set_blocking(write_end, False)
    signal.set_wakeup_fd(write_end)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: None)

    def wait() -> None:
        os.read(read_end, 1)
        stop.set()

    threading.Thread(target=wait, name="signal-watcher", daemon=True).start()
