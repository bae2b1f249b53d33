"""Bytes of stored prices: compared with VictoriaMetrics, of cells compared with the raw table, and by codec."""

from collections.abc import Iterator
from contextlib import closing

from clickhouse_connect.driver.client import Client

from analytics_service.config.settings import Settings
from analytics_service.embedded.folder import DataFolder
from analytics_service.store.cells import close_cells
from analytics_service.store.connection import Store
from tests.benchmarks.bench import Bench
from tests.benchmarks.candidates import DECIMALS, WHOLE_NUMBERS, measure
from tests.benchmarks.harness import Figure
from tests.benchmarks.minutes import HOURLY, IMPORT, JOBS, NOISE, WALK, insert_prices
from tests.benchmarks.victoria import disk_usage, victoria_metrics
from tests.clickhouse import client

# A quarter of 2022, which begins and ends with whole cells.
_BEGIN, _DAYS, _ASSETS = 1_640_995_200, 90, 20
# Prices of every minute: how they move, who wrote them, and the bound of their cells. Repeated prices of one version
# take hardly any room by themselves; no bound can be kept against that.
_KINDS = {
    "two decimals, by jobs": (WALK, JOBS, 0.3),
    "two decimals, imported": (WALK, IMPORT, 0.6),
    "18 decimals at random, by jobs": (NOISE, JOBS, 0.35),
    "changing once an hour, by jobs": (HOURLY, JOBS, 0.3),
    "changing once an hour, imported": (HOURLY, IMPORT, None),
}
_CODECS = {
    "observation": {"value": DECIMALS, "observed_at": WHOLE_NUMBERS},
    "cell": {
        **dict.fromkeys(["open", "high", "low", "close"], DECIMALS),
        "area": DECIMALS,
        **dict.fromkeys(["cell", "first_at", "last_at", "count", "version"], WHOLE_NUMBERS),
    },
}
_BYTES = """
SELECT sum(rows), sum(data_compressed_bytes), sum(bytes_on_disk)
FROM system.parts
WHERE active AND database = currentDatabase() AND table = {table:String}
"""
_FOLDERS = """
SELECT path
FROM system.parts
WHERE active AND database = currentDatabase() AND table = 'observation'
"""


def run(bench: Bench) -> Iterator[Figure]:
    """Bytes per row after all merges. Real prices count as the table holds them: whole seconds, no repeats."""
    for name, (price, version, bar) in _KINDS.items():
        with bench.database("minutes") as settings, client(settings) as made:
            insert_prices(made, _ASSETS, _BEGIN, 60, _DAYS * 1_440, price, version)
            with closing(Store(settings)) as store:
                close_cells(store, ["price"], _BEGIN - 1, _BEGIN + _DAYS * 86_400 - 1)
            yield from _share_of_cells(made, f"minutes, {name}", bar)
            if version == JOBS and price == WALK:
                yield from measure(made, "observation", "version", WHOLE_NUMBERS, "minutes, by jobs")
    with bench.real_prices() as settings, client(settings) as real:
        for table, columns in _CODECS.items():
            for column, codecs in columns.items():
                yield from measure(real, table, column, codecs, "real prices")
        yield from _against_victoria(settings, real)


def _against_victoria(settings: Settings, real: Client) -> Iterator[Figure]:
    rows, data, _ = merged(real, "observation")
    folder = DataFolder(settings.data_dir).server
    ours = sum(disk_usage(folder / path) for (path,) in real.query(_FOLDERS).result_rows)
    with victoria_metrics() as victoria:
        stored = victoria.take_prices(settings)
        victoria.merge()
        their_data, theirs = victoria.data_bytes(), victoria.disk_usage()
    if stored != rows:
        raise RuntimeError(f"VictoriaMetrics has {stored:,} rows of {rows:,}.")
    yield Figure("real prices, raw table: du of its parts", ours / rows, "bytes/row")
    yield Figure("real prices, VictoriaMetrics: du of its data folder", theirs / rows, "bytes/row")
    yield Figure("real prices, raw table: to VictoriaMetrics'", ours / theirs, "x", at_most=1.0)
    yield Figure("real prices, raw table: data_compressed_bytes", data / rows, "bytes/row")
    yield Figure("real prices, VictoriaMetrics: vm_data_size_bytes", their_data / rows, "bytes/row")
    yield Figure("real prices, raw table: data alone to VictoriaMetrics'", data / their_data, "x")


def _share_of_cells(made: Client, label: str, bar: float | None) -> Iterator[Figure]:
    rows, _, disk = merged(made, "observation")
    _, _, cells = merged(made, "cell")
    yield Figure(f"{label}: bytes_on_disk", disk / rows, "bytes/row")
    yield Figure(f"{label}: cells' to raw table's", cells / disk, "x", at_most=bar)


def merged(asked: Client, table: str) -> tuple[int, int, int]:
    """Rows, compressed bytes of data, and bytes on disk of a table whose parts are all merged first."""
    asked.command(f"OPTIMIZE TABLE {table} FINAL")
    rows, data, disk = asked.query(_BYTES, parameters={"table": table}).result_rows[0]
    return rows, data, disk
