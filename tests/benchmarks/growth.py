"""Pages of a database of 100 million rows, compared with one of a million rows over the same range of time."""

import random
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import UTC, datetime
from urllib.parse import urlencode

from analytics_service.clickhouse.connection import Store
from analytics_service.config.settings import Settings
from analytics_service.history.page import MAX_POINTS
from analytics_service.market.assets import Asset, AssetGroup
from analytics_service.store.ledger import LEDGER, LedgerRow, ledger_frame, new_version
from analytics_service.store.rollups import close_rollups
from tests.benchmarks.bench import Bench
from tests.benchmarks.gunicorn import Gunicorn, gunicorn
from tests.benchmarks.harness import Figure, connection, in_turns
from tests.benchmarks.pages import BUCKETS
from tests.clickhouse import client
from tests.stored import write_assets

_ASSETS = 50
_LARGE, _SMALL = 100_000_000, 1_000_000
_FIRST = int(datetime(2022, 1, 1, tzinfo=UTC).timestamp())
_MINUTE, _HOUR, _DAY = 60, 3_600, 86_400
# Seconds that a page spans: BUCKETS hours and days, twelve months.
_SPANS = {"h": BUCKETS * _HOUR, "d": BUCKETS * _DAY, "m": 365 * _DAY}
_ZONES = ("UTC", "America/New_York", "Asia/Kolkata")
_ROUNDS, _WARM_UP = 40, 40
_BAR = 1.3
_MOST_MEMORY = 350
# Rendered answers would decide, by which parts of a page happen to be there.
_NOTHING_KEPT = {"ANALYTICS_ANSWER_MEMORY": "0"}
_AT_ONCE = 4
_ROWS_AT_ONCE = 2_000_000
# A price in cents moves at most ten from one observation to the next.
_INSERT = """
INSERT INTO observation (history, asset_id, observed_at, value, version)
SELECT
    'price' AS history,
    concat('token;0x', leftPad(lower(hex(number)), 40, '0')) AS asset_id,
    toDateTime({begin:UInt32} + {step:UInt32} * place, 'UTC') AS observed_at,
    reinterpret(
        toInt128(200000 + number * 76543 + walk) * toInt128('10000000000000000'),
        'Decimal(38, 18)'
    ) AS value,
    toUInt64({begin:UInt32} + {step:UInt32} * place) * 1000000000 AS version
FROM numbers({assets:UInt32})
ARRAY JOIN
    range({count:UInt32}) AS place,
    arrayCumSum(i -> toInt64(cityHash64(number, {begin:UInt32}, i) % 21) - 10, range({count:UInt32})) AS walk
"""

_Path = Callable[[int], str]


def run(bench: Bench) -> Iterator[Figure]:
    """Medians of many different pages, asked of a gunicorn for each database in turns; the worker's peak memory."""
    total = bench.rows or _LARGE
    span = total // _ASSETS * _MINUTE
    with bench.database("large") as many, bench.database("small") as few:
        begun = time.monotonic()
        _fill(many, _MINUTE, span // _MINUTE)
        yield Figure(f"{total:,} rows, from the first INSERT to the last rollup", time.monotonic() - begun, "s")
        step = total // _SMALL * _MINUTE
        _fill(few, step, span // step)
        with (
            gunicorn(many, **_NOTHING_KEPT) as large,
            gunicorn(few, **_NOTHING_KEPT) as small,
            connection(large.url) as ours,
            connection(small.url) as theirs,
        ):
            for label, path in _kinds(bench, span).items():
                calls = {"ours": lambda n, path=path: ours(path(n)), "theirs": lambda n, path=path: theirs(path(n))}
                medians = in_turns(calls, _ROUNDS, _WARM_UP)
                yield Figure(f"{label}: median of the large one", medians["ours"] * 1000, "ms")
                ratio = medians["ours"] / medians["theirs"]
                yield Figure(f"{label}: to that of {_SMALL:,} rows", ratio, "x", at_most=_BAR)
        with gunicorn(many) as large:
            _ask_largest(large, bench, span)
            memory = large.peak_memory() / 2**20
            what = f"peak memory of its worker after the largest pages, {_AT_ONCE} at once"
            yield Figure(what, memory, "MiB", at_most=_MOST_MEMORY)


def _kinds(bench: Bench, span: int) -> dict[str, _Path]:
    """The kinds of pages that are asked for: by unit, by where in the range they are, and by what summarizes them."""
    kinds = {f"{unit} at the end": _page(bench, unit, span, 1.0) for unit in _SPANS}
    kinds |= {f"{unit} in the middle": _page(bench, unit, span, 0.5) for unit in _SPANS}
    candles = _page(bench, "d", span, 0.5)
    return kinds | {"d in the middle, ohlc": lambda number: f"{candles(number)}&agg=ohlc"}


def _page(bench: Bench, unit: str, span: int, where: float) -> _Path:
    """Paths of pages that lie near a part of the range, another one for each number."""
    width = min(_SPANS[unit], span // 2)

    def path(number: int) -> str:
        chance = random.Random(f"{bench.seed} {unit} {where} {number}")
        begin = _FIRST + int((span - width) * (where * 0.95 + 0.05 * chance.random()))
        return _history(unit, chance.choice(_ZONES), begin, (begin + width) // _HOUR * _HOUR - 1, BUCKETS)

    return path


def _history(unit: str, zone: str, start: int, end: int, limit: int) -> str:
    query = {"start": start, "end": end, "period": unit, "tz": zone, "limit": limit}
    return f"/api/v1/assets/price-history?{urlencode(query)}"


def _ask_largest(service: Gunicorn, bench: Bench, span: int) -> None:
    """Pages of as many points as there may be, or as the range has, several at a time."""
    buckets = min(MAX_POINTS // _ASSETS, span // _HOUR)

    def ask(number: int) -> None:
        chance = random.Random(f"{bench.seed} largest {number}")
        start = _FIRST + int((span - buckets * _HOUR) * chance.random())
        with connection(service.url) as get:
            get(_history("h", chance.choice(_ZONES), start, start + buckets * _HOUR - 1, buckets))

    with ThreadPoolExecutor(_AT_ONCE) as pool:
        list(pool.map(ask, range(4 * _AT_ONCE)))


def _fill(settings: Settings, step: int, count: int) -> None:
    """Make `count` observations of each asset visible, `step` seconds apart, as an import would."""
    at_once = _ROWS_AT_ONCE // _ASSETS
    with closing(Store(settings)) as store, client(settings) as own:
        for done in range(0, count, at_once):
            values = {"begin": _FIRST + done * step, "step": step, "assets": _ASSETS}
            own.command(_INSERT, parameters={**values, "count": min(at_once, count - done)})
            rows = min(done + at_once, count) * _ASSETS
            print(f"\r{settings.clickhouse_database}: {rows:,} rows", end="", file=sys.stderr, flush=True)
        print(file=sys.stderr)
        version, last = new_version(store), _FIRST + (count - 1) * step
        close_rollups(store, ["price"], _FIRST, last + 1)
        write_assets(store, [_asset(number) for number in range(_ASSETS)], version)
        run = LedgerRow("prices", last, "import", _FIRST, last, count * _ASSETS, "benchmark", version)
        store.insert(LEDGER, ledger_frame([run]))


def _asset(number: int) -> Asset:
    return Asset(AssetGroup.TOKEN, f"0x{number:040x}", f"Asset {number}", f"A{number}", f"a{number}", 18, 4)
