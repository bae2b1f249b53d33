"""Waiting for conditions, and facts about processes of this machine, for tests that run real ones."""

import random
import socket
import time
from collections.abc import Callable
from pathlib import Path

# Generous, because tests run side by side on few cores. A test that passes never waits that long.
PATIENCE = 300.0
# Below the ports that the system gives to outgoing connections and those of embedded servers.
_PORTS = range(10_000, 20_000)


def until(happened: Callable[[], object], seconds: float = PATIENCE) -> None:
    """Return as soon as something has happened; fail when it does not."""
    deadline = time.monotonic() + seconds
    while not happened():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.05)


def free_port() -> int:
    """A port of 127.0.0.1 that nothing listens on; tests in other processes are unlikely to choose the same one."""
    for port in random.SystemRandom().sample(_PORTS, k=len(_PORTS)):
        with socket.socket() as listening:
            try:
                listening.bind(("127.0.0.1", port))
            except OSError:
                continue
        return port
    raise LookupError("no port is free")


def alive(pid: int) -> bool:
    """Whether there is such a process, zombies aside."""
    try:
        return Path(f"/proc/{pid}/stat").read_text("utf-8").rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def all_stopped(pids: set[int]) -> bool:
    """Whether none of the processes is there any more."""
    return not any(alive(pid) for pid in pids)


def command_line(pid: int) -> str:
    """The command line of a process; empty when it has ended."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_text("utf-8").replace("\0", " ")
    except (FileNotFoundError, ProcessLookupError):
        return ""


def children(pid: int) -> set[int]:
    """The processes that a process has started."""
    return {int(child) for tasks in Path(f"/proc/{pid}/task").glob("*/children") for child in _read(tasks).split()}


def descendants(pid: int) -> set[int]:
    """The processes that a process has started, and those that they have."""
    return {found for child in children(pid) for found in {child, *descendants(child)}}


def _read(path: Path) -> str:
    try:
        return path.read_text("utf-8")
    # The thread or the process ended just now.
    except (FileNotFoundError, ProcessLookupError):
        return ""
