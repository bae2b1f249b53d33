"""The service as its users start it: real processes, over HTTP."""

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from analytics_service.config import PREFIX


def until(happened: Callable[[], bool], seconds: float = 60.0) -> None:
    """Return as soon as something has happened; fail when it does not."""
    deadline = time.monotonic() + seconds
    while not happened():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.05)


def free_port() -> int:
    """A port of 127.0.0.1 that nothing listens on."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return int(listening.getsockname()[1])


def alive(pid: int) -> bool:
    """Whether there is such a process, zombies aside."""
    try:
        return Path(f"/proc/{pid}/stat").read_text("utf-8").rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def children(pid: int) -> set[int]:
    """The processes that a process has started."""
    return {
        int(child)
        for tasks in Path(f"/proc/{pid}/task").glob("*/children")
        for child in tasks.read_text("utf-8").split()
    }


def descendants(pid: int) -> set[int]:
    """The processes that a process has started, and those that they have."""
    return {found for child in children(pid) for found in {child, *descendants(child)}}


@dataclass
class Service:
    """An `up` on a port and a data folder of its own."""

    data_dir: Path
    bind: str = field(default_factory=lambda: f"127.0.0.1:{free_port()}")
    source: str = "simulated:7"
    workers: int = 2

    def command(self, *arguments: str, output: int = subprocess.PIPE) -> "subprocess.Popen[str]":
        """A command of the service, started; it knows the data folder and the source, and no other setting."""
        inherited = {name: value for name, value in os.environ.items() if not name.startswith(PREFIX)}
        settings = {"ANALYTICS_DATA_DIR": str(self.data_dir), "ANALYTICS_SOURCE": self.source}
        return subprocess.Popen(
            [sys.executable, "-m", "analytics_service.cli", *arguments],
            env={**inherited, **settings},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def done(self, *arguments: str) -> tuple[int, str]:
        """Exit code and output of a command that ends by itself."""
        process = self.command(*arguments)
        output, _ = process.communicate(timeout=120)
        return process.returncode, output

    def up(self) -> "subprocess.Popen[str]":
        """`up`, once it says that it is. What it says goes to a file, as nothing would empty a pipe."""
        said = self.data_dir.parent / "up.log"
        with said.open("w") as file:
            process = self.command("up", "--bind", self.bind, "--workers", str(self.workers), output=file.fileno())
        until(lambda: "The service is up" in said.read_text("utf-8") or process.poll() is not None)
        assert process.poll() is None, said.read_text("utf-8")
        return process

    def get(self, path: str) -> tuple[int, Any]:
        """Status and JSON of a path; (0, None) when nothing answers."""
        parts = urlsplit(f"http://{self.bind}")
        connection = http.client.HTTPConnection(str(parts.hostname), parts.port, timeout=30)
        try:
            connection.request("GET", path)
            response = connection.getresponse()
            return response.status, json.loads(response.read())
        except (OSError, http.client.HTTPException):
            return 0, None
        finally:
            connection.close()


def stop(process: "subprocess.Popen[str]") -> int:
    """End a process as an operator does; its exit code."""
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=60)
    return process.returncode


@pytest.fixture(scope="session")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """One running service for all tests that leave it running."""
    running = Service(tmp_path_factory.mktemp("service") / "data")
    process = running.up()
    yield running
    stop(process)


@pytest.fixture
def own(tmp_path: Path) -> Service:
    """A service that is not started yet, for the test alone."""
    return Service(tmp_path / "data")
