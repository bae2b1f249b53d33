"""The first history page after a start, compared with ClickHouse's own JSON answer to straightforward SQL."""

import time
from collections.abc import Callable, Iterator
from statistics import median

from analytics_service.config import Settings
from tests.benchmarks.bench import Bench, sql_path
from tests.benchmarks.gunicorn import gunicorn
from tests.benchmarks.harness import Figure, connection
from tests.benchmarks.pages import BUCKETS, Page, draw

_STARTS = 9


def run(bench: Bench) -> Iterator[Figure]:
    """Hourly and daily pages of all series, each the first request to a gunicorn that has just become ready."""
    with bench.real_prices() as settings:
        for period in ("h", "d"):
            yield from _compared(settings, period, draw(f"{bench.seed} first", period))


def _compared(settings: Settings, period: str, page: Callable[[int], Page]) -> Iterator[Figure]:
    label = f"first page, {BUCKETS} {period}"
    path = sql_path(settings)
    ours, same, filled = [], [], []
    with connection(settings.clickhouse_url or "") as sql:
        # ClickHouse has answered queries before, as when only the service is restarted.
        sql(path, page(-1).sql(filled=True))
        for number in range(_STARTS):
            with gunicorn(settings) as service, connection(service.url) as ask:
                ours.append(_seconds(ask, page(number).path))
            same.append(_seconds(sql, path, page(number).sql(filled=True)))
            filled.append(_seconds(sql, path, page(number).sql(filled=False)))
    mine = median(ours)
    yield Figure(f"{label}: median of {_STARTS} starts", mine * 1000, "ms")
    for name, taken in (("SQL for the same page", same), ("SQL for its filled buckets", filled)):
        yield Figure(f"{label}: ClickHouse's JSON, {name}, median", median(taken) * 1000, "ms")
        yield Figure(f"{label}: to ClickHouse's JSON, {name}", mine / median(taken), "x", at_most=1.0)


def _seconds(request: Callable[..., bytes], *words: str) -> float:
    begun = time.perf_counter()
    request(*words)
    return time.perf_counter() - begun
