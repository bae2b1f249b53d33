"""A million positions: the cost of a snapshot, and the rows that a lookup reads as ClickHouse counts them."""

import random
import statistics
import time
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from hashlib import sha256
from zlib import crc32

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
from analytics_service.store.ledger import Head, past_head, read_heads
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
# Later changes: each day one in so many addresses has another balance in its wallet. The ledger has a snapshot every
# five minutes of these days.
_DAYS = 90
_ONE_IN = 20
_CHANGES = """
INSERT INTO position
SELECT * REPLACE
(
    toDateTime({begin:UInt32} + day * 86400, 'UTC') AS observed_at,
    amount + day AS amount,
    -- That of the run in _SNAPSHOTS which is at the same instant.
    {version:UInt64} + 288 * day - 2 AS version
)
FROM (SELECT * FROM position FINAL WHERE kind = 'wallet') ARRAY JOIN range(1, {days:UInt32} + 1) AS day
WHERE CRC32(concat(address, toString(day))) % {one_in:UInt32} = 0
"""
_SNAPSHOTS = """
INSERT INTO snapshot (family, at, kind, first_observed_at, last_observed_at, rows, source, version)
SELECT 'positions', toDateTime({begin:UInt32} + 300 * (number + 3), 'UTC') AS instant, 'job', instant, instant, 1, 'x',
    {version:UInt64} + number + 1
FROM numbers({days:UInt32} * 288)
"""


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
    yield from _of_the_past(store, own, addresses, label)


def _of_the_past(store: Store, own: Client, addresses: int, label: str) -> Iterator[Figure]:
    """Lookups as of moments, and of now, after 90 days in which one address in twenty changed a day."""
    label = f"{label}, {_DAYS} days of changes"
    newest = read_heads(store)["positions"].version
    values = {"begin": int(_NOON.timestamp()), "days": _DAYS, "one_in": _ONE_IN, "version": newest}
    for statement in (_CHANGES, _SNAPSHOTS):
        own.command(statement, parameters=values)
    yield Figure(f"{label}: rows of items", own.query("SELECT count() FROM position").result_rows[0][0], "rows")
    head = read_heads(store)["positions"]
    for when, days in (("now", [_DAYS]), ("a moment", range(_DAYS))):
        draw = random.Random(2)
        asked = [(number, draw.choice(days)) for number in draw.sample(range(addresses), _LOOKUPS)]
        since = own.query("SELECT now64(6)").result_rows[0][0]
        taken = [_as_of(store, head, number, day) for number, day in asked]
        yield Figure(f"{label}: lookup as of {when}, median", statistics.median(taken) * 1000, "ms")
        median, most = _read_rows(own, since)
        yield Figure(f"{label}: lookup as of {when}, median read_rows", median, "rows", at_most=4_000)
        yield Figure(f"{label}: lookup as of {when}, most read_rows", most, "rows", at_most=8_000)
        if when != "now":
            median, most = _read_rows(own, since, "snapshot_before")
            yield Figure(f"{label}: ledger as of {when}, median read_rows", median, "rows", at_most=50_000)


def _as_of(store: Store, head: Head, number: int, day: int) -> float:
    """Seconds that a lookup takes as of some hours after noon of a day; the last is as of now."""
    address, at = crowd_address(number), int((_NOON + timedelta(days=day, hours=7)).timestamp())
    begun = time.perf_counter()
    found = head if day == _DAYS else past_head(store, head, at, late=False, imported=False, described=False)
    position = read_position(store, address, found.at)
    taken = time.perf_counter() - begun
    changed = [one for one in range(1, day + 1) if crc32(f"{address}{one}".encode()) % _ONE_IN == 0]
    expected = crowd_position(number, 2)
    if changed:
        expected = replace(expected, wallet=(replace(expected.wallet[0], amount=number + changed[-1]),))
    if position != expected:
        raise RuntimeError(f"{position} is not what was stored.")
    return taken


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


def _read_rows(own: Client, since: datetime, query: str = "position_items") -> tuple[float, int]:
    """The median and the greatest number of rows that a query has read since an instant, as ClickHouse logged them."""
    own.command("SYSTEM FLUSH LOGS")
    answer = own.query(
        """
        SELECT medianExact(read_rows), max(read_rows), count()
        FROM system.query_log
        WHERE type = 'QueryFinish' AND log_comment = {query:String} AND current_database = currentDatabase()
          AND event_time_microseconds >= {since:DateTime64(6, 'UTC')}
        """,
        parameters={"since": since, "query": query},
    )
    median, most, count = answer.result_rows[0]
    if count != _LOOKUPS:
        raise RuntimeError(f"ClickHouse logged {count} lookups of {_LOOKUPS}.")
    return median, most
