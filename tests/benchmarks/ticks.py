"""The cost of snapshots: prices of 1,000 assets, and positions of 100,000 accounts of which 1 % changed."""

import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from statistics import median

from clickhouse_connect.driver.client import Client

from analytics_service.clickhouse.connection import Store
from analytics_service.market.assets import Asset, AssetGroup
from analytics_service.market.prices import Price
from analytics_service.sources.simulated.source import SimulatedSource
from jobs.registry import JOBS
from jobs.runner import take_snapshot
from tests.benchmarks.bench import Bench
from tests.benchmarks.harness import Figure
from tests.benchmarks.positions import Crowd, snapshot
from tests.clickhouse import client

_ASSETS, _ADDRESSES = 1_000, 100_000
_NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
_TICKS = 5
_MOST_SECONDS, _MOST_STATEMENTS = 1.5, 5
_STATEMENTS = """
SELECT count()
FROM system.query_log
WHERE type = 'QueryFinish' AND current_database = currentDatabase()
  AND event_time_microseconds BETWEEN {since:DateTime64(6, 'UTC')} AND {until:DateTime64(6, 'UTC')}
"""


class Exchange(SimulatedSource):
    """A source of assets, each with a different price at every tick."""

    def __init__(self, count: int) -> None:
        super().__init__("1")
        keys = [f"0x{number:040x}" for number in range(count)]
        self._assets = [Asset(AssetGroup.TOKEN, key, key, key[-4:], key[-4:], 18, 4) for key in keys]

    def assets(self, at: datetime) -> Sequence[Asset]:
        """The same at every instant."""
        return self._assets

    def prices(self, at: datetime) -> Sequence[Price]:
        """With 18 decimals."""
        moved = Decimal(int(at.timestamp())).scaleb(-18)
        return [Price(asset.id, at, number + moved) for number, asset in enumerate(self._assets, 1)]


def run(bench: Bench) -> Iterator[Figure]:
    """Medians of ticks after the first one, including the time that the source takes."""
    with bench.database("ticks") as settings, client(settings) as own, closing(Store(settings)) as store:
        exchange, crowd = Exchange(_ASSETS), Crowd(_ADDRESSES)
        minutes = [_NOON + tick * timedelta(minutes=1) for tick in range(_TICKS + 1)]
        prices = [snapshot_prices(store, exchange, at) for at in minutes[:-1]]
        counted = statements(store, own, exchange, minutes[-1])
        yield Figure("statements of a tick of prices", counted, "", at_most=_MOST_STATEMENTS)
        positions = [snapshot(store, crowd, tick) for tick in range(_TICKS)]
    price, position = median(prices[1:]), median(positions[1:])
    yield Figure(f"tick of {_ASSETS:,} prices, median", price, "s")
    yield Figure(f"first tick of {_ADDRESSES:,} positions", positions[0], "s")
    yield Figure(f"tick of {_ADDRESSES:,} positions, 1 % changed, median", position, "s")
    yield Figure("both ticks together", price + position, "s", at_most=_MOST_SECONDS)


def snapshot_prices(store: Store, exchange: Exchange, at: datetime) -> float:
    """Seconds that the snapshot of an instant takes."""
    begun = time.perf_counter()
    take_snapshot(JOBS["prices"], exchange, store, at)
    return time.perf_counter() - begun


def statements(store: Store, own: Client, exchange: Exchange, at: datetime) -> int:
    """Statements of the snapshot of an instant."""
    since = own.query("SELECT now64(6)").first_row[0]
    snapshot_prices(store, exchange, at)
    until = own.query("SELECT now64(6)").first_row[0]
    own.command("SYSTEM FLUSH LOGS")
    # One of them is the query for `since`, which ends after that instant.
    return int(own.query(_STATEMENTS, parameters={"since": since, "until": until}).first_row[0]) - 1
