"""gunicorn as the service runs it, on a free port of this machine, with any application."""

import os
import re
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from analytics_service.config.settings import Settings
from analytics_service.supervisor import Child, start_python
from tests.processes import free_port

SERVICE = "analytics_service.wsgi:app"
_READY_SECONDS = 120


@dataclass(frozen=True, slots=True)
class Gunicorn:
    """A running gunicorn."""

    url: str
    pid: int

    def peak_memory(self) -> int:
        """The most memory that any of its workers has held so far, bytes."""
        return max(high_water(worker) for worker in self._workers())

    def _workers(self) -> list[Path]:
        children = Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text("ascii").split()
        return [Path("/proc") / child for child in children]


@contextmanager
def gunicorn(
    settings: Settings, application: str = SERVICE, ready: str = "/readyz", **variables: str
) -> Iterator[Gunicorn]:
    """A gunicorn configured by the settings, from when `ready` answers; `variables` are for its environment."""
    bind = f"127.0.0.1:{free_port()}"
    own = replace(settings, bind=bind, metrics_bind="none", log_level="warning")
    arguments = ["-m", "gunicorn", "-c", "python:analytics_service.server.gunicorn_conf", application]
    child = start_python(arguments, {**own.to_environment(os.environ), **variables})
    try:
        wait_until_ready(f"http://{bind}{ready}", child)
        yield Gunicorn(f"http://{bind}", child.pid)
    finally:
        child.terminate()
        child.wait()
        child.end_input()


def wait_until_ready(url: str, child: Child | subprocess.Popen[bytes]) -> None:
    """Return when a URL answers 200. The last URLError if that takes too long, or the child has ended."""
    deadline = time.monotonic() + _READY_SECONDS
    while True:
        try:
            urllib.request.urlopen(url).close()  # noqa: S310 - our own service on loopback
            return
        except urllib.error.URLError:
            if child.poll() is not None or time.monotonic() > deadline:
                raise
            time.sleep(0.02)


def high_water(process: Path) -> int:
    """VmHWM of a process, bytes."""
    found = re.search(r"^VmHWM:\s*(\d+) kB$", (process / "status").read_text("ascii"), re.MULTILINE)
    return int(found[1]) * 1024 if found else 0
