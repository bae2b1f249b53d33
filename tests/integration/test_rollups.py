"""Rollups of imports, and of runs that overtake each other, against a walk over all rows."""

import random
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import polars as pl
import pytest

from analytics_service.clickhouse.connection import Store
from analytics_service.config.settings import Settings
from analytics_service.errors import StoreUnavailable
from analytics_service.market.instants import unix_second
from analytics_service.market.prices import Price
from analytics_service.store.commits import Appended, Commit, Overtaken, Provenance, begin, commit
from analytics_service.store.datasets.histories import BORROW_RATES, LEND_RATES, History
from analytics_service.store.datasets.observations import observations_of, price_frame, read_latest
from analytics_service.store.ledger import Origin
from tests import oracle
from tests.doubles import Statement, WatchedStore
from tests.integration.imports import IDS, NOW, ROLLUPS, prices_file, query, run


def second(*at: int) -> int:
    """Unix second of a UTC time."""
    return int(datetime(*at, tzinfo=UTC).timestamp())  # type: ignore[misc, arg-type]


def stored_rollups(settings: Settings) -> set[tuple[object, ...]]:
    """Rollups of prices that have ended."""
    return set(query(settings, ROLLUPS.format(history="price")))


@pytest.mark.parametrize(
    "at_once",
    [pytest.param(4_000_000, marks=pytest.mark.slow, id="all days at once"), pytest.param(100, id="a few at a time")],
)
def test_rollups_of_more_than_a_year_are_right_whatever_it_lacks(
    settings: Settings, store: Store, tmp_path: Path, draw: random.Random, monkeypatch: pytest.MonkeyPatch, at_once: int
) -> None:
    """An import, then ticks that close days and months, then corrections, each in the middle of a month. One series has
    a single observation, one has none for months, and rows of a file repeat seconds."""
    monkeypatch.setattr("analytics_service.store.rollups._ROWS_AT_ONCE", at_once)
    start, newest = second(2024, 2, 10, 7, 30), second(2025, 1, 20, 8)
    rows = [(IDS[0], draw.randint(start, newest), drawn(draw)) for _ in range(400)]
    rows += [(IDS[1], second(2024, 6, 30, 23, 59, 59), drawn(draw)), (IDS[2], newest, drawn(draw))]
    # Several in one quarter of an hour, at its first and at its last second.
    rows += [(IDS[0], second(2025, 1, 9, 12, *at), drawn(draw)) for at in ((0, 0), (3, 7), (9, 9), (14, 59))]
    for burst in (second(2024, 4, 1), second(2024, 9, 30, 12), second(2024, 12, 31, 23)):
        rows += [(IDS[2], burst + draw.randint(0, 7_200), drawn(draw)) for _ in range(20)]
    rows += [(name, at, drawn(draw)) for name, at, _ in draw.sample(rows, 100)]
    run(store, prices_file(tmp_path, [(name, at, f"{usd:f}") for name, at, usd in rows]))
    known = {(name, at): usd for name, at, usd in rows}
    assert stored_rollups(settings) == oracle.rollups(known)
    for days in (0, 40):
        newest += days * 86_400 + draw.randint(1, 86_400)
        seen = {(name, newest - draw.choice([0, 900])): drawn(draw) for name in draw.sample(IDS, 2)}
        take(store, newest, [Price(name, oracle.instant(at), usd) for (name, at), usd in seen.items()])
        known |= seen
        assert stored_rollups(settings) == oracle.rollups(known)
    past = sorted(key for key in known if key[1] <= unix_second(NOW))
    corrected = {key: drawn(draw) for key in draw.sample(past, 5)}
    run(store, prices_file(tmp_path, [(name, at, f"{usd:f}") for (name, at), usd in corrected.items()]))
    assert stored_rollups(settings) == oracle.rollups(known | corrected)


def drawn(draw: random.Random) -> Decimal:
    """A value with up to 18 decimals."""
    return Decimal(draw.randint(0, 10**19)).scaleb(-draw.randint(0, 18))


@dataclass
class Pausing:
    """Work on a store of its own, in a thread, that pauses before its n-th statement that writes; heartbeats go on."""

    settings: Settings
    work: Callable[[Store], object]
    count: int
    paused: threading.Event = field(default_factory=threading.Event)
    go_on: threading.Event = field(default_factory=threading.Event)
    _seen: int = 0

    def __call__(self) -> None:
        try:
            with closing(WatchedStore(self.settings, before=self._before)) as store:
                self.work(store)
        finally:
            self.paused.set()

    def _before(self, statement: Statement) -> None:
        if statement.kind == "query" or threading.current_thread().name == "heartbeat":
            return
        self._seen += 1
        if self._seen == self.count:
            self.paused.set()
            assert self.go_on.wait(60)


def overtaken(one: Pausing, other: Pausing) -> None:
    """Where the first pauses, the other begins; where that pauses, the first goes on to its end, and then the other."""
    with ThreadPoolExecutor(2) as pool:
        try:
            first = pool.submit(one)
            assert one.paused.wait(60)
            second = pool.submit(other)
            assert other.paused.wait(60)
            one.go_on.set()
            first.result(60)
        finally:
            one.go_on.set()
            other.go_on.set()
        second.result(60)


def tick(store: Store, at: int, usd: int) -> None:
    """A job's snapshot of prices, taken once more when another run has overtaken it."""
    prices = [Price(name, oracle.instant(at), Decimal(usd)) for name in IDS[:2]]
    try:
        take(store, at, prices)
    except Overtaken:
        take(store, at, prices)


def take(store: Store, at: int, prices: Sequence[Price]) -> None:
    """A job's run for an instant."""
    snapshot = Appended(oracle.instant(at), price_frame(prices))
    commit(store, Commit([snapshot]), Provenance("job", Origin("test")), begin(store, "prices", at, at + 1))


def test_rollups_are_right_after_runs_that_die_and_prices_that_lag(
    settings: Settings, store: Store, draw: random.Random
) -> None:
    """Half of the runs die before their rollups, or before the ledger's row; the next one makes up for it."""
    known: dict[tuple[str, int], Decimal] = {}
    at, completed = second(2025, 2, 28, 22), 0

    def die(statement: Statement) -> None:
        if statement == last:
            raise StoreUnavailable("ClickHouse is gone.")

    while completed < 6:
        at += draw.randint(30, 900)
        lags = {IDS[0]: 0, IDS[1]: draw.randint(0, 3_000), IDS[2]: draw.randint(0, 3_000)}
        prices = [Price(name, oracle.instant(at - lag), drawn(draw)) for name, lag in lags.items()]
        known |= {(one.asset_id, int(one.observed_at.timestamp())): one.usd for one in prices}
        last = draw.choice(
            [
                Statement("run", "compute_15min_rollups"),
                Statement("run", "compute_wider_rollups"),
                Statement("insert", "snapshot"),
            ]
        )
        if draw.random() < 0.5:
            with closing(WatchedStore(settings, before=die)) as broken, suppress(StoreUnavailable):
                take(broken, at, prices)
                completed += 1
        else:
            take(store, at, prices)
            completed += 1
            assert stored_rollups(settings) == oracle.rollups(known), completed


def rates(known: dict[History, dict[tuple[str, int], Decimal]]) -> Appended:
    """A snapshot as of the newest of these rates."""
    frames = [
        observations_of({history: {name: apr}}, oracle.instant(at))
        for history, rows in known.items()
        for (name, at), apr in rows.items()
    ]
    return Appended(oracle.instant(max(at for rows in known.values() for _, at in rows)), pl.concat(frames))


def test_rollups_of_histories_that_close_together_are_each_of_their_own_rows(settings: Settings, store: Store) -> None:
    """Both sides of a market, at seconds of their own; then a rewrite of one side closes a rollup of the other."""
    start = second(2025, 2, 28, 23, 40)
    seconds = {LEND_RATES: (0, 130, 400, 1_200), BORROW_RATES: (60, 170, 500, 1_200)}
    known = {
        history: {(IDS[0], start + after): Decimal(after).scaleb(-3) for after in afters}
        for history, afters in seconds.items()
    }
    first, then = rates(known), rates({LEND_RATES: {(IDS[0], start + after): Decimal(5) for after in (1_199, 2_400)}})
    for kind, snapshot in (("job", first), ("backfill", then)):
        at = unix_second(snapshot.at)
        base = begin(store, "rates", at, at + 1)
        commit(store, Commit([snapshot]), Provenance(kind, Origin("test")), base)
        if kind == "job":
            for history, rows in known.items():
                assert set(query(settings, ROLLUPS.format(history=history.name))) == oracle.rollups(rows), history.name
    latest = read_latest(store, BORROW_RATES, IDS[:1], start + 2_400)
    assert latest == {IDS[0]: (Decimal("1.2"), oracle.instant(start + 1_200))}


@pytest.mark.parametrize("last", [Statement("run", "compute_15min_rollups"), Statement("insert", "snapshot")])
def test_rollups_are_right_when_an_earlier_run_brings_a_late_price_and_dies_meanwhile(
    settings: Settings, store: Store, last: Statement
) -> None:
    start = second(2025, 2, 28, 22)
    for at in (start, start + 960):
        take(store, at, [Price(IDS[0], oracle.instant(at), Decimal(1))])
    earlier, late = begin(store, "prices", start + 1020, start + 1021), []

    def die(statement: Statement) -> None:
        if statement == Statement("run", "compute_15min_rollups"):
            raise StoreUnavailable("ClickHouse is gone.")

    def meanwhile(statement: Statement) -> None:
        if statement == last and not late:
            late.append(Price(IDS[1], oracle.instant(start + 300), Decimal(5)))
            snapshot = Appended(oracle.instant(start + 1020), price_frame(late))
            with closing(WatchedStore(settings, before=die)) as broken, suppress(StoreUnavailable):
                commit(broken, Commit([snapshot]), Provenance("job", Origin("test")), earlier)

    with closing(WatchedStore(settings, before=meanwhile)) as watched:
        tick(watched, start + 1800, 3)
    known = {(IDS[0], start): Decimal(1), (IDS[0], start + 960): Decimal(1), (IDS[1], start + 300): Decimal(5)}
    assert stored_rollups(settings) == oracle.rollups(known | {(name, start + 1800): Decimal(3) for name in IDS[:2]})


def test_a_rollup_that_a_server_computed_whose_clock_ran_ahead_gives_way_to_a_later_computation(
    settings: Settings, store: Store, tmp_path: Path
) -> None:
    start = second(2025, 2, 28, 23)
    rows = [(IDS[0], start, "1"), (IDS[0], start + 7_200, "2")]
    run(store, prices_file(tmp_path, rows))
    store.execute("INSERT INTO rollup SELECT * REPLACE (version * 2 AS version, 77 AS high) FROM rollup")
    run(store, prices_file(tmp_path, [(IDS[0], start + 60, "3")]))
    known = {(IDS[0], start): Decimal(1), (IDS[0], start + 60): Decimal(3), (IDS[0], start + 7_200): Decimal(2)}
    assert stored_rollups(settings) == oracle.rollups(known)


@pytest.mark.parametrize("rounds", [3, pytest.param(40, marks=pytest.mark.slow)])
def test_rollups_are_right_however_an_import_and_a_tick_overtake_each_other(
    settings: Settings, store: Store, tmp_path: Path, draw: random.Random, rounds: int
) -> None:
    """Each run closes a quarter of an hour, some a day and a month as well, and the import brings prices of the same
    quarter. Some imports also correct the run before, and some bring prices that are later than those of the tick."""
    start = second(2025, 2, 28, 23)
    run(store, prices_file(tmp_path, [(name, start - 1, "1") for name in IDS]))
    known = {(name, start - 1): Decimal(1) for name in IDS}
    for number in range(rounds):
        opened = start + 900 * number
        rows = [(IDS[0], opened + 100, str(number)), (IDS[2], opened + 500, f"{number}.5")]
        if number % 3:
            rows += [(IDS[0], opened - 1, f"1{number}"), (IDS[1], start - 1, f"2{number}")]
        if number % 4 == 3:
            rows.append((IDS[1], opened + 900, "3"))
        path = prices_file(tmp_path, rows)
        last = [(name, opened + 899, str(number)) for name in IDS[:2]]
        works = [
            Pausing(settings, lambda own, path=path: run(own, path), draw.randint(1, 25)),
            Pausing(settings, lambda own, at=opened + 899, number=number: tick(own, at, number), draw.randint(1, 16)),
        ]
        draw.shuffle(works)
        overtaken(*works)
        known |= {(name, at): Decimal(usd) for name, at, usd in rows + last}
        assert stored_rollups(settings) == oracle.rollups(known), number
