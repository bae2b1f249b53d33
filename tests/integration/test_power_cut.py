"""What a commit has written survives a power failure (rule 9.6)."""

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from analytics_service.clickhouse.connection import Store
from analytics_service.clickhouse.running import read_running
from analytics_service.config.settings import Settings
from analytics_service.embedded.clickhouse import clickhouse
from analytics_service.market.instants import unix_second
from analytics_service.sources.simulated.source import SimulatedSource
from analytics_service.store.ledger import read_ledger
from analytics_service.store.migrations import migrate
from analytics_service.store.rewrite import complete_interrupted
from jobs.registry import JOBS
from jobs.runner import backfill, take_snapshot
from tests.clickhouse import client, contents
from tests.processes import until

NOON = datetime(2025, 3, 1, 12, tzinfo=UTC)
HOUR, MINUTE = timedelta(hours=1), timedelta(minutes=1)
# The statements that write parts: of ticks, of rewrites, and in the background.
STATEMENTS = (
    "INSERT INTO observed SELECT number, 'a' FROM numbers(10)",
    "INSERT INTO staged SELECT number, 'b' FROM numbers(5, 10)",
    "ALTER TABLE observed ATTACH PARTITION ALL FROM staged",
    "DELETE FROM observed WHERE asset = 3",
    "OPTIMIZE TABLE observed FINAL",
)
# ATTACH writes it without a sync. It lists columns of ClickHouse's own, which no table here has.
UNSYNCED = "invalidated_system_columns.txt"
# Tables with rows of snapshots.
TABLES = (
    *("observation", "rollup", "market_lend", "market_collateral", "market_debt", "market_config", "market_price"),
    *("ptoken_state", "ptoken_pool", "unlock_arrangement", "event_version", "swap_route"),
)
TICKS = 2
DISK_BYTES = 400 * 2**20
# Seconds from each cut to the next.
PAUSES = (0.4, 2.5, 1.9, 1.5)


def server_pid(settings: Settings) -> int:
    running = read_running(settings.data_dir)
    assert running is not None
    return running.server


@dataclass
class Written:
    """The files of tables, by inode, and how often ClickHouse has synced files and folders."""

    files: dict[int, Path]
    file_syncs: int
    folder_syncs: int

    @classmethod
    def now(cls, settings: Settings) -> "Written":
        with client(settings) as own:
            counts = own.query("SELECT event, value FROM system.events WHERE event LIKE '%Sync'").result_rows
            folders = own.query("SELECT arrayJoin(data_paths) FROM system.tables WHERE database = currentDatabase()")
        synced = {str(event): int(count) for event, count in counts}
        paths = [settings.data_dir / "clickhouse" / folder for (folder,) in folders.result_rows]
        files = [file for path in paths for file in path.rglob("*") if file.is_file()]
        by_inode = {file.stat().st_ino: file for file in files}
        return cls(by_inode, synced.get("FileSync", 0), synced.get("DirectorySync", 0))


def test_each_file_and_folder_that_a_statement_writes_is_synced_and_the_rest_may_be_lost(tmp_path: Path) -> None:
    """Hard links, as those of ATTACH, are of files that were synced when they were written."""
    with clickhouse(Settings(data_dir=tmp_path / "data"), "pytest") as settings, closing(Store(settings)) as store:
        store.execute("CREATE DATABASE analytics", in_database=False)
        for table in ("observed", "staged"):
            store.execute(
                f"CREATE TABLE {table} (asset UInt8, value String) ENGINE = ReplacingMergeTree ORDER BY asset"
            )
        unsynced: list[Path] = []
        for statement in STATEMENTS:
            before = Written.now(settings)
            store.execute(statement)
            after = Written.now(settings)
            new = [after.files[inode] for inode in after.files.keys() - before.files.keys()]
            unsynced += [file for file in new if file.name == UNSYNCED]
            assert after.file_syncs - before.file_syncs >= sum(file.name != UNSYNCED for file in new), statement
            # The folder of the part and that of the table, after the part got its name.
            assert after.folder_syncs - before.folder_syncs >= 2, statement
        with client(settings) as own:
            whole = contents(own)
        killed = server_pid(settings)
        os.kill(killed, signal.SIGSTOP)
        for file in unsynced:
            file.write_bytes(b"")
        os.kill(killed, signal.SIGKILL)
        until(lambda: (running := read_running(settings.data_dir)) is not None and running.server != killed)
    with clickhouse(Settings(data_dir=tmp_path / "data"), "pytest") as settings, client(settings) as own:
        assert unsynced
        assert contents(own) == whole
        assert own.query("SELECT count() FROM system.detached_parts").first_row == (0,)


def needs_root() -> str:
    """Why no file system can be made here; empty if one can."""
    if os.geteuid() or not shutil.which("mkfs.ext4"):
        return "needs root and mkfs.ext4"
    return "" if Path("/dev/loop-control").exists() else "needs loop devices"


def call(*words: str | Path) -> None:
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL)


@contextmanager
def stored(image: Path) -> Iterator[tuple[Settings, Store]]:
    """A store on a file system whose image has little but what was synced: its journal waits for syncs."""
    folder = image.with_suffix(".mounted")
    folder.mkdir()
    call("mount", "-o", "loop,commit=900,noauto_da_alloc", image, folder)
    try:
        with (
            clickhouse(Settings(data_dir=folder / "data"), "pytest") as settings,
            closing(Store(settings)) as store,
        ):
            yield settings, store
    finally:
        call("umount", "--lazy", folder)


class Writing:
    """Ticks of all jobs, and backfills of what lies before, which are rewrites."""

    def __init__(self, store: Store) -> None:
        self.complete: list[tuple[str, int]] = []
        self._store = store
        self._source = SimulatedSource("1")

    def write(self) -> None:
        """Take all snapshots that are missing."""
        for tick in range(TICKS):
            past = [NOON - (5 * tick + 5 - number) * HOUR for number in range(5)]
            for job in JOBS.values():
                take_snapshot(job, self._source, self._store, NOON + tick * MINUTE)
                self._note(job.dataset, [NOON + tick * MINUTE])
            for job in JOBS.values():
                backfill(job, self._source, self._store, past)
                self._note(job.dataset, past)

    def _note(self, dataset: str, instants: list[datetime]) -> None:
        self.complete += [(dataset, unix_second(at)) for at in instants]


def rows(settings: Settings) -> dict[str, set[str]]:
    """The rows of the tables, without the versions that identify runs."""
    with client(settings) as own:
        return {
            table: {*map(str, own.query(f"SELECT * EXCEPT version FROM {table} FINAL").result_rows)} for table in TABLES
        }


@pytest.mark.slow
@pytest.mark.skipif(bool(needs_root()), reason=needs_root() or "can run")
def test_after_a_power_cut_everything_that_was_complete_is_there(tmp_path: Path) -> None:
    """A copy of the disk has what was synced by then. A store that goes on from there ends like the first one: nothing
    of what its ledger lists is gone, so staged rows need not stay once they are in place."""
    disk, copies = tmp_path / "disk", {tmp_path / f"copy-{number}": 0 for number in range(len(PAUSES))}
    with disk.open("wb") as file:
        file.truncate(DISK_BYTES)
    call("mkfs.ext4", "-q", disk)
    with stored(disk) as (settings, store), ThreadPoolExecutor() as thread:
        migrate(store)
        writing = Writing(store)
        done = thread.submit(writing.write)
        for copy, pause in zip(copies, PAUSES, strict=True):
            wait([done], timeout=pause)
            copies[copy], pid = len(writing.complete), server_pid(settings)
            os.kill(pid, signal.SIGSTOP)
            call("cp", "--sparse=always", disk, copy)
            os.kill(pid, signal.SIGCONT)
        done.result()
        whole = rows(settings)
    for copy, count in copies.items():
        with stored(copy) as (settings, store):
            until(lambda store=store: not complete_interrupted(store) and not read_ledger(store).open)  # type: ignore[misc]
            with client(settings) as own:
                listed = own.query("SELECT dataset, toUnixTimestamp(at) FROM snapshot FINAL").result_rows
                broken = own.query("SELECT count() FROM system.detached_parts WHERE database = currentDatabase()")
            assert {*writing.complete[:count]} <= {(dataset, at) for dataset, at in listed}
            assert broken.first_row == (0,)
            Writing(store).write()
            again = rows(settings)
        assert [table for table in TABLES if whole[table] - again[table]] == []
        copy.unlink()
