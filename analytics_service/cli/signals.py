"""Signal handlers. SIGTERM and Ctrl-C end commands; a running service follows other signals."""

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from queue import SimpleQueue
from types import FrameType

import click

from analytics_service.errors import CorrectionInProgress, WriteLockLost

_TERMINATED = 128 + signal.SIGTERM
_ORDERS = (signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2, signal.SIGTTIN, signal.SIGTTOU)
_TERMINAL = Path("/dev/tty")


def terminate(number: int, frame: FrameType | None) -> None:
    """A signal handler: unwind the command. Later signals are ignored, so that they do not interrupt the unwinding."""
    for stop in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(stop, signal.SIG_IGN)
    sys.exit(_TERMINATED)


def quiet_interrupt(died: "threading.ExceptHookArgs | sys.UnraisableHookArgs") -> None:
    """Hook for exceptions in threads and abandoned generators. On Ctrl-C Polars raises KeyboardInterrupt in any of
    them; the main thread gets it, too, and unwinds the command."""
    if issubclass(died.exc_type, KeyboardInterrupt):
        return
    if isinstance(died, threading.ExceptHookArgs):
        threading.__excepthook__(died)
    else:
        sys.__unraisablehook__(died)


@contextmanager
def stopping_normally() -> Iterator[None]:
    """For services: SIGTERM and Ctrl-C exit with code 0."""
    signal.signal(signal.SIGINT, terminate)
    try:
        yield
    except SystemExit as stopped:
        if stopped.code != _TERMINATED:
            raise


@contextmanager
def following_signals() -> Iterator[SimpleQueue[int]]:
    """Yields a queue of the signals that a service follows. Closing the service's terminal stops it, too, unless it was
    started with nohup."""
    orders: SimpleQueue[int] = SimpleQueue()
    ends_with_terminal = _has_terminal() and signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN

    def take(number: int, frame: FrameType | None) -> None:
        if number == signal.SIGHUP and ends_with_terminal and not _has_terminal():
            terminate(number, frame)
        orders.put(number)

    for number in _ORDERS:
        signal.signal(number, take)
    with stopping_normally():
        yield orders


@contextmanager
def explaining_stop(outcome: str, *, begun: bool = False) -> Iterator[None]:
    """Print `outcome` if SIGTERM or Ctrl-C stops the block.

    If the command has `begun` to write, CorrectionInProgress becomes WriteLockLost with the outcome: another correction
    took the lock between two of its steps.
    """
    try:
        yield
    except CorrectionInProgress as error:
        if begun:
            raise WriteLockLost(f"{error} {outcome}") from error
        raise
    except (KeyboardInterrupt, SystemExit):
        click.echo(f"\n{outcome}", err=True)
        raise


def set_on_signals(stop: threading.Event) -> None:
    """Set an event on SIGTERM and Ctrl-C, in a thread: the handler might interrupt code that holds the event's lock."""

    def set_in_thread(number: int, frame: FrameType | None) -> None:
        threading.Thread(target=stop.set, daemon=True).start()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, set_in_thread)


def _has_terminal() -> bool:
    try:
        _TERMINAL.open("rb").close()
    except OSError:
        return False
    return True
