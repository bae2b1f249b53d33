"""Cells of stores that earlier versions filled, and of runs that overtake each other, against a walk over all rows."""

import random
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import falcon.testing
import pytest

from analytics_service.app import create_app
from analytics_service.config import Settings
from analytics_service.market.prices import Price
from analytics_service.store.applied import pending, shipped
from analytics_service.store.connection import Store
from analytics_service.store.ledger import Origin, new_version
from analytics_service.store.migrations import migrate
from analytics_service.store.prices import price_frame
from jobs.snapshot import Snapshot, Taking, commit
from tests import oracle
from tests.doubles import FreshHeads, Statement, WatchedStore
from tests.integration.imports import CELLS, IDS, Observations, Progress, prices_file, query, run
from tests.integration.pages import Pages, asset
from tests.stored import write_assets

# The last version whose rollups were filled by materialized views.
ROLLUPS = 15
TABLES = {"price": "price", "lend_rate": "apr", "borrow_rate": "apr", "loans_originated": "usd"}
FAMILIES = {"prices": "price", "rates": "lend_rate", "loans": "loans_originated"}


def second(*at: int) -> int:
    """Unix second of a UTC time."""
    return int(datetime(*at, tzinfo=UTC).timestamp())  # type: ignore[misc, arg-type]


# The last second of a quarter of an hour, a day and a month, and a moment within another.
NEWEST = second(2025, 2, 28, 23, 59, 59)
# Two months in a row, and one by itself.
MONTHS = [(second(2024, 8, 3), second(2024, 8, 29)), (second(2025, 1, 5), NEWEST)]


def stored_cells(settings: Settings, table: str = "price") -> set[tuple[object, ...]]:
    """Cells that have ended."""
    return set(query(settings, CELLS.format(table=table)))


@pytest.fixture
def old(settings: Settings) -> Iterator[Store]:
    """A database as an earlier version left it, without rows."""
    with closing(Store(settings)) as store:
        migrate(store, shipped()[:ROLLUPS])
        yield store
        store.execute_outside_database(f"DROP DATABASE IF EXISTS `{store.database}` SYNC")


def fill(store: Store, draw: random.Random) -> dict[str, Observations]:
    """Rows of three series in each table and in the ledger, as that version wrote them. A run of its own corrects some
    of them, in tables that have not merged. All that holds then, by table."""
    write_assets(store, [asset(name.partition(";")[2]) for name in IDS], 1)
    found = {}
    for table, value in TABLES.items():
        rows = {(IDS[0], NEWEST): drawn(draw)}
        for name in IDS:
            for begin, end in MONTHS:
                rows |= {(name, draw.randint(begin, end)): drawn(draw) for _ in range(150)}
        # Several in one quarter of an hour, at its first and at its last second.
        rows |= {(IDS[1], second(2025, 1, 9, 12, *at)): drawn(draw) for at in ((0, 0), (3, 7), (9, 9), (14, 59))}
        corrected = {key: drawn(draw) for key in draw.sample(sorted(rows), len(rows) // 5)}
        for version, written in ((100, rows), (200, corrected)):
            values = ", ".join(f"('{name}', {at}, {usd}, {version})" for (name, at), usd in written.items())
            store.execute(f"INSERT INTO {table} (asset_id, observed_at, {value}, version) VALUES {values}")
        found[table] = rows | corrected
    for family in FAMILIES:
        for version, kind in ((100, "job"), (200, "backfill")):
            store.execute(
                "INSERT INTO snapshot (family, at, kind, first_observed_at, last_observed_at, rows, source, version) "
                f"VALUES ('{family}', {NEWEST}, '{kind}', {MONTHS[0][0]}, {NEWEST}, 1, 'test', {version})"
            )
    return found


def drawn(draw: random.Random) -> Decimal:
    """A value with up to 18 decimals."""
    return Decimal(draw.randint(0, 10**19)).scaleb(-draw.randint(0, 18))


class Killed(BaseException):
    """The process ends here."""


@dataclass
class Mortal(Progress):
    """A reporter whose process ends at its n-th report, if it has so many."""

    reports_left: int = 0

    def _count(self) -> None:
        self.reports_left -= 1
        if not self.reports_left:
            raise Killed

    def stage(self, label: str, total: int) -> None:
        super().stage(label, total)
        self._count()

    def advance(self, count: int) -> None:
        super().advance(count)
        self._count()


def test_a_store_with_rollups_gets_cells_also_when_migrating_is_interrupted(
    settings: Settings, old: Store, draw: random.Random
) -> None:
    """The old release showed the last values that its rollups had, and cells close with the same ones."""
    known = fill(old, draw)
    shown = {
        table: set(query(settings, f"SELECT width, asset_id, cell, {value} FROM {table}_rollup FINAL"))
        for table, value in TABLES.items()
    }
    # Before the cells of the first table, within them, and within those of the last.
    for reports in (1, 2, 11):
        with pytest.raises(Killed):
            migrate(old, reporter=Mortal(reports_left=reports))
        assert pending(old)[0].number == ROLLUPS + 1
    progress = Progress()
    assert migrate(old, reporter=progress)[0].number == ROLLUPS + 1
    # August by itself, and January with February.
    assert sorted(progress.stages) == sorted((f"Computing {table}_cell", 2) for table in TABLES)
    assert progress.done == [2] * len(TABLES)
    for table, rows in known.items():
        assert stored_cells(settings, table) == oracle.cells(rows), table
        closes = set(query(settings, f"SELECT width, asset_id, cell, close FROM {table}_cell FINAL"))
        assert closes == shown[table]
    assert (
        query(settings, "SELECT name FROM system.tables WHERE name LIKE '%rollup%' AND database = currentDatabase()")
        == []
    )
    assert migrate(old) == []
    client = falcon.testing.TestClient(create_app(settings, old, heads=FreshHeads(old)))
    series = {name: [(at, usd) for (one, at), usd in known["price"].items() if one == name] for name in IDS}
    pages = Pages(client, oracle.Oracle(series), draw)
    for _ in range(40):
        pages.check(MONTHS[0][0], NEWEST)


@pytest.mark.parametrize("at_once", [4_000_000, 100], ids=["all series at once", "one after the other"])
def test_runs_after_a_migration_keep_its_cells_right(
    settings: Settings, old: Store, tmp_path: Path, draw: random.Random, monkeypatch: pytest.MonkeyPatch, at_once: int
) -> None:
    monkeypatch.setattr("analytics_service.store.cells._ROWS_AT_ONCE", at_once)
    known = fill(old, draw)["price"]
    migrate(old)
    corrected = [(name, at, "7") for name, at in draw.sample(sorted(known), 50)]
    run(old, prices_file(tmp_path, [*corrected, (IDS[2], NEWEST + 900, "8")]))
    known |= {(name, at): Decimal(7) for name, at, _ in corrected} | {(IDS[2], NEWEST + 900): Decimal(8)}
    assert stored_cells(settings) == oracle.cells(known)


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
    """A job's snapshot of prices."""
    rows = price_frame([Price(name, oracle.instant(at), Decimal(usd)) for name in IDS[:2]])
    snapshot = Snapshot(oracle.instant(at), dated={"price": rows})
    commit(store, [snapshot], Taking("prices", "job", Origin("test")), new_version(store))


@pytest.mark.parametrize("is_tick", [True, False], ids=["tick", "import"])
def test_cells_are_right_however_an_import_and_another_run_overtake_each_other(
    settings: Settings, store: Store, tmp_path: Path, draw: random.Random, is_tick: bool
) -> None:
    """Each run closes a quarter of an hour, some a day and a month as well, and the import brings prices of the same
    quarter. Some imports also correct the run before, and some bring prices that are later than those of the other."""
    begin = second(2025, 2, 28, 23)
    run(store, prices_file(tmp_path, [(name, begin - 1, "1") for name in IDS]))
    known = {(name, begin - 1): Decimal(1) for name in IDS}
    for number in range(10):
        opened = begin + 900 * number
        rows = [(IDS[0], opened + 100, str(number)), (IDS[2], opened + 500, f"{number}.5")]
        if number % 3:
            rows += [(IDS[0], opened - 1, f"1{number}"), (IDS[1], begin - 1, f"2{number}")]
        if number % 4 == 3:
            rows.append((IDS[1], opened + 900, "3"))
        path = prices_file(tmp_path, rows)
        last = [(name, opened + 899, str(number)) for name in IDS[:2]]
        (tmp_path / "other").mkdir(exist_ok=True)
        # Prices of a quarter before make an import a rewrite.
        other = prices_file(tmp_path / "other", [*last, (IDS[2], begin - 1, f"3{number}")])

        def follow(own: Store, number: int = number, opened: int = opened, other: Path = other) -> None:
            tick(own, opened + 899, number) if is_tick else run(own, other)

        works = [
            Pausing(settings, lambda own, path=path: run(own, path), draw.randint(1, 20)),
            Pausing(settings, follow, draw.randint(1, 14 if is_tick else 20)),
        ]
        draw.shuffle(works)
        overtaken(*works)
        known |= {(name, at): Decimal(usd) for name, at, usd in rows + last}
        known |= {} if is_tick else {(IDS[2], begin - 1): Decimal(f"3{number}")}
        assert stored_cells(settings) == oracle.cells(known), number
