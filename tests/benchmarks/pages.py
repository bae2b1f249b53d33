"""History pages, compared with VictoriaMetrics' range query and ClickHouse's own JSON answer to straightforward SQL."""

import json
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from functools import cache
from urllib.parse import urlencode
from zoneinfo import ZoneInfo, available_timezones

from analytics_service.config.settings import Settings
from tests.benchmarks.bench import Bench, sql_path
from tests.benchmarks.gunicorn import gunicorn
from tests.benchmarks.harness import Figure, connection, in_turns
from tests.benchmarks.victoria import VictoriaMetrics, count_points, victoria_metrics

BUCKETS = 200
_ROUNDS = 150
# The range of the real prices.
_FIRST, _LAST = datetime(2021, 1, 1, tzinfo=UTC), datetime(2023, 2, 25, tzinfo=UTC)
# People are in few zones, and ask for what is recent.
_ZONES = ("UTC", "America/New_York", "America/Sao_Paulo", "Europe/London", "Asia/Kolkata", "Asia/Singapore")
_RECENT = datetime(2022, 2, 25, tzinfo=UTC)
# After so many pages a worker has the months in memory that they ask for.
UNTIL_LOADED = 100
# The most that a page may take, to VictoriaMetrics, and one of candles, to its four queries.
_BARS = {"h": 1.0, "d": 0.7}
_BARS_OF_CANDLES = {"h": 0.8, "d": 1.0}
_SERIES = 37
# VictoriaMetrics drops a silent series sooner than we do, so it has a few points less.
_ALIKE = 0.9
_SECONDS = {"h": 3_600, "d": 86_400}
# Names people use; the others, such as Etc/GMT+5 or US/Pacific, are older spellings and fixed offsets.
_REGIONS = frozenset(
    ("Africa", "America", "Antarctica", "Arctic", "Asia", "Atlantic", "Australia", "Europe", "Indian", "Pacific")
)
# The straightforward SQL, of the view that people read.
_SQL = """
SELECT asset_id, {bucket} AS bucket, toString(argMax(price, observed_at)) AS value
FROM price
WHERE observed_at >= toDateTime({start}, 'UTC') AND observed_at < toDateTime({end}, 'UTC')
GROUP BY asset_id, bucket
ORDER BY asset_id, bucket {fill}
FORMAT JSONCompact
"""
# This makes the answer a page: all series have the same buckets, and an empty one repeats the value before it.
_FILL = """WITH FILL FROM toDateTime({start}, '{zone}') TO toDateTime({end}, '{zone}') STEP INTERVAL 1 {unit}
INTERPOLATE (value)"""
_UNIT = {"h": "HOUR", "d": "DAY"}
_BUCKET = {"h": "toStartOfHour(observed_at, '{zone}')", "d": "toStartOfDay(observed_at, '{zone}')"}


class End(StrEnum):
    """Where the range of a page ends."""

    LAST_SECOND = "to the last second of a bucket"
    ROUND = "to a round hour or day"
    RANDOM = "to a random second"


@dataclass(frozen=True, slots=True)
class Page:
    """BUCKETS hours or days of a zone; `end` is the end of the last one, and `ahead` how many seconds before it, or
    after it, the range ends. It begins so many seconds `into` the first one, which makes no other points."""

    period: str
    zone: str
    start: datetime
    end: datetime
    ahead: int = 1
    into: int = 0

    @property
    def path(self) -> str:
        """The service's path of the page, over all assets."""
        bounds = {"start": int(self.start.timestamp()) + self.into, "end": int(self.end.timestamp()) - self.ahead}
        rest = {"period": self.period, "tz": self.zone, "limit": BUCKETS}
        return f"/api/v1/assets/price-history?{urlencode({**bounds, **rest})}"

    def sql(self, *, filled: bool) -> str:
        """The straightforward SQL: `filled` for the same page, else for those of its buckets that hold something."""
        bounds = {"start": int(self.start.timestamp()), "end": int(self.end.timestamp())}
        fill = _FILL.format(zone=self.zone, unit=_UNIT[self.period], **bounds) if filled else ""
        return _SQL.format(bucket=_BUCKET[self.period].format(zone=self.zone), fill=fill, **bounds)

    def ask(self, victoria: VictoriaMetrics, query: str = "price") -> bytes:
        """VictoriaMetrics' answer for the last second of each bucket; where clocks change, days are 24 hours to it."""
        step = _SECONDS[self.period]
        last = int(self.end.timestamp()) - self.ahead
        return victoria.page(last - (BUCKETS - 1) * step, last, step, query)

    def ask_four(self, victoria: VictoriaMetrics) -> None:
        """Its answers for the first, greatest, least and last price in each bucket."""
        step = _SECONDS[self.period]
        for name in ("first", "max", "min", "last"):
            self.ask(victoria, f"{name}_over_time(price[{step}s])")


def draw(
    seed: str, period: str, to: End = End.LAST_SECOND, zones: Sequence[str] = _ZONES, since: datetime = _RECENT
) -> Callable[[int], Page]:
    """A page for each number: the same for all who ask, another for every number and seed; in any of some `zones`, and
    nowhere before an instant.

    Drawing one loads its zone from a file, so pages are kept, and drawn before anything is measured.

    One that ends at a round hour or day begins a bucket later, because its last bucket is one second long.
    """
    width = timedelta(seconds=BUCKETS * _SECONDS[period])

    @cache
    def page(number: int) -> Page:
        chance = random.Random(f"{seed} {period} {number}")
        zone, into = chance.choice(zones), chance.randrange(3600)
        free = int((_LAST - since - width).total_seconds() // 3600)
        # Every other page ends with the newest day or so, as if it were now.
        ago = chance.randrange(free) if number % 2 else chance.randrange(24)
        local = (_LAST - width - timedelta(hours=ago)).astimezone(ZoneInfo(zone))
        start = local.replace(minute=0) if period == "h" else local.replace(hour=0, minute=0)
        end = start.astimezone(UTC) + width if period == "h" else start + width
        if to is End.ROUND:
            following = timedelta(hours=1) if period == "h" else timedelta(days=1)
            start = (
                (start.astimezone(UTC) + following).astimezone(ZoneInfo(zone)) if period == "h" else start + following
            )
            return Page(period, zone, start, end, 0, into)
        return Page(period, zone, start, end, chance.randrange(1, 3600) if to is End.RANDOM else 1, into)

    return page


def run(bench: Bench) -> Iterator[Figure]:
    """Pages of 200 hourly and 200 daily buckets over all assets, never the same twice, on one worker: what people ask,
    and then, on another worker, of all zones and times. What the first pages after a start cost, `first_page` measures.
    """
    with bench.real_prices() as settings, gunicorn(settings) as service, connection(service.url) as ask:
        yield ask_in_all_zones(ask)
        for period in ("h", "d"):
            yield from _against_clickhouse(draw(f"{bench.seed} clickhouse", period), ask, settings)
        with victoria_metrics() as victoria:
            rows = victoria.take_prices(settings)
            yield Figure("rows that VictoriaMetrics was given", rows, "rows", at_least=1)
            for period in ("h", "d"):
                for to in End:
                    yield from _against_victoria(
                        draw(f"{bench.seed} {to}", period, to), ask, victoria, to, _BARS[period]
                    )
                yield from _four_against_victoria(draw(f"{bench.seed} ohlc", period), ask, victoria)
                yield from _least(settings, draw(f"{bench.seed} http", period), ask, victoria)
            with gunicorn(settings) as anew, connection(anew.url) as ask_anew:
                for period in ("h", "d"):
                    page = draw(f"{bench.seed} everywhere", period, zones=zone_names(), since=_FIRST)
                    yield from _against_victoria(page, ask_anew, victoria, "of all zones and times", bar=None)


def ask_in_all_zones(ask: Callable[..., bytes]) -> Figure:
    """A small page in every zone, twice. The first one in a zone loads its rules, once in the life of a worker."""

    def path(number: int, start: int) -> str:
        at = start + _SECONDS["h"] * number
        query = {"start": at, "end": at, "period": "h", "tz": zone_names()[number]}
        return f"/api/v1/assets/price-history?{urlencode(query)}"

    first, middle = int(_FIRST.timestamp()), int((_FIRST + (_LAST - _FIRST) / 2).timestamp())
    calls = {"first": lambda number: ask(path(number, first)), "next": lambda number: ask(path(number, middle))}
    medians = in_turns(calls, len(zone_names()), warm_up=0)
    return Figure("1 h: the first page in a zone to the next one", medians["first"] / medians["next"], "x")


def _against_victoria(
    page: Callable[[int], Page], ask: Callable[..., bytes], victoria: VictoriaMetrics, what: str, bar: float | None
) -> Iterator[Figure]:
    label = f"200 {page(0).period} {what}"
    share = _points_alike(page(-100), ask, victoria)
    medians = in_turns(
        {"mine": lambda n: ask(page(n).path), "theirs": lambda n: page(n).ask(victoria)},
        _ROUNDS,
        warm_up=UNTIL_LOADED,
        before=page,
    )
    yield Figure(f"{label}: points of VictoriaMetrics' answer to one of ours", share, "x", at_least=_ALIKE)
    yield Figure(f"{label}: median", medians["mine"] * 1000, "ms")
    yield Figure(f"{label}: VictoriaMetrics' median", medians["theirs"] * 1000, "ms")
    yield Figure(f"{label}: to VictoriaMetrics'", medians["mine"] / medians["theirs"], "x", at_most=bar)


def _four_against_victoria(
    page: Callable[[int], Page], ask: Callable[..., bytes], victoria: VictoriaMetrics
) -> Iterator[Figure]:
    label, bar = f"200 {page(0).period} of ohlc", _BARS_OF_CANDLES[page(0).period]
    calls = {"mine": lambda n: ask(f"{page(n).path}&agg=ohlc"), "theirs": lambda n: page(n).ask_four(victoria)}
    medians = in_turns(calls, _ROUNDS, warm_up=UNTIL_LOADED, before=page)
    yield Figure(f"{label}: median", medians["mine"] * 1000, "ms")
    yield Figure(f"{label}: to VictoriaMetrics' four queries", medians["mine"] / medians["theirs"], "x", at_most=bar)


def _least(
    settings: Settings, page: Callable[[int], Page], ask: Callable[..., bytes], victoria: VictoriaMetrics
) -> Iterator[Figure]:
    """What every format costs at least: a page of one bucket, and a bare Falcon application that answers as many bytes
    as an Arrow page has."""
    path = f"/{len(ask(f'{page(-100).path}&format=arrow'))}"
    bare = gunicorn(settings, "tests.benchmarks.bare:app", path, BENCHMARK_SIZES=path[1:])
    with bare as service, connection(service.url) as ask_bare:
        calls = {
            "bare Falcon, as many bytes as in Arrow": lambda n: ask_bare(path),
            "a page of one bucket": lambda n: ask(f"{page(n).path}&offset={BUCKETS - 1}"),
            "theirs": lambda n: page(n).ask(victoria),
        }
        medians = in_turns(calls, _ROUNDS, warm_up=20, before=page)
    theirs = medians.pop("theirs")
    for name, median in medians.items():
        yield Figure(f"200 {page(0).period}: {name}, to VictoriaMetrics'", median / theirs, "x")


def _points_alike(page: Page, ask: Callable[..., bytes], victoria: VictoriaMetrics) -> float:
    """Points that VictoriaMetrics answers for each of ours. RuntimeError when one has other series than real prices."""
    ours = [
        sum(point["v"] is not None for point in one["points"]) for one in json.loads(ask(page.path))["data"]["series"]
    ]
    series, points = count_points(page.ask(victoria))
    if len(ours) != _SERIES or not 0 < series <= _SERIES:
        raise RuntimeError(f"{page} has {len(ours)} series here and {series} there, of {_SERIES}.")
    return points / sum(ours)


def _against_clickhouse(page: Callable[[int], Page], ask: Callable[..., bytes], settings: Settings) -> Iterator[Figure]:
    label = f"200 {page(0).period}, {_SERIES} series"
    path = sql_path(settings)
    with connection(settings.clickhouse_url or "") as sql:
        medians = in_turns(
            {
                "mine": lambda n: ask(page(n).path),
                "SQL for the same page": lambda n: sql(path, page(n).sql(filled=True)),
                "SQL for its filled buckets": lambda n: sql(path, page(n).sql(filled=False)),
            },
            rounds=40,
            before=page,
        )
    mine = medians.pop("mine")
    for name, median in medians.items():
        yield Figure(f"{label}: ClickHouse's JSON, {name}, median", median * 1000, "ms")
        yield Figure(f"{label}: to ClickHouse's JSON, {name}", mine / median, "x")


@cache
def zone_names() -> list[str]:
    """Every zone that is named after a place, in order."""
    return sorted(zone for zone in available_timezones() if zone.partition("/")[0] in _REGIONS)
