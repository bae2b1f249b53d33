"""What a number of assets, addresses and years needs, as measured on this machine with data that is made up."""

from collections.abc import Iterator
from pathlib import Path

from analytics_service.clickhouse.running import require_running
from tests.benchmarks import growth, positions
from tests.benchmarks.bench import Bench
from tests.benchmarks.gunicorn import gunicorn, high_water
from tests.benchmarks.harness import Figure
from tests.clickhouse import client

_MINUTES_OF_YEAR = 365 * 24 * 60
# Prices that are really written; those of further minutes take as much each.
_MOST_ROWS = 20_000_000


def run(bench: Bench) -> Iterator[Figure]:
    """Prices a minute of all assets, then the positions of all addresses."""
    minutes = _MINUTES_OF_YEAR * bench.years
    written = min(minutes, max(_MOST_ROWS // bench.assets, 1_500))
    label = f"{bench.assets:,} prices of 18 decimals a minute, {bench.years} years"
    with bench.database("sizing") as settings, client(settings) as own:
        growth.fill(settings, bench.assets, 60, written, finer=10**16)
        (size,) = own.query(
            "SELECT sum(bytes_on_disk) FROM system.parts WHERE active AND database = currentDatabase()"
        ).first_row
        yield Figure(f"{label}: rows", bench.assets * minutes, "rows")
        yield Figure(f"{label}: disk, from {written:,} minutes", size / written * minutes / 2**30, "GiB")
        with gunicorn(settings) as service:
            growth.ask_largest(service, bench, written * 60, bench.assets)
            yield Figure("peak memory of a worker after the largest pages", service.peak_memory() / 2**20, "MiB")
    yield from positions.run(bench)
    server = require_running(bench.settings.data_dir).server
    yield Figure("peak memory of ClickHouse", high_water(Path(f"/proc/{server}")) / 2**20, "MiB")
