"""How signals reach a service's main thread, in processes of their own."""

import os
import pty
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.processes import PATIENCE

# Prints the number of each order; what it is started on becomes its terminal, if that is one.
_FOLLOWS = """
import fcntl, os, signal, sys, termios
from analytics_service.cli.signals import following_signals
from analytics_service.server.serve import next_order
# The tests themselves may run under nohup.
signal.signal(signal.SIGHUP, signal.SIG_IGN if "nohup" in sys.argv else signal.SIG_DFL)
if os.isatty(0):
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
with following_signals() as orders:
    print("ready", flush=True)
    while True:
        print(next_order(orders), flush=True)
"""


@contextmanager
def following(terminal: int, *arguments: str) -> Iterator["subprocess.Popen[str]"]:
    """A process that follows signals, with a terminal or a file as its standard input."""
    with subprocess.Popen(
        [sys.executable, "-c", _FOLLOWS, *arguments],
        stdin=terminal,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        try:
            yield process
        finally:
            process.kill()


def test_a_service_takes_its_orders_one_by_one_and_stops_on_sigint() -> None:
    with following(subprocess.DEVNULL) as process:
        for number in (signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2, signal.SIGTTIN, signal.SIGTTOU):
            process.send_signal(number)
            assert process.stdout is not None
            assert process.stdout.readline() == f"{int(number)}\n"
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE) == 0


@pytest.mark.parametrize("nohup", [False, True])
def test_a_service_stops_with_its_terminal_unless_that_was_ruled_out(nohup: bool) -> None:
    """A terminal that is closed sends HUP, as an operator does who wants a reload."""
    terminal, end = pty.openpty()
    with following(end, *["nohup"] * nohup) as process:
        os.close(end)
        process.send_signal(signal.SIGHUP)
        assert process.stdout is not None
        assert process.stdout.readline() == f"{int(signal.SIGHUP)}\n"
        os.close(terminal)
        if nohup:
            assert process.stdout.readline() == f"{int(signal.SIGHUP)}\n"
        else:
            assert process.wait(PATIENCE) == 0


# Gets a second signal, as of a terminal that closes, while the first one unwinds it.
_UNWINDS = """
import os, signal, sys, time
from analytics_service.cli.signals import following_signals
with following_signals():
    try:
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(60)
    finally:
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGHUP)
        print("whole", flush=True)
"""


def test_nothing_interrupts_what_a_signal_began() -> None:
    done = subprocess.run(
        [sys.executable, "-c", _UNWINDS], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PATIENCE
    )
    assert done.stdout == "whole\n", done.stderr
