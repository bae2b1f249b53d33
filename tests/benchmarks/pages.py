"""New history pages, compared with VictoriaMetrics' range queries for the same points."""

import json
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from urllib.parse import urlencode
from zoneinfo import ZoneInfo

from tests.benchmarks.bench import Bench
from tests.benchmarks.gunicorn import gunicorn
from tests.benchmarks.harness import Figure, connection, in_turns
from tests.benchmarks.victoria import VictoriaMetrics, count_points, victoria_metrics

BUCKETS = 200
_ROUNDS = 150
# The newest of the real prices, and where pages begin at the earliest.
_LAST, _RECENT = datetime(2023, 2, 25, tzinfo=UTC), datetime(2022, 2, 25, tzinfo=UTC)
_ZONES = ("UTC", "America/New_York", "America/Sao_Paulo", "Europe/London", "Asia/Kolkata", "Asia/Singapore")
# After so many pages a worker has the months in memory that they ask for.
_UNTIL_LOADED = 100
# The most that a page may take, to VictoriaMetrics, and one of candles, to its four queries.
_BARS = {"h": 1.0, "d": 0.7}
_BARS_OF_CANDLES = {"h": 0.8, "d": 1.0}
_SERIES = 37
# VictoriaMetrics drops a silent series sooner than we do, so it has a few points less.
_ALIKE = 0.9
_SECONDS = {"h": 3_600, "d": 86_400}
# The straightforward SQL, of the view that people read.
_SQL = """
SELECT asset_id, {bucket} AS bucket, toString(argMax(value_exact, observed_at)) AS value
FROM price
WHERE observed_at >= toDateTime({start}, 'UTC') AND observed_at < toDateTime({end}, 'UTC')
GROUP BY asset_id, bucket
ORDER BY asset_id, bucket
FORMAT JSONCompact
"""
_BUCKET = {"h": "toStartOfHour(observed_at, '{zone}')", "d": "toStartOfDay(observed_at, '{zone}')"}


@dataclass(frozen=True, slots=True)
class Page:
    """BUCKETS hours or days of a zone; `end` is the end of the last one."""

    period: str
    zone: str
    start: datetime
    end: datetime

    @property
    def path(self) -> str:
        """The service's path of the page, over all assets."""
        bounds = {"start": int(self.start.timestamp()), "end": int(self.end.timestamp()) - 1}
        rest = {"period": self.period, "tz": self.zone, "limit": BUCKETS}
        return f"/api/v1/assets/price-history?{urlencode({**bounds, **rest})}"

    @property
    def sql(self) -> str:
        """The straightforward SQL for those of its buckets that hold something."""
        bounds = {"start": int(self.start.timestamp()), "end": int(self.end.timestamp())}
        return _SQL.format(bucket=_BUCKET[self.period].format(zone=self.zone), **bounds)

    def ask(self, victoria: VictoriaMetrics, query: str = "price") -> bytes:
        """VictoriaMetrics' answer for the last second of each bucket; where clocks change, days are 24 hours to it."""
        step, last = _SECONDS[self.period], int(self.end.timestamp()) - 1
        return victoria.page(last - (BUCKETS - 1) * step, last, step, query)

    def ask_four(self, victoria: VictoriaMetrics) -> None:
        """Its answers for the first, greatest, least and last price in each bucket."""
        for name in ("first", "max", "min", "last"):
            self.ask(victoria, f"{name}_over_time(price[{_SECONDS[self.period]}s])")


def draw(seed: str, period: str) -> Callable[[int], Page]:
    """A page for each number: the same for all who ask, another for every number and seed.

    Drawing one loads its zone from a file, so pages are kept, and drawn before anything is measured.
    """
    width = timedelta(seconds=BUCKETS * _SECONDS[period])

    @cache
    def page(number: int) -> Page:
        chance = random.Random(f"{seed} {period} {number}")
        zone = chance.choice(_ZONES)
        free = int((_LAST - _RECENT - width).total_seconds() // 3600)
        # Every other page ends with the newest day or so, as if it were now.
        ago = chance.randrange(free) if number % 2 else chance.randrange(24)
        local = (_LAST - width - timedelta(hours=ago)).astimezone(ZoneInfo(zone))
        start = local.replace(minute=0) if period == "h" else local.replace(hour=0, minute=0)
        return Page(period, zone, start, start.astimezone(UTC) + width if period == "h" else start + width)

    return page


def run(bench: Bench) -> Iterator[Figure]:
    """Pages of 200 hourly and 200 daily buckets over all assets, never the same twice, on one worker."""
    with (
        bench.real_prices() as settings,
        gunicorn(settings) as service,
        connection(service.url) as ask,
        victoria_metrics() as victoria,
    ):
        rows = victoria.take_prices(settings)
        yield Figure("rows that VictoriaMetrics was given", rows, "rows", at_least=1)
        for period in ("h", "d"):
            page = draw(bench.seed, period)
            share = _points_alike(page(-100), ask, victoria)
            yield Figure(f"200 {period}: its points to one of ours", share, "x", at_least=_ALIKE)
            calls = {
                "mine": lambda n, page=page: ask(page(n).path),
                "arrow": lambda n, page=page: ask(f"{page(n).path}&format=arrow"),
                "candles": lambda n, page=page: ask(f"{page(n).path}&agg=ohlc"),
                "theirs": lambda n, page=page: page(n).ask(victoria),
                "their four": lambda n, page=page: page(n).ask_four(victoria),
            }
            taken = in_turns(calls, _ROUNDS, warm_up=_UNTIL_LOADED, before=page)
            yield Figure(f"200 {period}: median", taken["mine"] * 1000, "ms")
            yield Figure(
                f"200 {period}: to VictoriaMetrics'", taken["mine"] / taken["theirs"], "x", at_most=_BARS[period]
            )
            yield Figure(f"200 {period} in Arrow: to the same in JSON", taken["arrow"] / taken["mine"], "x")
            ratio = taken["candles"] / taken["their four"]
            what = f"200 {period} of ohlc: to VictoriaMetrics' four queries"
            yield Figure(what, ratio, "x", at_most=_BARS_OF_CANDLES[period])


def _points_alike(page: Page, ask: Callable[..., bytes], victoria: VictoriaMetrics) -> float:
    """Points that VictoriaMetrics answers for each of ours. RuntimeError when one has other series than real prices."""
    ours = [
        sum(point["v"] is not None for point in one["points"]) for one in json.loads(ask(page.path))["data"]["series"]
    ]
    series, points = count_points(page.ask(victoria))
    if len(ours) != _SERIES or not 0 < series <= _SERIES:
        raise RuntimeError(f"{page} has {len(ours)} series here and {series} there, of {_SERIES}.")
    return points / sum(ours)
