"""How fast price files are imported, compared with ClickHouse reading the same file by itself."""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from statistics import median

import polars as pl

from analytics_service.clickhouse.connection import Store
from analytics_service.config.settings import Settings
from tests import clickhouse
from tests.benchmarks.bench import Bench
from tests.benchmarks.harness import Figure

ROWS = 10_000_000
ASSETS = 40
# Two years and a month of observations for each asset.
STEP = 263
START = 1_609_459_200
REPEATS = 3


def run(bench: Bench) -> Iterator[Figure]:
    """Imports of the real prices, and of a generated file of ROWS rows, into empty tables."""
    with bench.database("ingest") as settings, tempfile.TemporaryDirectory() as made:
        own = replace(settings, query_timeout=600)
        with closing(Store(own)) as store:
            yield from _real(store, own, bench.folder)
            yield from _generated(store, own, Path(made))


def _real(store: Store, settings: Settings, folder: Path) -> Iterator[Figure]:
    arguments = [str(folder / "prices_hourly.csv.gz"), "--assets", str(folder / "assets.csv"), "--time-unit", "ms"]
    arguments += ["--time", "timestamp", "--asset-column", "symbol", "--value", "USD_price"]
    seconds = median(_import(store, settings, *arguments)[0] for _ in range(REPEATS))
    rows = pl.scan_csv(arguments[0]).select(pl.len()).collect().item()
    yield Figure("real file, whole process, median", rows / seconds, "rows/s", at_least=300_000)


def _generated(store: Store, settings: Settings, folder: Path) -> Iterator[Figure]:
    prices, assets = _generate(folder)
    # In turns, so that variations of the machine's speed affect both.
    runs = [
        (
            *_import(store, settings, str(prices), "--assets", str(assets)),
            _timed(store, lambda: _insert(settings, prices)),
        )
        for _ in range(2)
    ]
    seconds, kilobytes, _ = min(runs)
    peer = min(theirs for *_, theirs in runs)
    yield Figure(f"{ROWS:,} rows of CSV, whole process", ROWS / seconds, "rows/s")
    yield Figure("the same by ClickHouse's INSERT ... FORMAT CSV", ROWS / peer, "rows/s")
    yield Figure("time, as a multiple of ClickHouse's", seconds / peer, "x", at_most=3)
    yield Figure("peak memory of the import", kilobytes / 1024, "MiB", at_most=1536)


def _insert(settings: Settings, prices: Path) -> None:
    """Have ClickHouse read the file by itself, unchecked."""
    with clickhouse.client(settings) as own, prices.open("rb") as file:
        columns, header = ["asset_id", "observed_at", "value"], {"input_format_csv_skip_first_lines": 1}
        own.raw_insert("observation", columns, insert_block=file, settings=header, fmt="CSV")


def _generate(folder: Path) -> tuple[Path, Path]:
    """A price file of ROWS rows, asset by asset, and its assets file."""
    number = pl.int_range(ROWS, dtype=pl.Int64)
    per_asset = ROWS // ASSETS
    rows = pl.select(
        asset=pl.format("token;0x{}", (number // per_asset + 10**8).cast(pl.String)),
        time=START + number % per_asset * STEP,
        value=pl.format("{}.{}", number * 7919 % 3000, number * 104_729 % 10**9 + 10**9),
    )
    prices, assets = folder / "prices.csv", folder / "assets.csv"
    rows.write_csv(prices)
    lines = [f"S{n},0x{n + 10**8},18" for n in range(ASSETS)]
    assets.write_text("\n".join(["symbol,address,decimals", *lines]))
    return prices, assets


def _import(store: Store, settings: Settings, *arguments: str) -> tuple[float, int]:
    """Seconds, and peak KiB, of `import price` into empty tables; loading the libraries is part of both."""
    words = [sys.executable, "-m", "analytics_service.cli", "import", "price", *arguments]
    used: list[int] = []

    def act() -> None:
        child = subprocess.Popen(
            words, env=settings.to_environment(os.environ), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        _, status, usage = os.wait4(child.pid, 0)
        if status:
            raise RuntimeError(f"{words} ended with {status}.")
        used.append(usage.ru_maxrss)

    return _timed(store, act), used[0]


def _timed(store: Store, act: Callable[[], object]) -> float:
    """Seconds that filling the empty tables takes."""
    for table in ("observation", "rollup", "asset_definition", "snapshot", "snapshot_head"):
        store.execute(f"TRUNCATE TABLE {table} SYNC")
    begin = time.perf_counter()
    act()
    return time.perf_counter() - begin
