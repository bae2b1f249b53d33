"""The service as its users start it: real processes, asked over HTTP."""

import fcntl
import http.client
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from click.testing import CliRunner

from analytics_service.cli.main import cli
from analytics_service.clickhouse.connection import Store
from analytics_service.config.parsers import SOURCES
from analytics_service.config.settings import PREFIX, Settings
from analytics_service.embedded.clickhouse import clickhouse
from analytics_service.market.instants import floor_to
from analytics_service.server.past import fill_past, past_batches
from analytics_service.store.migrations import migrate
from jobs.registry import JOBS
from jobs.runner import take_snapshot
from tests.acceptance.browser import browser, chromium
from tests.acceptance.recent import Recent
from tests.processes import PATIENCE, free_port, until
from tests.samples import samples

# Fixtures of this folder, beside those below.
__all__ = ["browser", "chromium"]

_CHECKOUT = Path(__file__).parents[2]
# Of imported prices: when the daily ones begin, and the hours since 1970 of the others.
FIRST = 1_700_000_000
HOURS = range(444_444, 444_444 + 11_000)


@dataclass
class Service:
    """An `up` with its own port and data folder."""

    data_dir: Path
    bind: str = field(default_factory=lambda: f"127.0.0.1:{free_port()}")
    metrics_bind: str = field(default_factory=lambda: f"127.0.0.1:{free_port()}")
    # Tests that need three months of history name another.
    source: str | None = "recent:7"
    workers: int = 2
    # More settings of its commands.
    environ: dict[str, str] = field(default_factory=dict)
    started: "list[subprocess.Popen[str]]" = field(default_factory=list)

    def command(self, *arguments: str, output: int = subprocess.PIPE) -> "subprocess.Popen[str]":
        """Start a command of the service with data folder, metrics bind, source, if any, and `environ` as settings."""
        inherited = {name: value for name, value in os.environ.items() if not name.startswith(PREFIX)}
        settings = {"ANALYTICS_DATA_DIR": str(self.data_dir), "ANALYTICS_METRICS_BIND": self.metrics_bind}
        settings |= {"ANALYTICS_SOURCE": self.source} if self.source else {}
        path = os.pathsep.join([str(_CHECKOUT), str(_package_of_recent(self.data_dir.parent))])
        process = subprocess.Popen(
            [sys.executable, "-m", "analytics_service.cli", *arguments],
            env={**inherited, **settings, **self.environ, "PYTHONPATH": path},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self.started.append(process)
        return process

    def done(self, *arguments: str) -> tuple[int, str]:
        """Run a command that ends by itself; its exit code and output."""
        process = self.command(*arguments)
        output, _ = process.communicate(timeout=PATIENCE)
        return process.returncode, output

    def done_here(self, *arguments: str) -> tuple[int, str]:
        """As `done`, without a source, in this process, since starting one costs more."""
        environ = {f"{PREFIX}DATA_DIR": str(self.data_dir), f"{PREFIX}SOURCE": None}
        done = CliRunner().invoke(cli, arguments, env=environ)
        return done.exit_code, done.output

    def bring(self, *arguments: str) -> None:
        """Import beside a command that runs."""
        code, output = self.done_here("import", *arguments)
        assert code == 0, output

    def printing(self, *arguments: str) -> "subprocess.Popen[str]":
        """Start a command that goes on. It prints to a file, since nothing would empty a pipe."""
        with self._log.open("w") as file:
            return self.command(*arguments, output=file.fileno())

    def serve(self) -> "subprocess.Popen[str]":
        """Start `serve` with one worker."""
        return self.printing("serve", "--bind", self.bind, "--workers", "1")

    def up(self) -> "subprocess.Popen[str]":
        """Run `up` until it says that the service is up."""
        process = self.printing("up", "--bind", self.bind, "--workers", str(self.workers))
        self.says(process, "The service is up")
        return process

    def says(self, process: "subprocess.Popen[str]", text: str) -> None:
        """Return as soon as a process has printed a text."""
        until(lambda: text in self.printed() or process.poll() is not None)
        assert process.poll() is None, self.printed()

    def printed(self) -> str:
        """What the last command that goes on has printed so far."""
        return self._log.read_text("utf-8")

    @property
    def _log(self) -> Path:
        return self.data_dir.parent / f"{self.bind.rpartition('/')[2]}.log"

    def metrics(self) -> dict[str, float]:
        """The samples that operators are shown."""
        with urllib.request.urlopen(f"http://{self.metrics_bind}/metrics", timeout=PATIENCE) as response:
            return samples(response.read().decode())

    def get(self, path: str) -> tuple[int, Any]:
        """Status and JSON of a path; (0, None) when nothing answers."""
        parts = urlsplit(f"http://{self.bind}")
        connection = http.client.HTTPConnection(str(parts.hostname), parts.port, timeout=PATIENCE)
        try:
            connection.request("GET", path)
            response = connection.getresponse()
            return response.status, json.loads(response.read())
        except (OSError, http.client.HTTPException):
            return 0, None
        finally:
            connection.close()


def _package_of_recent(folder: Path) -> Path:
    """A folder that makes Python see an installed package which provides the source `recent`."""
    metadata = folder / "recent-1.dist-info"
    metadata.mkdir(exist_ok=True)
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: recent\nVersion: 1\n")
    (metadata / "entry_points.txt").write_text(f"[{SOURCES}]\nrecent = tests.acceptance.recent:Recent\n")
    return folder


def kill(service: Service) -> None:
    """Kill what a test that failed has left running; the children of a command end with it."""
    for process in service.started:
        process.kill()
        process.communicate()


def stop(process: "subprocess.Popen[str]") -> int:
    """Stop a process as an operator does; its exit code."""
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=PATIENCE)
    return process.returncode


@pytest.fixture(scope="session")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder with the first snapshots of `up`, for tests to copy. All workers of pytest-xdist share it, because
    it costs as much as all else that a service does at its start."""
    base = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        base = base.parent
    folder, made = base / "filled", base / "filled.made"
    with (base / "filled.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not made.exists():
            source = Recent("7")
            with clickhouse(Settings(data_dir=folder), "pytest") as reached, closing(Store(reached)) as store:
                migrate(store, is_alone=True)
                now = datetime.now(UTC)
                fill_past(source, store, past_batches(source, now), threading.Event())
                for job in JOBS.values():
                    take_snapshot(job, source, store, floor_to(now, timedelta(seconds=job.interval(reached))))
            # Else all copies would start on one port, and those that start at once would meet there.
            (folder / "clickhouse" / "config.xml").unlink()
            made.touch()
    return folder


@pytest.fixture(scope="package")
def service(tmp_path_factory: pytest.TempPathFactory, filled: Path) -> Iterator[Service]:
    """One running service for all tests of this folder that leave it running."""
    running = Service(tmp_path_factory.mktemp("service") / "data")
    shutil.copytree(filled, running.data_dir, symlinks=True)
    try:
        process = running.up()
        until(lambda: running.get("/readyz")[0] == http.client.OK)
        yield running
        stop(process)
    finally:
        kill(running)


@pytest.fixture(scope="package")
def imported(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A running `serve`, with one worker, of imported prices: ten daily ones of AAA, and one of nine
    other assets at each end of HOURS."""
    folder = tmp_path_factory.mktemp("imported")
    running = Service(folder / "data", source=None)
    prices, assets = folder / "prices.csv", folder / "assets.csv"
    rows = [f"AAA,{FIRST + day * 86_400},{day + 1}" for day in range(10)]
    rows += [f"A{one},{at * 3600},{one + 1}.123456789012345678" for one in range(9) for at in (HOURS[0], HOURS[-1])]
    prices.write_text("\n".join(["asset,time,value", *rows, ""]))
    ids = ["AAA,0xa,6", *(f"A{one},0xa{one},6" for one in range(9))]
    assets.write_text("\n".join(["symbol,address,decimals", *ids, ""]))
    try:
        process = running.serve()
        until(lambda: running.get("/healthz")[0] == http.client.OK)
        running.bring("price", str(prices), "--assets", str(assets))
        until(lambda: running.get("/api/v1/assets/prices")[0] == http.client.OK)
        yield running
        stop(process)
    finally:
        kill(running)


@pytest.fixture
def own(tmp_path: Path) -> Iterator[Service]:
    """A service for one test, which starts it from nothing."""
    service = Service(tmp_path / "data", workers=1)
    yield service
    kill(service)


@pytest.fixture
def continued(own: Service, filled: Path) -> Service:
    """A service for one test, which starts it with the first snapshots of `up`."""
    shutil.copytree(filled, own.data_dir, symlinks=True)
    return own
