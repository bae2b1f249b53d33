"""How fast price files are imported, beside ClickHouse reading the same file by itself.

`python -m tests.benchmarks.ingest [FOLDER]` starts a ClickHouse of its own; FOLDER holds the real data, if any.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import polars as pl

from analytics_service.config import Settings
from analytics_service.store.connection import Store
from analytics_service.store.embedded import clickhouse
from analytics_service.store.migrations import migrate
from tests.benchmarks.harness import Figure

ROWS = 10_000_000
ASSETS = 40
# Two years and a month of observations for each asset.
STEP = 263
START = 1_609_459_200
REPEATS = 3

# A process of its own, as the command is: its time includes loading the libraries, its memory is its own.
IMPORT = """
import json, os, resource, sys
from datetime import UTC, datetime
from pathlib import Path
from analytics_service.config import Settings
from analytics_service.importing import import_prices
from analytics_service.store.connection import Store

class Silent:
    def stage(self, label, total): pass
    def advance(self, count): pass

prices, assets, unit = sys.argv[1:]
store = Store(Settings.from_environment(os.environ))
summary = import_prices(store, [Path(prices)], Path(assets), unit, False, datetime.now(UTC), Silent())
print(json.dumps([summary.read, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss]))
"""

PEER = """
INSERT INTO price
SELECT asset_id, toDateTime(ts, 'UTC'), price, 1
FROM file('{path}', 'CSVWithNames', 'asset_id String, ts UInt32, price Decimal(38, 18)')
"""


def run(settings: Settings, folder: Path | None) -> list[Figure]:
    """Figures of imports into a database that is made, emptied and dropped here. `folder` holds the real data."""
    own = replace(settings, clickhouse_database="benchmark_ingest", query_timeout=600)
    store = Store(own)
    migrate(store)
    try:
        with tempfile.TemporaryDirectory() as made:
            real = _real(store, own, folder) if folder else []
            return real + _generated(store, own, Path(made))
    finally:
        store.execute_outside_database(f"DROP DATABASE IF EXISTS {store.database} SYNC")
        store.close()


def _real(store: Store, settings: Settings, folder: Path) -> list[Figure]:
    prices, assets = folder / "prices_hourly.csv.gz", folder / "assets.csv"
    runs = [_import(store, settings, prices, assets, "ms") for _ in range(REPEATS)]
    rates = sorted(rows / seconds for rows, seconds, _ in runs)
    return [Figure("real file, whole process, median", rates[REPEATS // 2], "rows/s", at_least=300_000)]


def _generated(store: Store, settings: Settings, folder: Path) -> list[Figure]:
    prices, assets = _generate(folder)
    rows, seconds, kilobytes = min(
        (_import(store, settings, prices, assets, "s") for _ in range(2)), key=lambda r: r[1]
    )
    peer = min(_timed(store, lambda: store.execute(PEER.format(path=prices))) for _ in range(2))
    return [
        Figure(f"{rows:,} rows of CSV, whole process", rows / seconds, "rows/s"),
        Figure("the same by ClickHouse's INSERT ... FROM file()", rows / peer, "rows/s"),
        Figure("time, as a multiple of ClickHouse's", seconds / peer, "x", at_most=3),
        Figure("peak memory of the import", kilobytes / 1024, "MiB", at_most=1536),
    ]


def _generate(folder: Path) -> tuple[Path, Path]:
    """A price file of ROWS rows, asset by asset, and its assets file."""
    number = pl.int_range(ROWS, dtype=pl.Int64)
    per_asset = ROWS // ASSETS
    rows = pl.select(
        asset_id=pl.format("token;0x{}", (number // per_asset + 10**8).cast(pl.String)),
        ts=START + number % per_asset * STEP,
        price=pl.format("{}.{}", number * 7919 % 3000, number * 104_729 % 10**9 + 10**9),
    )
    prices, assets = folder / "prices.csv", folder / "assets.csv"
    rows.write_csv(prices)
    lines = [f"S{n},0x{n + 10**8},18" for n in range(ASSETS)]
    assets.write_text("\n".join(["symbol,address,decimals", *lines]))
    return prices, assets


def _import(store: Store, settings: Settings, prices: Path, assets: Path, unit: str) -> tuple[int, float, int]:
    """Rows, seconds and peak KiB of an import into empty tables."""
    words = [sys.executable, "-c", IMPORT, str(prices), str(assets), unit]
    environment = {**os.environ, **settings.to_environment()}
    said: list[bytes] = []
    seconds = _timed(store, lambda: said.append(subprocess.check_output(words, env=environment)))
    rows, kilobytes = json.loads(said[0])
    return rows, seconds, kilobytes


def _timed(store: Store, act: Callable[[], object]) -> float:
    """Seconds that filling the empty tables takes."""
    for table in ("price", "price_rollup", "asset", "snapshot"):
        store.execute(f"TRUNCATE TABLE {table} SYNC")
    begin = time.perf_counter()
    act()
    return time.perf_counter() - begin


def main() -> int:
    """Measure, print, and answer 1 when a bound is missed."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else None
    with (
        tempfile.TemporaryDirectory() as data,
        clickhouse(Settings(data_dir=Path(data)), "benchmark") as settings,
    ):
        figures = run(settings, folder)
    for figure in figures:
        print(figure)
    return 0 if all(figure.kept for figure in figures) else 1


if __name__ == "__main__":
    sys.exit(main())
