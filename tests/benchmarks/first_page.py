"""The first history pages after a start, compared with ClickHouse's own JSON answer, and those after an import."""

import time
from collections.abc import Callable, Iterator
from statistics import median

from analytics_service.config.settings import Settings
from tests.benchmarks.bench import Bench, sql_path
from tests.benchmarks.gunicorn import gunicorn
from tests.benchmarks.harness import Figure, connection
from tests.benchmarks.pages import BUCKETS, Page, draw

_STARTS = 9
_WATCHED_SECONDS, _WARM_AGAIN_SECONDS = 7, 5


def run(bench: Bench) -> Iterator[Figure]:
    """Hourly and daily pages of all series, each the first request to a gunicorn that has just become ready."""
    with bench.real_prices() as settings:
        for period in ("h", "d"):
            yield from _compared(settings, period, draw(f"{bench.seed} first", period))
        yield from _after_import(bench, settings)


def _compared(settings: Settings, period: str, page: Callable[[int], Page]) -> Iterator[Figure]:
    label, path = f"first page, {BUCKETS} {period}", sql_path(settings)
    ours, theirs = [], []
    with connection(settings.clickhouse_url or "") as sql:
        # ClickHouse has answered queries before, as when only the service is restarted.
        sql(path, page(-1).sql)
        for number in range(_STARTS):
            with gunicorn(settings) as service, connection(service.url) as ask:
                ours.append(_seconds(ask, page(number).path))
            theirs.append(_seconds(sql, path, page(number).sql))
    yield Figure(f"{label}: median of {_STARTS} starts", median(ours) * 1000, "ms")
    yield Figure(f"{label}: to ClickHouse's JSON", median(ours) / median(theirs), "x", at_most=1.2)


def _after_import(bench: Bench, settings: Settings) -> Iterator[Figure]:
    """Pages that are asked for while an import of all prices over themselves ends, and soon after it."""
    page = draw(f"{bench.seed} imported", "h")
    with gunicorn(settings) as service, connection(service.url) as ask:
        warm = median(_seconds(ask, page(-number).path) for number in range(1, 101))
        bench.import_real_prices(settings)
        imported, taken = time.monotonic(), []
        while time.monotonic() < imported + _WATCHED_SECONDS:
            taken.append((time.monotonic() - imported, _seconds(ask, page(len(taken)).path)))
    late = [seconds for at, seconds in taken if at >= _WARM_AGAIN_SECONDS]
    yield Figure("the first page after an import of all prices, to a warm one", taken[0][1] / warm, "x", at_most=3.0)
    label = f"pages from {_WARM_AGAIN_SECONDS} s after it on, median, to a warm one"
    yield Figure(label, median(late) / warm, "x", at_most=1.3)


def _seconds(request: Callable[..., bytes], *words: str) -> float:
    begun = time.perf_counter()
    request(*words)
    return time.perf_counter() - begun
