"""How much machine a store needs: assets by the minute, measured over a tenth of a year and extrapolated."""

import json
import random
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import median
from typing import NamedTuple
from urllib.parse import urlencode

from analytics_service.config.settings import Settings
from analytics_service.embedded.folder import DataFolder
from analytics_service.history.page import MAX_POINTS
from analytics_service.store.connection import Store
from tests.benchmarks.bench import Bench, sql_path
from tests.benchmarks.growth import pause
from tests.benchmarks.gunicorn import gunicorn, high_water
from tests.benchmarks.harness import Figure, NotMeasured, connection, in_turns
from tests.benchmarks.load import load
from tests.benchmarks.minutes import NOISE, WALK, fill
from tests.benchmarks.pages import BUCKETS
from tests.benchmarks.storage import merged
from tests.benchmarks.ticks import Exchange, snapshot_prices, statements
from tests.clickhouse import client

_SERIES = 37
_YEAR = 525_600
_MINUTES = _YEAR // 10
_MOST_ASSETS = 1_000
_MINUTE = timedelta(minutes=1)
# The prices end here: the next snapshot closes a month.
_END = datetime(2022, 3, 1, tzinfo=UTC)
_FIRST = int((_END - _MINUTES * _MINUTE).timestamp())
_SECONDS = {"hours": 3_600, "days": 86_400}
# By default: those of 380 assets.
_ROWS = 20_000_000
_ROUNDS, _LOAD_SECONDS = 10, 2
_KEYS = [f"token;0x{number:040x}" for number in range(_SERIES)]
_SQL = {
    "candles of 30 days of all assets": "SELECT * FROM cell FINAL WHERE history = 'price' AND width = 'day' "
    "AND cell >= {end} - INTERVAL 30 DAY AND cell < {end} ORDER BY asset_id, cell",
    "price_now": "SELECT * FROM price_now",
    "price, a month of one asset": f"SELECT * FROM price WHERE asset_id = '{_KEYS[-1]}' "
    "AND observed_at >= {end} - INTERVAL 28 DAY AND observed_at < {end} ORDER BY observed_at",
}
_METHOD = "  At most: rows = assets x year / cadence, plus cells of quarters, days and months, of the bytes above"


class _Bytes(NamedTuple):
    """Bytes on disk for each observation, and for each cell."""

    row: float
    cell: float

    def of(self, rows: float, years: float) -> float:
        """Bytes of the rows of one asset over some years, with their cells."""
        return rows * self.row + (min(rows, years * 35_040) + years * 377) * self.cell


def run(bench: Bench) -> Iterator[Figure]:
    """So many assets that there are `bench.rows`, and at most 1,000; then GB of other numbers of assets, and years.

    With fewer assets, a row takes as much; fewer minutes in a part would take less for a row.
    """
    assets = min((bench.rows or _ROWS) // _MINUTES, _MOST_ASSETS)
    with bench.database("sizing") as settings:
        yield from _observed(settings, "filling and merging", _filled(settings, assets))
        yield from _observed(settings, "answering SQL", _sql(settings))
        yield from _observed(settings, "ticks", _ticks(settings, assets))
        for memory in (settings.history_memory, 0):
            pages = _pages(replace(settings, history_memory=memory), bench.seed, assets)
            yield from _observed(settings, "pages", pages)
        measured = _bytes(settings)
    yield Figure("observation, all parts merged", measured.row, "bytes/row")
    yield Figure("cell, all parts merged", measured.cell, "bytes/row")
    fewer, longer = (_of_fewer(bench, assets // 10, price).of(_MINUTES, 0.1) for price in (WALK, NOISE))
    deviation = abs(fewer / measured.of(_MINUTES, 0.1) - 1) * 100
    yield Figure("bytes, extrapolated from a tenth of the assets: deviation", deviation, "%", at_most=10)
    yield Figure("bytes of prices with 18 random decimals, to those of two", longer / fewer, "x")
    yield from _extrapolated(measured)


def _observed(settings: Settings, what: str, figures: Iterator[Figure]) -> Iterator[Figure]:
    """These figures, and the most memory that the embedded ClickHouse held meanwhile."""
    running = DataFolder(settings.data_dir).running()
    if running is None:
        raise NotMeasured("ClickHouse has ended. Run it again.")
    process = Path(f"/proc/{running.server}")
    # The high-water mark begins anew (proc(5)).
    (process / "clear_refs").write_text("5")
    yield from figures
    yield Figure(f"ClickHouse: peak memory during {what}", high_water(process) / 2**20, "MiB")


def _filled(settings: Settings, assets: int) -> Iterator[Figure]:
    begun, rows = time.monotonic(), _MINUTES * assets
    fill(settings, assets, _FIRST, 60, _MINUTES)
    taken = time.monotonic() - begun
    yield Figure(f"{rows:,} rows of {assets:,} assets, from the first INSERT to the last merge", taken, "s")
    yield Figure("the same", rows / taken, "rows/s")


def _of_fewer(bench: Bench, assets: int, price: str) -> _Bytes:
    with bench.database("fewer") as settings:
        fill(settings, assets, _FIRST, 60, _MINUTES, price=price)
        return _bytes(settings)


def _bytes(settings: Settings) -> _Bytes:
    with client(settings) as own:
        tables = [merged(own, table) for table in ("observation", "cell")]
    return _Bytes(*(disk / rows for rows, _, disk in tables))


def _sql(settings: Settings) -> Iterator[Figure]:
    """Medians of what researchers ask as of the end of the prices, and the rows that ClickHouse reads for it."""
    path = sql_path(settings)
    with connection(settings.clickhouse_url or "") as ask:
        for name, text in _SQL.items():
            body = text.format(end=f"toDateTime({_END.timestamp():.0f}, 'UTC')") + " FORMAT JSONCompact"
            taken = in_turns({name: lambda number, body=body: ask(path, body)}, _ROUNDS, warm_up=1)[name]
            yield Figure(f"SQL: {name}, median", taken * 1000, "ms")
            yield Figure(f"SQL: {name}", json.loads(ask(path, body))["statistics"]["rows_read"], "rows read")


def _ticks(settings: Settings, assets: int) -> Iterator[Figure]:
    """Ticks into the full store; the first one and the last one close cells."""
    exchange = Exchange(assets)
    with client(settings) as own, closing(Store(settings)) as store:
        taken = [snapshot_prices(store, exchange, _END + number * _MINUTE) for number in range(16)]
        sent = statements(store, own, exchange, _END + 16 * _MINUTE)
    yield Figure(f"tick of {assets:,} prices, median", median(taken[1:-1]) * 1000, "ms")
    yield Figure("tick that closes a quarter of an hour", taken[-1] * 1000, "ms")
    yield Figure("tick that closes a month", taken[0] * 1000, "ms")
    yield Figure("statements of a tick", sent, "")


def _pages(settings: Settings, seed: str, assets: int) -> Iterator[Figure]:
    """Medians of pages, each asked for twice; and how many repeated ones one worker answers."""
    held = f"history memory of {settings.history_memory} MiB"
    with gunicorn(settings) as service, connection(service.url) as ask:
        for series, most in ((_SERIES, BUCKETS), (assets, MAX_POINTS // assets)):
            for unit in _SECONDS:
                label, path = _page(seed, unit, series, most)
                calls = {"first": lambda n, path=path: ask(path(n)), "again": lambda n, path=path: ask(path(n))}
                for when, seconds in in_turns(calls, _ROUNDS, warm_up=2, before=pause).items():
                    yield Figure(f"{held}: {label}, {when}, median", seconds * 1000, "ms")
        label, path = _page(seed, "hours", _SERIES, BUCKETS)
        answers, seconds = load(service.url, [path(0)], _LOAD_SECONDS)
        yield Figure(f"{held}: {label}, the same: one worker", answers / seconds, "answers/s")
        yield Figure(f"{held}: peak memory of the worker", service.peak_memory() / 2**20, "MiB")


def _page(seed: str, unit: str, series: int, most: int) -> tuple[str, Callable[[int], str]]:
    """What a page is, and a path for each number: `most` buckets, or as many as four fifths of the range have."""
    width, span = _SECONDS[unit], _MINUTES * 60
    buckets = min(most, span * 4 // 5 // width)

    def path(number: int) -> str:
        chance = random.Random(f"{seed} {unit} {series} {number}")
        begin = _FIRST + chance.randrange(span - buckets * width)
        query = {"start": begin, "end": begin + buckets * width - 1, "period": unit[0], "limit": buckets}
        ids = {"asset_ids": ",".join(_KEYS)} if series == _SERIES else {}
        return f"/api/v1/assets/price-history?{urlencode(query | ids)}"

    return f"page of {series:,} x {buckets} {unit}", path


def _extrapolated(measured: _Bytes) -> Iterator[Figure]:
    print(_METHOD, flush=True)
    for assets in (20, 100, 1_000, 10_000):
        for cadence, minutes in {"minute": 1, "5 minutes": 5, "hour": 60}.items():
            for years in (1, 5):
                rows = years * _YEAR // minutes
                label = f"{assets:,} assets every {cadence}, {years} x 365 days: {assets * rows:,} rows"
                yield Figure(label, assets * measured.of(rows, years) / 1e9, "GB")
