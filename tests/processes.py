"""Waiting for conditions, and facts about processes of this machine, for tests that run real ones."""

import os
import random
import socket
import time
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

# Generous, because tests run side by side on few cores. A test that passes never waits that long.
PATIENCE = 300.0
# Below the ports that the system gives to outgoing connections and those of embedded servers. The odd ones are for the
# native protocol of servers that have the port before.
_PORTS = range(10_000, 20_000, 2)


def until(happened: Callable[[], object], seconds: float = PATIENCE, every: float = 0.05) -> None:
    """Return as soon as a condition is met; fail if that takes too long. `every` is the pause between two looks."""
    deadline = time.monotonic() + seconds
    while not happened():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(every)


def slack() -> float:
    """By how much bounds on seconds grow while more processes want to run than this machine has processors for.

    The load is an average over the last minute, which knows little of those that have begun just now.
    """
    load, _, _, running, _ = Path("/proc/loadavg").read_text("ascii").split()
    return max(1.0, max(float(load), int(running.partition("/")[0])) / (os.cpu_count() or 1))


def free_port() -> int:
    """A port of 127.0.0.1 that nothing listens on, nor on the next one. No test of the same run is given either again,
    until all are used up."""
    for port in _ports():
        with socket.socket() as one, socket.socket() as next_one:
            try:
                one.bind(("127.0.0.1", port))
                next_one.bind(("127.0.0.1", port + 1))
            except OSError:
                continue
        return port
    _ports.cache_clear()
    return free_port()


def connects(port: int) -> bool:
    """Whether anyone listens on a port of 127.0.0.1."""
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0


@cache
def _ports() -> Iterator[int]:
    """The ports of this worker of pytest-xdist, in random order, because another run of the tests has the same ones."""
    worker, workers = os.environ.get("PYTEST_XDIST_WORKER", "gw0"), os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1")
    own = _PORTS[int(worker.removeprefix("gw")) :: int(workers)]
    return iter(random.SystemRandom().sample(own, k=len(own)))


def alive(pid: int) -> bool:
    """Whether there is such a process, zombies aside."""
    return state(pid) not in ("", "Z")


def state(pid: int) -> str:
    """The letter of a process's state, such as T for stopped; empty when it has ended."""
    return _read(Path(f"/proc/{pid}/stat")).rpartition(")")[2].strip()[:1]


def all_stopped(pids: set[int]) -> bool:
    return not any(alive(pid) for pid in pids)


def command_line(pid: int) -> str:
    """The command line of a process; empty when it has ended."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_text("utf-8").replace("\0", " ")
    except (FileNotFoundError, ProcessLookupError):
        return ""


def children(pid: int) -> set[int]:
    return {int(child) for tasks in Path(f"/proc/{pid}/task").glob("*/children") for child in _read(tasks).split()}


def descendants(pid: int) -> set[int]:
    """The processes that a process has started, and their own child processes."""
    return {found for child in children(pid) for found in {child, *descendants(child)}}


def _read(path: Path) -> str:
    try:
        return path.read_text("utf-8")
    # The thread or the process ended just now.
    except (FileNotFoundError, ProcessLookupError):
        return ""
