"""Ten million events: what a page of an address's history reads. `run(bench, events)` takes fewer."""

import random
import statistics
import time
from collections.abc import Iterator
from contextlib import closing
from datetime import datetime
from hashlib import sha256

from clickhouse_connect.driver.client import Client

from analytics_service.market.events import EventQuery
from analytics_service.store.connection import Store
from analytics_service.store.events import read_account_events
from tests.benchmarks.bench import Bench
from tests.benchmarks.harness import Figure
from tests.clickhouse import client

EVENTS = 10_000_000
# The database that pages of the large one are compared with has this many.
_FEW = 100_000
# Events of an address; one address has one in a hundred of all events.
_EACH = 100
_BUSY = "busy"
_BEGIN = 1_735_689_600
_STEP = 30
_BATCH = 1_000_000
_PAGES = 100
_QUERIES = ("account_event_page", "account_event_count", "account_event_place")


def run(bench: Bench, events: int = EVENTS) -> Iterator[Figure]:
    """Pages of few events, and of many."""
    for count in (_FEW, events):
        with bench.database("events") as settings, client(settings) as own, closing(Store(settings)) as store:
            yield from _measured(store, own, count)


def address(number: int) -> str:
    """An address; addresses are not in the order of their numbers."""
    return sha256(str(number).encode()).hexdigest()[:40]


def fill(own: Client, events: int) -> None:
    """Write events: each address has one every `_STEP` seconds, in the order of time."""
    addresses = events // _EACH
    for begin in range(0, events, _BATCH):
        _write(own, f"lower(substring(hex(SHA256(toString(number % {addresses}))), 1, 40))", addresses, begin, events)
    _write(own, f"'{_BUSY}'", 1, 0, events // 100)


def _write(own: Client, address: str, addresses: int, begin: int, until: int) -> None:
    own.command(
        f"""
        INSERT INTO account_event
            (address, at, uuid, number, id, action, asset_id, amount, price, usd, contract, tx_hash, version)
        SELECT
            {address}, {_BEGIN} + intDiv(number, {addresses}) * {_STEP},
            lower(concat(substring(hash, 1, 8), '-', substring(hash, 9, 4), '-5', substring(hash, 14, 3), '-8',
                substring(hash, 18, 3), '-', substring(hash, 21, 12))),
            intDiv(number, {addresses}) + 1, hash, 'borrow', 'native;uorb', number, 1, 1, 'contract', hash, 1
        FROM
        (
            SELECT number, hex(MD5(concat({address}, toString(number)))) AS hash
            FROM numbers({begin}, {min(_BATCH, until - begin)})
        )
        """
    )


def _measured(store: Store, own: Client, events: int) -> Iterator[Figure]:
    label = f"history of an address among {events:,} events"
    fill(own, events)
    draw = random.Random(1)
    quiet = [address(draw.randrange(events // _EACH)) for _ in range(_PAGES)]
    for who, addresses in (("one", quiet), ("the busiest", [_BUSY] * _PAGES)):
        since = own.query("SELECT now64(6)").result_rows[0][0]
        taken, pages = _pages(store, own, draw, addresses, events)
        yield Figure(f"{label}: page of {who}, median", taken * 1000, "ms")
        median, greatest = _read_rows(own, since, pages)
        yield Figure(f"{label}: page of {who}, median read_rows", median, "rows", at_most=8_000)
        yield Figure(f"{label}: page of {who}, most read_rows", greatest, "rows", at_most=16_000)


def _pages(store: Store, own: Client, draw: random.Random, addresses: list[str], events: int) -> tuple[float, int]:
    """Median seconds of pages of 20, and how many there were: the first of each address, and one from its middle."""
    taken = []
    for one in addresses:
        until = _BEGIN + events * _STEP
        begun = time.perf_counter()
        first = read_account_events(store, one, until, EventQuery(20))
        taken.append(time.perf_counter() - begun)
        previous = _middle(own, one, first.count)
        begun = time.perf_counter()
        page = read_account_events(store, one, until, EventQuery(20, previous, ascending=draw.random() < 0.5))
        taken.append(time.perf_counter() - begun)
        if not len(page.events) == len(first.events) == 20:
            raise RuntimeError(f"{one} has fewer events than were stored.")
    return statistics.median(taken), 2 * len(addresses)


def _middle(own: Client, address: str, count: int) -> str:
    """The uuid of the event in the middle of an address's history."""
    query = "SELECT uuid FROM account_event WHERE address = {address:String} AND number = {number:UInt64}"
    return str(own.query(query, parameters={"address": address, "number": count // 2}).first_row[0])


def _read_rows(own: Client, since: datetime, pages: int) -> tuple[float, int]:
    """The median and the greatest number of rows that a page's queries since an instant have read together."""
    own.command("SYSTEM FLUSH LOGS")
    answer = own.query(
        """
        SELECT log_comment, medianExact(read_rows), max(read_rows), count()
        FROM system.query_log
        WHERE type = 'QueryFinish' AND log_comment IN {names:Array(String)} AND current_database = currentDatabase()
          AND event_time_microseconds >= {since:DateTime64(6, 'UTC')}
        GROUP BY log_comment
        """,
        parameters={"since": since, "names": [*_QUERIES]},
    )
    logged = {name: (median, most, count) for name, median, most, count in answer.result_rows}
    if logged["account_event_page"][2] != pages:
        raise RuntimeError(f"ClickHouse logged {logged} for {pages} pages.")
    return sum(median for median, _, _ in logged.values()), sum(most for _, most, _ in logged.values())
