"""VictoriaMetrics as a peer: the same rows and the same pages, with its cache off."""

import json
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlencode

from analytics_service.config.settings import Settings
from tests.benchmarks.bench import sql_path
from tests.benchmarks.harness import NotMeasured, connection

_MISSING = (
    "there is no victoria-metrics on PATH, and its figures are part of the target. "
    "Install it: apt-get install victoria-metrics"
)
_OPTIONS = ("-retentionPeriod=100y", "-search.disableCache", "-loggerLevel=ERROR")
# A line for each asset, as /api/v1/import takes them: instants in milliseconds, values as floats, which is all it has.
_LINES = """
SELECT
    map('__name__', 'price', 'asset', asset_id) AS metric,
    groupArray(toFloat64(price)) AS values,
    groupArray(toUnixTimestamp(observed_at) * 1000) AS timestamps
FROM (SELECT asset_id, observed_at, price FROM price ORDER BY asset_id, observed_at)
GROUP BY asset_id
FORMAT JSONEachRow
SETTINGS output_format_json_quote_64bit_integers = 0
"""
_START_SECONDS = 30
_MERGE_SECONDS = 120


class VictoriaMetrics:
    """A running VictoriaMetrics, asked over one kept-alive connection."""

    def __init__(self, ask: Callable[..., bytes], folder: Path) -> None:
        self._ask = ask
        self._folder = folder

    def take_prices(self, settings: Settings) -> int:
        """Import the rows of the database's prices as series price{asset="..."}, and return how many it stored."""
        with connection(settings.clickhouse_url or "") as sql:
            lines = sql(sql_path(settings), _LINES)
        self._ask("/api/v1/import", lines)
        self._ask("/internal/force_flush")
        return int(self._metric("vm_rows", "storage/"))

    def page(self, start: int, end: int, step: int, query: str = "price") -> bytes:
        """The answer to a range query at `start`, `start + step`, … `end`, unix seconds; by default for last prices."""
        bounds = {"query": query, "start": start, "end": end, "step": step}
        return self._ask(f"/api/v1/query_range?{urlencode(bounds)}")

    def merge(self) -> None:
        """Return when all rows are in files, and the files are merged. RuntimeError when that takes too long."""
        self._ask("/internal/force_merge")
        deadline, before = time.monotonic() + _MERGE_SECONDS, None
        # It merges in the background and does not say when it is done: by then all is in files and stays as it is.
        while before is None or before != self._file_bytes() or before < self.data_bytes():
            if time.monotonic() > deadline:
                raise RuntimeError(f"VictoriaMetrics did not merge its data in {_MERGE_SECONDS} s.")
            before = self._file_bytes()
            time.sleep(1)

    def data_bytes(self) -> int:
        """Bytes of the rows' blocks by its own account, without the index of labels."""
        return int(self._metric("vm_data_size_bytes", "storage/"))

    def disk_usage(self) -> int:
        """Bytes that `du -sb` says its data folder has, which counts folders too; the index of labels is elsewhere."""
        return disk_usage(self._folder / "data")

    def _file_bytes(self) -> int | None:
        """Bytes of the files alone; None when one went away while they were counted, as they do in a merge."""
        try:
            return sum(path.stat().st_size for path in (self._folder / "data").rglob("*") if path.is_file())
        except FileNotFoundError:
            return None

    def _metric(self, name: str, kind: str) -> float:
        """The sum of a metric over all types that begin so."""
        lines = self._ask("/metrics").decode().splitlines()
        return sum(float(line.split()[-1]) for line in lines if line.startswith(f'{name}{{type="{kind}'))


@contextmanager
def victoria_metrics() -> Iterator[VictoriaMetrics]:
    """An empty VictoriaMetrics, on loopback. NotMeasured if it is not installed."""
    program = shutil.which("victoria-metrics")
    if program is None:
        raise NotMeasured(_MISSING)
    with socket.create_server(("127.0.0.1", 0)) as free:
        bind = f"127.0.0.1:{free.getsockname()[1]}"
    with tempfile.TemporaryDirectory() as folder:
        words = [program, *_OPTIONS, f"-httpListenAddr={bind}", f"-storageDataPath={folder}"]
        child = subprocess.Popen(words, stdin=subprocess.DEVNULL)
        try:
            _wait(bind)
            with connection(f"http://{bind}") as ask:
                yield VictoriaMetrics(ask, Path(folder))
        finally:
            child.terminate()
            child.wait()


def disk_usage(folder: Path) -> int:
    """The size of a folder by `du -sb`: the lengths of its files and folders."""
    return sum(path.stat().st_size for path in [folder, *folder.rglob("*")])


def count_points(answer: bytes) -> tuple[int, int]:
    """Series and points of a range query's answer."""
    series = json.loads(answer)["data"]["result"]
    return len(series), sum(len(one["values"]) for one in series)


def _wait(bind: str) -> None:
    host, port = bind.split(":")
    deadline = time.monotonic() + _START_SECONDS
    while True:
        try:
            socket.create_connection((host, int(port))).close()
            return
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.02)
