"""VictoriaMetrics as a peer: the same rows and the same pages, with its cache off."""

import json
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from urllib.parse import urlencode

from analytics_service.config.settings import Settings
from tests.benchmarks.bench import sql_path
from tests.benchmarks.harness import NotMeasured, connection
from tests.processes import connects, free_port, until

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


class VictoriaMetrics:
    """A running VictoriaMetrics, asked over one kept-alive connection."""

    def __init__(self, ask: Callable[..., bytes]) -> None:
        self._ask = ask

    def take_prices(self, settings: Settings) -> int:
        """Import the rows of the database's prices as series price{asset="..."}, and return how many it stored."""
        with connection(settings.clickhouse_url or "") as sql:
            lines = sql(sql_path(settings), _LINES)
        self._ask("/api/v1/import", lines)
        self._ask("/internal/force_flush")
        lines = self._ask("/metrics").decode().splitlines()
        return sum(int(line.split()[-1]) for line in lines if line.startswith('vm_rows{type="storage/'))

    def page(self, start: int, end: int, step: int, query: str = "price") -> bytes:
        """The answer to a range query at `start`, `start + step`, … `end`, unix seconds; by default for last prices."""
        bounds = {"query": query, "start": start, "end": end, "step": step}
        return self._ask(f"/api/v1/query_range?{urlencode(bounds)}")


@contextmanager
def victoria_metrics() -> Iterator[VictoriaMetrics]:
    """An empty VictoriaMetrics, on loopback. NotMeasured if it is not installed."""
    program = shutil.which("victoria-metrics")
    if program is None:
        raise NotMeasured(_MISSING)
    port = free_port()
    bind = f"127.0.0.1:{port}"
    with tempfile.TemporaryDirectory() as folder:
        words = [program, *_OPTIONS, f"-httpListenAddr={bind}", f"-storageDataPath={folder}"]
        child = subprocess.Popen(words, stdin=subprocess.DEVNULL)
        try:
            until(lambda: connects(port), 30)
            with connection(f"http://{bind}") as ask:
                yield VictoriaMetrics(ask)
        finally:
            child.terminate()
            child.wait()


def count_points(answer: bytes) -> tuple[int, int]:
    """Series and points of a range query's answer."""
    series = json.loads(answer)["data"]["result"]
    return len(series), sum(len(one["values"]) for one in series)
