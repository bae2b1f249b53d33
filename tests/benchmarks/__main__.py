"""What the hot paths cost: `python -m tests.benchmarks [FOLDER]`, exit code 1 when a bound is missed.

FOLDER (else ANALYTICS_TEST_DATA) holds the real data: assets.csv and prices_hourly.csv.gz. Everything else, from
ClickHouse to gunicorn with one worker, is started here and stopped again.
"""

import os
import socket
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from analytics_service.config import Settings
from analytics_service.importing import import_prices
from analytics_service.store.connection import Store
from analytics_service.store.embedded import clickhouse
from analytics_service.store.migrations import migrate
from analytics_service.up import processes
from tests.benchmarks import ingest, pages, positions
from tests.benchmarks.harness import Figure


class Silent:
    """Shows nothing of an import."""

    def stage(self, label: str, total: int) -> None:
        """Ignored."""

    def advance(self, count: int) -> None:
        """Ignored."""


def main() -> int:
    """Measure, print as it comes, and answer 1 when a bound is missed."""
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else os.environ["ANALYTICS_TEST_DATA"])
    kept = True
    with (
        tempfile.TemporaryDirectory() as data,
        clickhouse(Settings(data_dir=Path(data), workers=1, source="none"), "benchmark") as settings,
    ):
        for figure in _figures(settings, folder):
            print(figure, flush=True)
            kept = kept and figure.kept
    return 0 if kept else 1


def _figures(settings: Settings, folder: Path) -> Iterator[Figure]:
    with closing(Store(settings)) as store:
        migrate(store)
        prices, assets = folder / "prices_hourly.csv.gz", folder / "assets.csv"
        import_prices(store, [prices], assets, "ms", False, datetime.now(UTC), Silent())
    with _service(settings) as url:
        yield from pages.run(url, settings)
    yield from ingest.run(settings, folder)
    yield from positions.run(settings)


@contextmanager
def _service(settings: Settings) -> Iterator[str]:
    with socket.create_server(("127.0.0.1", 0)) as free:
        bind = f"127.0.0.1:{free.getsockname()[1]}"
    (gunicorn,) = processes(replace(settings, bind=bind), scheduler=False)
    gunicorn.start()
    try:
        _wait(f"http://{bind}/api/v1/assets")
        yield f"http://{bind}"
    finally:
        gunicorn.stop()


def _wait(url: str) -> None:
    deadline = time.monotonic() + 30
    while True:
        try:
            urllib.request.urlopen(url).close()  # noqa: S310 - our own service on loopback
            return
        except urllib.error.URLError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)


if __name__ == "__main__":
    sys.exit(main())
