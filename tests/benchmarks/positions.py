"""Positions of a million addresses: what a snapshot and the risk of all cost, and the rows that a lookup reads as
ClickHouse counts them."""

import random
import statistics
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from hashlib import sha256
from multiprocessing import get_context
from pathlib import Path
from typing import cast

from clickhouse_connect.driver.client import Client

from analytics_service.clickhouse.connection import Store
from analytics_service.config.settings import Settings
from analytics_service.market.positions import (
    Account,
    Balance,
    Holding,
    LendPosition,
    Position,
    Stake,
)
from analytics_service.sources.simulated.source import SimulatedSource
from analytics_service.store.datasets.positions import read_position
from analytics_service.store.ledger import read_heads
from jobs.registry import JOBS
from jobs.runner import take_snapshot
from tests.benchmarks.bench import Bench
from tests.benchmarks.gunicorn import gunicorn, high_water
from tests.benchmarks.harness import Figure, connection
from tests.clickhouse import client

_MOST_MEMORY = 1_000
_NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
_EVERY = timedelta(minutes=5)
_LOOKUPS = 200


class Crowd(SimulatedSource):
    """Addresses with three to four items each, in assets of the simulated protocol; one in a hundred changes from one
    snapshot to the next."""

    def __init__(self, addresses: int) -> None:
        super().__init__("1")
        self.addresses = addresses
        decimals = {asset.id: asset.decimals_denom for asset in self.assets(_NOON)}
        self._units = {
            price.asset_id: 10 ** decimals[price.asset_id] / float(price.usd) for price in self.prices(_NOON)
        }
        markets = [market for market in self.markets(_NOON) if market.asset_id in self._units]
        self._collaterals = [market.asset_id for market in markets if market.collateral]
        self._debts = [market.asset_id for market in markets if market.debt]

    def positions(self, at: datetime) -> Iterable[Position]:
        """All positions, generated while they are read."""
        tick = int((at - _NOON) / _EVERY)
        return (self.position(number, tick) for number in range(self.addresses))

    def position(self, number: int, tick: int) -> Position:
        """A position that changes at one tick in a hundred, which depends on its number. Two of three owe up to 72 % of
        their collateral, the others stake."""
        changes = (tick + 99 - number % 100) // 100
        held, owed = self._collaterals[number % len(self._collaterals)], self._debts[number // 7 % len(self._debts)]
        usd = 10 + number * 7_919 % 100_000
        debt = usd * (0.1 + number * 104_729 % 1_000 / 1_000 * 0.62) * self._units[owed]
        account = Account(0, (Holding(held, int(usd * self._units[held])),), (Holding(owed, int(debt) + changes),))
        return Position(
            crowd_address(number),
            accounts=(account,) if number % 3 else (),
            lends=(LendPosition(owed, 10**12 + number, 0),),
            wallet=(Balance(held, number),),
            stakes=(Stake(0, 0, number, False, None, Decimal(changes)),) if number % 3 == 0 else (),
        )


def crowd_address(number: int) -> str:
    """An address; addresses are not in the order of their numbers."""
    return "0x" + sha256(str(number).encode()).hexdigest()[:40]


def run(bench: Bench) -> Iterator[Figure]:
    """A first snapshot, further ones, the risk of all, and lookups."""
    with bench.database("positions") as settings, client(settings) as own, closing(Store(settings)) as store:
        crowd = Crowd(bench.addresses)
        yield from _snapshots(settings, store, own, crowd)
        yield from _risk(settings, crowd)
        # As if the minutes had passed in which ClickHouse merges parts; each of them is read from.
        own.command("OPTIMIZE TABLE position_change FINAL")
        since = own.query("SELECT now64(6)").result_rows[0][0]
        label = _label(crowd)
        yield Figure(f"{label}: lookup, median", _lookups(store, crowd) * 1000, "ms")
        median, most = _read_rows(own, since)
        yield Figure(f"{label}: lookup, median read_rows", median, "rows", at_most=2_000)
        yield Figure(f"{label}: lookup, most read_rows", most, "rows", at_most=4_000)


def _label(crowd: Crowd) -> str:
    return f"positions of {crowd.addresses:,} addresses"


def _snapshots(settings: Settings, store: Store, own: Client, crowd: Crowd) -> Iterator[Figure]:
    """Seconds, without those in which the positions are made up, rows, disk, and memory of the scheduler."""
    label, begun = _label(crowd), time.perf_counter()
    for _ in crowd.positions(_NOON):
        pass
    made_up = time.perf_counter() - begun
    for name in ("prices", "markets", "ptoken"):
        take_snapshot(JOBS[name], crowd, store, _NOON)
    peak = 0
    for tick, what in enumerate(("first snapshot", "the next, 1 % changed", "the next, 1 % changed")):
        before = _on_disk(own)
        # A process of its own has its own peak.
        with ProcessPoolExecutor(1, get_context("spawn")) as pool:
            seconds, memory = pool.submit(_taken, settings, crowd.addresses, tick).result()
        peak = max(peak, memory)
        yield Figure(f"{label}: {what}", seconds - made_up, "s")
        rows, size = (now - then for now, then in zip(_on_disk(own), before, strict=True))
        yield Figure(f"{label}: rows of it", rows, "rows")
        yield Figure(f"{label}: disk of it", size / 2**20, "MiB")
    yield Figure(f"{label}: peak memory of the scheduler", peak / 2**20, "MiB", at_most=_MOST_MEMORY)


def _on_disk(own: Client) -> Sequence[int]:
    """Rows of items, and bytes of all that is stored of positions."""
    answer = own.query(
        "SELECT sumIf(rows, table = 'position_change'), sum(bytes_on_disk) FROM system.parts "
        "WHERE active AND database = currentDatabase() AND table LIKE 'position%'"
    )
    return cast(Sequence[int], answer.result_rows[0])


def _taken(settings: Settings, addresses: int, tick: int) -> tuple[float, int]:
    """Seconds of the snapshot of a tick, and the peak memory of this process."""
    with closing(Store(settings)) as store:
        return snapshot(store, Crowd(addresses), tick), high_water(Path("/proc/self"))


def _risk(settings: Settings, crowd: Crowd) -> Iterator[Figure]:
    """A new worker's first answer about all accounts, and its memory once it has answered for another snapshot."""
    label, path = _label(crowd), "/api/v1/analytics/market/risk"
    with gunicorn(settings) as service, connection(service.url) as ask:
        begun = time.perf_counter()
        ask(path)
        yield Figure(f"{label}: their risk, in a new worker", time.perf_counter() - begun, "s")
        ask("/api/v1/analytics/market/borrowers?sort=health")
        ask(f"/api/v1/users/{crowd_address(1)}/user")
        ask(f"{path}?at={int(_NOON.timestamp())}")
        memory = service.peak_memory() / 2**20
        yield Figure(f"{label}: peak memory of the worker", memory, "MiB", at_most=_MOST_MEMORY)


def snapshot(store: Store, source: Crowd, tick: int) -> float:
    """Seconds that the snapshot of a tick takes, including making the positions."""
    begun = time.perf_counter()
    take_snapshot(JOBS["positions"], source, store, _NOON + tick * _EVERY)
    return time.perf_counter() - begun


def _lookups(store: Store, crowd: Crowd) -> float:
    """Median seconds of lookups."""
    head = read_heads(store)["positions"]
    taken = []
    for number in random.Random(1).sample(range(crowd.addresses), _LOOKUPS):
        begun = time.perf_counter()
        found = read_position(store, crowd_address(number), head.at)
        taken.append(time.perf_counter() - begun)
        if found != crowd.position(number, 2):
            raise RuntimeError(f"{found} is not what was stored.")
    return statistics.median(taken)


def _read_rows(own: Client, since: datetime) -> tuple[float, int]:
    """The median and the greatest number of rows that lookups have read since an instant, as ClickHouse logged them."""
    own.command("SYSTEM FLUSH LOGS")
    answer = own.query(
        """
        SELECT medianExact(read_rows), max(read_rows), count()
        FROM system.query_log
        WHERE type = 'QueryFinish' AND log_comment = 'list_position_items' AND current_database = currentDatabase()
          AND event_time_microseconds >= {since:DateTime64(6, 'UTC')}
        """,
        parameters={"since": since},
    )
    median, most, count = answer.result_rows[0]
    if count != _LOOKUPS:
        raise RuntimeError(f"ClickHouse logged {count} lookups of {_LOOKUPS}.")
    return median, most
