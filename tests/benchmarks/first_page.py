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
_FIRST_PAGES = 5


def run(bench: Bench) -> Iterator[Figure]:
    """Hourly and daily pages of all series, each the first request to a gunicorn that has just become ready."""
    with bench.real_prices() as settings:
        for period in ("h", "d"):
            yield from _compared(settings, period, draw(f"{bench.seed} first", period))
        yield from _after_import(bench, settings)


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
    for name, taken, bar in (("SQL for the same page", same, None), ("SQL for its filled buckets", filled, 1.2)):
        yield Figure(f"{label}: ClickHouse's JSON, {name}, median", median(taken) * 1000, "ms")
        yield Figure(f"{label}: to ClickHouse's JSON, {name}", mine / median(taken), "x", at_most=bar)


def _after_import(bench: Bench, settings: Settings) -> Iterator[Figure]:
    """Pages that are asked for while an import of all prices over themselves ends, and soon after it."""
    page = draw(f"{bench.seed} imported", "h")
    with gunicorn(settings) as service, connection(service.url) as ask:
        warm = median(_seconds(ask, page(-number).path) for number in range(1, 101))
        bench.import_real_prices(settings)
        imported, taken = time.monotonic(), []
        while time.monotonic() < imported + _WATCHED_SECONDS:
            taken.append((time.monotonic() - imported, _seconds(ask, page(len(taken)).path)))
    soon = [seconds for _, seconds in taken[:_FIRST_PAGES]]
    late = [seconds for at, seconds in taken if at >= _WARM_AGAIN_SECONDS]
    windows = [median(s for _, s in taken[n : n + _FIRST_PAGES]) for n in range(0, len(taken), _FIRST_PAGES)]
    yield Figure("warm page before an import of all prices, median", warm * 1000, "ms")
    yield Figure("the first page after it, to a warm one", soon[0] / warm, "x", at_most=3.0)
    yield Figure(f"the slowest {_FIRST_PAGES} pages in a row after it, median, to a warm one", max(windows) / warm, "x")
    yield Figure(
        f"pages from {_WARM_AGAIN_SECONDS} s after it on, median, to a warm one", median(late) / warm, "x", at_most=1.3
    )


def _seconds(request: Callable[..., bytes], *words: str) -> float:
    begun = time.perf_counter()
    request(*words)
    return time.perf_counter() - begun
