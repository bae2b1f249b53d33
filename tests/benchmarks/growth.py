"""Pages of a database of 100 million rows, compared with one of a million rows over the same range of time."""

import random
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from urllib.parse import urlencode

from analytics_service.history.page import MAX_POINTS
from tests.benchmarks.bench import Bench
from tests.benchmarks.gunicorn import Gunicorn, gunicorn
from tests.benchmarks.harness import Figure, connection, in_turns
from tests.benchmarks.minutes import fill
from tests.benchmarks.pages import BUCKETS, zone_names

_ASSETS = 50
_LARGE, _SMALL = 100_000_000, 1_000_000
_FIRST = int(datetime(2022, 1, 1, tzinfo=UTC).timestamp())
_MINUTE, _HOUR, _DAY = 60, 3_600, 86_400
# Seconds that a page spans: BUCKETS hours and days, twelve months, two years.
_SPANS = {"h": BUCKETS * _HOUR, "d": BUCKETS * _DAY, "m": 365 * _DAY, "y": 730 * _DAY}
_PLACES = {"start": 0.0, "middle": 0.5, "end": 1.0}
# Pages at one of these places begin somewhere in this part of what they may begin in.
_AROUND = 0.05
_ROUNDS, _WARM_UP = 40, 40
_BAR = 1.3
_MOST_MEMORY = 350
_PAUSE_SECONDS = 2
_NOTHING_KEPT = {"ANALYTICS_ANSWER_MEMORY": "0"}
_AT_ONCE = 4

_Ask = Callable[[str], bytes]
_Path = Callable[[int], str]


def run(bench: Bench) -> Iterator[Figure]:
    """Medians of many different pages, asked of a gunicorn for each database in turns; the worker's peak memory."""
    total = bench.rows or _LARGE
    span = total // _ASSETS * _MINUTE
    with bench.database("large") as many, bench.database("small") as few:
        begun = time.monotonic()
        fill(many, _ASSETS, _FIRST, _MINUTE, span // _MINUTE)
        yield Figure(f"{total:,} rows, from the first INSERT to the last merge", time.monotonic() - begun, "s")
        step = total // _SMALL * _MINUTE
        fill(few, _ASSETS, _FIRST, step, span // step)
        kinds = _kinds(bench, span)
        # Nothing that is rendered is kept: which parts of a page happened to be there would decide.
        with (
            gunicorn(many, **_NOTHING_KEPT) as large,
            gunicorn(few, **_NOTHING_KEPT) as small,
            connection(large.url) as ours,
            connection(small.url) as theirs,
        ):
            for label, (path, bar) in kinds.items():
                yield from _grown(ours, theirs, label, path, bar)
            yield from _offsets(ours, bench, span)
        with gunicorn(many) as large:
            with connection(large.url) as ask:
                for path, _ in kinds.values():
                    for number in range(_WARM_UP):
                        ask(path(number))
            yield _memory(large, "after all these pages")
            _ask_largest(large, bench, span)
            yield _memory(large, f"after the largest pages, {_AT_ONCE} at once")


def _kinds(bench: Bench, span: int) -> dict[str, tuple[_Path, float | None]]:
    """The kinds of pages that are asked for, each with its bound."""
    kinds: dict[str, tuple[_Path, float | None]] = {
        f"{period} at the {place}": (_page(bench, period, span, place, _HOUR), _BAR)
        for period in _SPANS
        for place in _PLACES
    }
    kinds |= {f"{period}, ending at any second": (_page(bench, period, span, "middle", 1), _BAR) for period in _SPANS}
    for agg in ("first", "min", "max", "mean", "ohlc"):
        for period in ("h", "d"):
            kinds[f"{period}, {agg}"] = _aggregated(_page(bench, period, span, "middle", _HOUR), agg), _BAR
    for agg in ("last", "ohlc"):
        kinds[f"days from any minute on, {agg}"] = _aggregated(_days_from_any_minute(bench, span), agg), None
    return kinds


def _page(bench: Bench, period: str, span: int, place: str, end_step: int) -> _Path:
    """Paths of pages that lie near a place of the range, another one for each number.

    They begin at any second, and end a second before a multiple of `end_step` seconds.
    """
    width = min(_SPANS[period], span // 2)
    free = span - width

    def path(number: int) -> str:
        chance = random.Random(f"{bench.seed} {period} {place} {number}")
        begin = _FIRST + int(free * (_PLACES[place] * (1 - _AROUND) + _AROUND * chance.random()))
        end = (begin + width) // end_step * end_step - 1
        return _history(period, chance.choice(zone_names()), begin, end, 0)

    return path


def _aggregated(path: _Path, agg: str) -> _Path:
    return lambda number: f"{path(number)}&agg={agg}"


def _days_from_any_minute(bench: Bench, span: int) -> _Path:
    """Paths of pages that are read from the store, because their buckets begin within quarters of an hour."""

    def path(number: int) -> str:
        chance = random.Random(f"{bench.seed} minutes {number}")
        begin = _FIRST + int((span - BUCKETS * _DAY) * chance.random()) // _HOUR * _HOUR + _MINUTE
        return _history("min", "UTC", begin, begin + BUCKETS * _DAY - 1, 0) + f"&interval={_DAY // _MINUTE}"

    return path


def _history(period: str, zone: str, start: int, end: int, offset: int, limit: int = BUCKETS) -> str:
    query = {"start": start, "end": end, "period": period, "tz": zone, "limit": limit, "offset": offset}
    return f"/api/v1/assets/price-history?{urlencode(query)}"


def _grown(ours: _Ask, theirs: _Ask, label: str, path: _Path, bar: float | None) -> Iterator[Figure]:
    calls = {"ours": lambda n: ours(path(n)), "theirs": lambda n: theirs(path(n))}
    medians = in_turns(calls, _ROUNDS, _WARM_UP, before=pause)
    yield Figure(f"{label}: median of the large one", medians["ours"] * 1000, "ms")
    yield Figure(f"{label}: to that of {_SMALL:,} rows", medians["ours"] / medians["theirs"], "x", at_most=bar)


def pause(number: int) -> None:
    """Workers load what the warm-up asked for beside the pages, and take a second or two."""
    if number == 0:
        time.sleep(_PAUSE_SECONDS)


def _memory(service: Gunicorn, when: str) -> Figure:
    memory = service.peak_memory() / 2**20
    return Figure(f"peak memory of the large one's worker {when}", memory, "MiB", at_most=_MOST_MEMORY)


def _ask_largest(service: Gunicorn, bench: Bench, span: int) -> None:
    """Pages of as many points as there may be, or as the range has, several at a time."""
    buckets = min(MAX_POINTS // _ASSETS, span // _HOUR)

    def ask(number: int) -> None:
        chance = random.Random(f"{bench.seed} largest {number}")
        start = _FIRST + int((span - buckets * _HOUR) * chance.random())
        path = _history("h", chance.choice(zone_names()), start, start + buckets * _HOUR - 1, 0, buckets)
        with connection(service.url) as get:
            get(path)

    with ThreadPoolExecutor(_AT_ONCE) as pool:
        list(pool.map(ask, range(4 * _AT_ONCE)))


def _offsets(ask: _Ask, bench: Bench, span: int) -> Iterator[Figure]:
    """The first and the last full page of hourly grids over nearly all of the range."""
    last = (int(span * (1 - _AROUND)) // _HOUR // BUCKETS - 1) * BUCKETS

    def path(number: int, offset: int) -> str:
        chance = random.Random(f"{bench.seed} offsets {number}")
        start = _FIRST + int(span * _AROUND * chance.random())
        return _history("h", chance.choice(zone_names()), start, _FIRST + span - 1, offset)

    medians = in_turns({"first": lambda n: ask(path(n, 0)), "last": lambda n: ask(path(n, last))}, _ROUNDS, _WARM_UP)
    slower, faster = max(medians.values()), min(medians.values())
    yield Figure("h: median at offset 0", medians["first"] * 1000, "ms")
    yield Figure(f"h: median at offset {last:,}", medians["last"] * 1000, "ms")
    yield Figure("h: the slower to the faster of both", slower / faster, "x", at_most=_BAR)
