"""A million positions: the cost of a snapshot, and the rows that a lookup reads as ClickHouse counts them."""

import random
import statistics
import time
from collections.abc import Iterable, Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from hashlib import sha256

from clickhouse_connect.driver.client import Client

from analytics_service.market.positions import (
    Account,
    Balance,
    Holding,
    LendPosition,
    Position,
    Stake,
)
from analytics_service.sources.simulated.source import SimulatedSource
from analytics_service.store.connection import Store
from analytics_service.store.ledger import read_heads
from analytics_service.store.positions import read_position
from jobs.registry import JOBS
from jobs.runner import run_once
from tests.benchmarks.bench import Bench
from tests.benchmarks.harness import Figure
from tests.clickhouse import client

# A million positions: each address has three to four.
ADDRESSES = 275_000
_NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
_EVERY = timedelta(minutes=5)
_LOOKUPS = 200


class Crowd(SimulatedSource):
    """Addresses with three to four items each; one in a hundred changes from one snapshot to the next."""

    def __init__(self, addresses: int) -> None:
        super().__init__("1")
        self.addresses = addresses

    def positions(self, at: datetime) -> Iterable[Position]:
        """All positions, generated while they are read."""
        tick = int((at - _NOON) / _EVERY)
        return (crowd_position(number, tick) for number in range(self.addresses))


def crowd_address(number: int) -> str:
    """An address; addresses are not in the order of their numbers."""
    return "0x" + sha256(str(number).encode()).hexdigest()[:40]


def crowd_position(number: int, tick: int) -> Position:
    """A position that changes at one tick in a hundred, which depends on its number."""
    changes = (tick + 99 - number % 100) // 100
    assets = [f"token;0x{(number + offset) % 30:040x}" for offset in range(3)]
    account = Account(0, (Holding(assets[0], 10**18 + number),), (Holding(assets[1], 10**6 * number + changes),))
    return Position(
        crowd_address(number),
        accounts=(account,) if number % 3 else (),
        lends=(LendPosition(assets[2], 10**24 + number, 0),),
        wallet=(Balance(assets[0], number),),
        stakes=(Stake(0, 0, number, False, None, Decimal(changes)),) if number % 3 == 0 else (),
    )


def run(bench: Bench, addresses: int = ADDRESSES) -> Iterator[Figure]:
    """A first snapshot, further ones, and lookups."""
    with bench.database("positions") as settings, client(settings) as own, closing(Store(settings)) as store:
        yield from _measured(store, own, addresses)


def _measured(store: Store, own: Client, addresses: int) -> Iterator[Figure]:
    label = f"positions of {addresses:,} addresses"
    crowd = Crowd(addresses)
    begun = time.perf_counter()
    for _ in crowd.positions(_NOON):
        pass
    made_up = time.perf_counter() - begun
    yield Figure(f"{label}: first snapshot", snapshot(store, crowd, 0) - made_up, "s")
    yield Figure(f"{label}: the next, 1 % changed", snapshot(store, crowd, 1) - made_up, "s")
    yield Figure(f"{label}: the next, 1 % changed", snapshot(store, crowd, 2) - made_up, "s")
    yield Figure(f"{label}: rows of items", own.query("SELECT count() FROM position").result_rows[0][0], "rows")
    since = own.query("SELECT now64(6)").result_rows[0][0]
    yield Figure(f"{label}: lookup, median", _lookups(store, addresses) * 1000, "ms")
    median, most = _read_rows(own, since)
    yield Figure(f"{label}: lookup, median read_rows", median, "rows", at_most=2_000)
    yield Figure(f"{label}: lookup, most read_rows", most, "rows", at_most=4_000)


def snapshot(store: Store, source: Crowd, tick: int) -> float:
    """Seconds that the snapshot of a tick takes, including making the positions."""
    begun = time.perf_counter()
    run_once(JOBS["positions"], source, store, _NOON + tick * _EVERY)
    return time.perf_counter() - begun


def _lookups(store: Store, addresses: int) -> float:
    """Median seconds of lookups."""
    head = read_heads(store)["positions"]
    taken = []
    for number in random.Random(1).sample(range(addresses), _LOOKUPS):
        begun = time.perf_counter()
        found = read_position(store, crowd_address(number), head.at)
        taken.append(time.perf_counter() - begun)
        if found != crowd_position(number, 2):
            raise RuntimeError(f"{found} is not what was stored.")
    return statistics.median(taken)


def _read_rows(own: Client, since: datetime) -> tuple[float, int]:
    """The median and the greatest number of rows that lookups have read since an instant, as ClickHouse logged them."""
    own.command("SYSTEM FLUSH LOGS")
    answer = own.query(
        """
        SELECT medianExact(read_rows), max(read_rows), count()
        FROM system.query_log
        WHERE type = 'QueryFinish' AND log_comment = 'position_items' AND current_database = currentDatabase()
          AND event_time_microseconds >= {since:DateTime64(6, 'UTC')}
        """,
        parameters={"since": since},
    )
    median, most, count = answer.result_rows[0]
    if count != _LOOKUPS:
        raise RuntimeError(f"ClickHouse logged {count} lookups of {_LOOKUPS}.")
    return median, most
