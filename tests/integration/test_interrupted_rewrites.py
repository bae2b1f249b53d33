"""Imports and backfills that are killed or stopped between two of their statements, while readers look on.

Every page is entirely old or entirely new; what is in memory is answered at once; and soon everything is whole.
"""

import signal
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from analytics_service.clickhouse.connection import Store
from analytics_service.config.settings import Settings
from analytics_service.errors import AnalyticsError
from analytics_service.market.instants import from_unix, unix_second
from analytics_service.store.ledger import read_ledger
from analytics_service.store.migrations import migrate
from analytics_service.store.rewrite import complete_interrupted, correction
from analytics_service.store.schema import Migration, shipped_migrations
from jobs.registry import JOBS
from jobs.runner import take_snapshot
from tests import oracle
from tests.integration.databases import database
from tests.integration.imports import IDS, NOW, Row, assets_file, observations, outcome, query, run
from tests.integration.interrupted import (
    SOURCE,
    Backfill,
    Moment,
    Reader,
    Remove,
    Write,
    Writer,
    import_of,
    reader,
)
from tests.integration.test_rollups import stored_rollups
from tests.processes import slack, until

HOUR, DAY = 3600, 86_400
# Three days in two months, so that several partitions are put in place.
LAST = unix_second(NOW)
FIRST = LAST - 3 * DAY
# Added to all prices with each correction.
CORRECTION = 1000
# Memory answers at once.
PROMPT_SECONDS = 2.0
WHOLE_SECONDS = 10.0
# Writers at work at a time, each in a database of its own.
LANES = 2


@dataclass(frozen=True)
class Task:
    """A rewrite, the pages that show it, what they show before and after, and what its writer returns."""

    write: Write
    pages: Sequence[str]
    old: int
    new: int
    result: object


@dataclass
class Lane:
    """A database with one reader that has history in memory and one that has not."""

    settings: Settings
    store: Store
    in_memory: Reader
    from_store: Reader
    completed: int = 0

    @property
    def readers(self) -> tuple[Reader, Reader]:
        return self.in_memory, self.from_store

    def announced(self) -> int:
        """How many rewrites were announced so far."""
        return len(self.versions("1"))

    def open(self) -> int:
        """How many rewrites have been announced and have not finished."""
        return len(self.versions("max(finished) = 0"))

    def locked(self) -> bool:
        """Whether somebody holds the write lock."""
        return bool(query(self.settings, "SELECT 1 FROM write_lock FINAL WHERE NOT released"))

    def listed(self) -> bool:
        """Whether the ledger lists what the newest rewrite brings."""
        return bool(query(self.settings, "SELECT 1 FROM snapshot WHERE version = (SELECT max(version) FROM rewrite)"))

    def staged(self) -> int:
        """How many staging tables there are."""
        sql = "SELECT name FROM system.tables WHERE database = currentDatabase() AND position(name, '_staging_') > 0"
        return len(query(self.settings, sql))

    def complete(self) -> None:
        """Complete what a writer has left, in turns as a scheduler and as the next writer do."""
        self.completed += 1
        if self.completed % 2:
            complete_interrupted(self.store)
        else:
            with correction(self.store, "rates", "remove"):
                pass

    def versions(self, condition: str) -> list[tuple[object, ...]]:
        return query(self.settings, f"SELECT version FROM rewrite GROUP BY version HAVING {condition}")

    def wait_until_whole(self, pages: Sequence[str], level: int) -> None:
        self._until_shown(pages, level, WHOLE_SECONDS * slack())

    def wait_until_ready(self, pages: Sequence[str], level: int) -> None:
        self._until_shown(pages, level, 30)

    def _until_shown(self, pages: Sequence[str], level: int, seconds: float) -> None:
        until(lambda: all(reader.shows(pages, level) for reader in self.readers), seconds, every=0.2)


@contextmanager
def lane(settings: Settings, name: str, levels: Callable[[Any], set[int]]) -> Iterator[Lane]:
    own = replace(settings, clickhouse_database=f"{settings.clickhouse_database}_{name}")
    with (
        database(own) as store,
        reader(own, levels) as in_memory,
        reader(own, levels, memory=0) as from_store,
    ):
        yield Lane(own, store, in_memory, from_store)


class Corrections:
    """Each task corrects all prices of some days."""

    def __init__(self, lane: Lane, folder: Path) -> None:
        self._folder = folder
        self._lane = lane
        self.level = 0
        assets_file(folder)
        run(lane.store, import_of(folder, self._rows(0), "0.csv").path)

    def next(self) -> Task:
        new = self.level + 1
        rows = self._rows(new)
        pages = [
            _page(FIRST, LAST, "h"),
            _page(FIRST, LAST, "d", tz="Asia/Kathmandu"),
        ]
        return Task(import_of(self._folder, rows, f"{new}.csv"), pages, self.level, new, len(rows))

    def end(self, level: int) -> None:
        """The store has exactly the rows of a level."""
        self.level = level
        assert observations(self._lane.settings) == outcome(self._rows(level))

    @staticmethod
    def levels(data: Any) -> set[int]:
        return {
            int(float(p["v"])) // CORRECTION
            for series in data["series"]
            for p in series["points"]
            if p["v"] is not None
        }

    @staticmethod
    def _rows(level: int) -> list[Row]:
        seconds = range(FIRST, LAST + 1, HOUR)
        return [(name, second, str(level * CORRECTION + second // HOUR % 89)) for name in IDS for second in seconds]


class Gaps:
    """Each task takes the snapshots of another day that has none."""

    def __init__(self, lane: Lane, folder: Path) -> None:
        self._lane = lane
        self._day = LAST // DAY - 60
        for second in ((self._day - 1) * DAY, LAST):
            take_snapshot(JOBS["prices"], SOURCE, lane.store, from_unix(second))

    def next(self) -> Task:
        self._day += 1
        begin = self._day * DAY
        instants = [from_unix(begin) + timedelta(hours=hour) for hour in range(24)]
        pages = [_page(begin, begin + DAY - 1, period, fill="none") for period in "hd"]
        return Task(Backfill(instants), pages, 0, 1, 24)

    def end(self, level: int) -> None:
        """The day has all of its rows, or none."""
        sql = f"SELECT uniqExact(observed_at) FROM price WHERE toDate(observed_at) = toDate({self._day})"
        assert query(self._lane.settings, sql) == [(24 * level,)]

    @staticmethod
    def levels(data: Any) -> set[int]:
        return {int(p["v"] is not None) for series in data["series"] for p in series["points"]}


class Removals:
    """Each task takes out all prices of a day; then it shows the last ones of the day before, which say 1."""

    def __init__(self, lane: Lane, folder: Path) -> None:
        self._lane = lane
        self._folder = folder
        seconds = range(LAST // DAY * DAY - 40 * DAY, LAST + 1, HOUR)
        rows = [(name, second, str(1000 * (1 - second // DAY % 2))) for name in IDS for second in seconds]
        self._kept = outcome(rows)
        self._day = seconds.start // DAY // 2 * 2 - 1
        assets_file(folder)
        run(lane.store, import_of(folder, rows, "0.csv").path)

    def next(self) -> Task:
        self._day += 2
        begin = self._day * DAY
        pages = [_page(begin, begin + DAY - 1, "h", fill="previous"), _page(begin, begin + DAY - 1, "d")]
        return Task(Remove(begin, begin + DAY, self._folder), pages, 0, 1, 24 * len(IDS))

    def end(self, level: int) -> None:
        """The day has all of its rows, or none; and no row of the ledger or rollup tells of rows that are gone."""
        if level:
            self._kept = {key: usd for key, usd in self._kept.items() if key[1] // DAY != self._day}
        assert observations(self._lane.settings) == self._kept
        assert stored_rollups(self._lane.settings) == oracle.rollups(self._kept)
        imports = "SELECT rows FROM snapshot FINAL WHERE kind = 'import'"
        assert query(self._lane.settings, imports) == [(len(self._kept),)]
        head = read_ledger(self._lane.store).heads["prices"]
        assert (head.at, head.last_observed_at) == (max(at for _, at in self._kept),) * 2

    levels = staticmethod(Corrections.levels)


def _page(start: int, end: int, period: str, **more: str) -> str:
    asked = {"start": start, "end": end, "period": period, "limit": 200}
    return f"/api/v1/assets/price-history?{urlencode(asked | more)}"


Tasks = type[Corrections] | type[Gaps] | type[Removals]
ATTACHES = Moment("ATTACH PARTITION")
LISTS_RUNS = Moment("INSERT INTO snapshot")
UNLISTS = Moment("DELETE FROM snapshot")
# Before every statement. A rewrite has at least twelve, and fewer than these.
EVERY = tuple(Moment(count=number) for number in range(1, 45))
every = pytest.param(Corrections, EVERY, id="import at every statement", marks=pytest.mark.slow)
every_of_backfill = pytest.param(Gaps, EVERY, id="backfill at every statement", marks=pytest.mark.slow)
every_of_removal = pytest.param(Removals, EVERY, id="remove at every statement", marks=pytest.mark.slow)


def in_lanes(
    settings: Settings,
    folder: Path,
    tasks: Tasks,
    moments: Sequence[Moment],
    act: Callable[[Lane, Task, Moment], int | None],
) -> None:
    """Interrupt a writer at each of the moments; `act` returns the level that is shown then, or None when the writer
    was not interrupted."""

    def work(number: int) -> int:
        interrupted, own = 0, folder / str(number)
        own.mkdir()
        with lane(settings, str(number), tasks.levels) as opened:
            made = tasks(opened, own)
            for moment in moments[number::LANES]:
                task = made.next()
                opened.wait_until_ready(task.pages, task.old)
                level = act(opened, task, moment)
                made.end(task.new if level is None else level)
                if level is None:
                    # The write has fewer statements than this.
                    break
                interrupted += 1
        return interrupted

    with ThreadPoolExecutor(LANES) as pool:
        interrupted = sum(pool.map(work, range(min(LANES, len(moments)))))
    assert 12 <= interrupted < len(moments) if moments is EVERY else interrupted == len(moments)


@contextmanager
def watched(lane: Lane, task: Task) -> Iterator[None]:
    """Ask both readers during the block. Every page was whole, none went back in time, and what is in memory came
    promptly."""
    with lane.in_memory.asking(task.pages) as prompt, lane.from_store.asking(task.pages) as others:
        yield
        assert lane.open() == 0
    for reads in (prompt, others):
        assert reads
        mixed = [read for read in reads if len(read.levels) > 1]
        assert not mixed, mixed[:3]
        shown = [next(iter(read.levels)) for read in reads if read.levels]
        assert set(shown) <= {task.old, task.new}
        assert shown == sorted(shown)
        refused = [read for read in reads if read.status != 200]
        assert all(read.status == 503 and int(read.headers["retry-after"]) > 0 for read in refused), refused[:3]
    assert {read.status for read in prompt} == {200}
    assert max(read.seconds for read in prompt) < PROMPT_SECONDS * slack()


@pytest.mark.parametrize(
    ("tasks", "moments"),
    [
        pytest.param(Corrections, (ATTACHES, LISTS_RUNS), id="import"),
        pytest.param(Removals, (UNLISTS,), id="remove"),
        every,
        every_of_backfill,
        every_of_removal,
    ],
)
def test_a_rewrite_that_is_killed_is_all_there_or_not_at_all(
    settings: Settings, tmp_path: Path, tasks: Tasks, moments: Sequence[Moment]
) -> None:
    def act(lane: Lane, task: Task, moment: Moment) -> int | None:
        before = lane.announced()
        with watched(lane, task):
            with Writer(lane.settings, task.write, moment, signal.SIGKILL) as writer:
                writer.wait_for_signal()
                killed, code = time.monotonic(), writer.exit_code
                writer.bury()
            level = task.new if lane.announced() > before else task.old
            assert code in (0, -signal.SIGKILL)
            lane.complete()
            lane.wait_until_whole(task.pages, level)
            assert time.monotonic() - killed < WHOLE_SECONDS * slack()
        return None if code == 0 else level

    in_lanes(settings, tmp_path, tasks, moments, act)


@pytest.mark.parametrize(
    ("tasks", "moments"),
    [
        pytest.param(Corrections, (ATTACHES,), id="import"),
        every,
        every_of_backfill,
        every_of_removal,
    ],
)
def test_a_writer_that_stood_still_and_has_lost_the_lock_changes_nothing_more(
    settings: Settings, tmp_path: Path, tasks: Tasks, moments: Sequence[Moment]
) -> None:
    def act(lane: Lane, task: Task, moment: Moment) -> int | None:
        before = lane.announced()
        with watched(lane, task):
            with Writer(lane.settings, task.write, moment, signal.SIGSTOP) as writer:
                writer.wait_for_signal()
                ended, is_locked = writer.exit_code == 0, lane.locked()
                is_listed = lane.announced() > before and lane.listed()
                writer.bury()
                # Somebody else completes what was announced, before the writer goes on.
                with correction(lane.store, "rates", "remove"):
                    pass
                level = task.new if lane.announced() > before else task.old
                lane.wait_until_whole(task.pages, level)
                result = writer.go_on()
            if result == task.result:
                level = task.new
                # It had not asked for the lock yet, or had only to record its end, which changes nothing any more.
                assert is_listed or not is_locked
            else:
                assert isinstance(result, AnalyticsError)
                assert is_locked
            lane.wait_until_whole(task.pages, level)
            assert lane.staged() == 0
        return None if ended else level

    in_lanes(settings, tmp_path, tasks, moments, act)


def test_the_schema_changes_only_when_a_writer_that_was_killed_just_now_has_lost_the_lock(
    store: Store, settings: Settings
) -> None:
    store.execute("INSERT INTO rewrite (dataset, version) SELECT 'prices', 7")
    store.execute("INSERT INTO write_lock (holder, heartbeat_at) SELECT 'dead', now64(3) - 14")
    migrate(
        store, [*shipped_migrations(), Migration(9999, "9999_more.sql", "CREATE VIEW more AS SELECT * FROM rewrite")]
    )
    assert query(settings, "SELECT max(finished) FROM rewrite") == [(1,)]
    applied = "(SELECT max(applied_at) FROM schema_migration)"
    lost = "(SELECT toDateTime(max(heartbeat_at)) + 15 FROM write_lock WHERE holder = 'dead')"
    assert query(settings, f"SELECT {applied} >= {lost}") == [(1,)]
