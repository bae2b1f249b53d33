"""Backups: what is in them, and what restoring one leaves, on the real server."""

import hashlib
import json
import zipfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import falcon.testing
import pytest

from analytics_service.app import create_app
from analytics_service.backups.archive import FORMAT, ArchiveReader
from analytics_service.backups.restoring import require_restorable, restore
from analytics_service.backups.taking import NOT_SAVED, back_up
from analytics_service.config.settings import Settings
from analytics_service.errors import BackupFailed, BackupRefused, StoreUnavailable, Superseded
from analytics_service.state.health import Monitor
from analytics_service.store.admission import read_claim, simulated_spec
from analytics_service.store.connection import Store
from analytics_service.store.job_runs import JobRun, read_runs, record
from analytics_service.store.ledger import (
    RESTORE,
    new_version,
    oldest_change,
    read_ledger,
    record_rewrite,
    require_unchanged,
)
from analytics_service.store.migrations import migrate
from analytics_service.store.rewrite import Recovery, restored_into, staging
from analytics_service.store.runs import begin
from analytics_service.store.schema import missing, shipped, tables_of
from analytics_service.store.sql import Parts
from tests.clickhouse import by_url, client
from tests.doubles import FreshHeads, Silent, Statement, WatchedStore
from tests.integration.conftest import Simulated
from tests.integration.databases import database
from tests.integration.pages import asset, commit, write
from tests.stored import write_assets

NOW = datetime(2026, 1, 1, tzinfo=UTC)
TABLES = tables_of(shipped())


@pytest.fixture(scope="module")
def backup(simulated: Simulated, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A backup of the simulated protocol."""
    path = tmp_path_factory.mktemp("backup") / "backup.zip"
    back_up(simulated.store, path, NOW, Silent())
    return path


@contextmanager
def contents(settings: Settings) -> Iterator[dict[str, Any]]:
    """The rows of every table as text, in order and without repeated ones, by an independent client."""
    with client(settings) as own:

        def rows(table: str) -> str:
            only = "* REPLACE (0 AS runs)" if table == "snapshot_head" else "*"
            query = f"SELECT {only} FROM {table} FINAL ORDER BY ALL FORMAT TSV"
            return str(own.raw_query(query).decode())

        yield {table: rows(table) for table in TABLES if table not in NOT_SAVED - {"snapshot_head"}}


def test_a_restored_store_has_the_same_rows_in_every_table(
    simulated: Simulated, backup: Path, store: Store, settings: Settings
) -> None:
    """Heads, too, which are not in the file: a view fills them."""
    restore(store, ArchiveReader(backup), Silent(), replace=False)
    with contents(simulated.settings) as before, contents(settings) as after:
        assert before.keys() == after.keys()
        for table in before:
            assert before[table] or table in ("correction", "doubt", "loss"), table
            if table != "snapshot_head":
                assert after[table] == before[table], table
    known, restored = read_ledger(simulated.store), read_ledger(store)
    assert restored.origins == known.origins
    assert {f: (h.at, h.last_observed_at, h.version) for f, h in restored.heads.items()} == {
        f: (h.at, h.last_observed_at, h.version) for f, h in known.heads.items()
    }
    assert simulated_spec(read_claim(store).side) == "simulated:1"


def prices(settings: Settings) -> list[tuple[str, int, Decimal]]:
    """The prices of a store, by asset and time."""
    with client(settings) as own:
        query = "SELECT asset_id, toUnixTimestamp(observed_at), value_exact FROM price ORDER BY ALL"
        return [tuple(row) for row in own.query(query).result_rows]


ONE = [("token;a", 100, Decimal(1))]
TWO = [("token;a", 100, Decimal(2)), ("token;b", 50, Decimal("0.000000000000000001"))]


@pytest.fixture(scope="module")
def of_two(server: Settings, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A backup of a store with two prices."""
    with database(replace(server, clickhouse_database="test_backup_of_two")) as store:
        commit(store, {"token;a": [(100, Decimal(2))], "token;b": [(50, Decimal("0.000000000000000001"))]})
        path = tmp_path_factory.mktemp("two") / "two.zip"
        back_up(store, path, NOW, Silent())
        return path


def test_amounts_are_exact(store: Store, settings: Settings, tmp_path: Path) -> None:
    greatest, decimal = 2**256 - 1, "99999999999999999999.999999999999999999"
    store.execute(
        "INSERT INTO account_event (at, uuid, action, asset_id, address, amount, usd, version) "
        f"VALUES (100, 'e', 'borrow', 'token;a', 'x', toUInt256('{greatest}'), toDecimal128('{decimal}', 18), 1)"
    )
    store.execute("INSERT INTO snapshot (family, at, kind, version) VALUES ('loans', 100, 'job', 1)")
    back_up(store, tmp_path / "backup.zip", NOW, Silent())
    store.execute("TRUNCATE TABLE account_event")
    restore(store, ArchiveReader(tmp_path / "backup.zip"), Silent(), replace=True)
    with client(settings) as own:
        assert own.query("SELECT amount, usd FROM account_event").result_rows == [(greatest, Decimal(decimal))]


@pytest.mark.slow
def test_rows_of_a_run_that_is_not_complete_are_not_shown(store: Store, settings: Settings, tmp_path: Path) -> None:
    """They come along, but the ledger does not list their run. The next run finds them like those of one that died."""
    commit(store, {"token;a": [(100, Decimal(1)), (900, Decimal(1))]})
    write(store, {"token;a": [(960, Decimal(7))]}, new_version(store))
    back_up(store, tmp_path / "backup.zip", NOW, Silent())
    restore(store, ArchiveReader(tmp_path / "backup.zip"), Silent(), replace=True)
    page = falcon.testing.TestClient(create_app(settings, store, heads=FreshHeads(store)))
    query = "start=0&end=3000&period=min&interval=15"
    answer = page.simulate_get("/api/v1/assets/price-history", query_string=query).json
    assert [point["v"] for point in answer["data"]["series"][0]["points"]] == ["1", "1", None, None]


def test_a_store_with_data_is_replaced_as_a_whole_and_only_if_asked(
    store: Store, settings: Settings, of_two: Path
) -> None:
    commit(store, {"token;a": [(100, Decimal(1))], "token;c": [(200, Decimal(3))]})
    before = read_ledger(store).heads["prices"]
    with pytest.raises(BackupRefused, match="There is data in the store already"):
        restore(store, ArchiveReader(of_two), Silent(), replace=False)
    assert len(prices(settings)) == 2
    restore(store, ArchiveReader(of_two), Silent(), replace=True)
    assert prices(settings) == TWO
    # Whoever has read something before reads it again.
    with pytest.raises(Superseded):
        require_unchanged(store, before)
    assert not read_ledger(store).open
    # Equal heads mean equal data (rule 8.2), also when what is restored is there already.
    first = read_ledger(store).heads["prices"]
    restore(store, ArchiveReader(of_two), Silent(), replace=True)
    again = read_ledger(store).heads["prices"]
    assert (again.at, again.version) == (first.at, first.version)
    assert again != first
    assert oldest_change(store, first, again) == 0
    # The views feed the tables that are in place now.
    commit(store, {"token;a": [(260, Decimal(4))]})
    assert read_ledger(store).heads["prices"].at == 260


class Meanwhile(Silent):
    """Does something whenever a backup or restore reports that rows were copied."""

    def __init__(self, act: Callable[[], object], times: int) -> None:
        self._act = act
        self._left = times

    def advance(self, count: int) -> None:
        if self._left:
            self._left -= 1
            self._act()


@pytest.mark.slow
def test_a_backup_begins_again_when_history_is_rewritten_meanwhile(store: Store, tmp_path: Path) -> None:
    commit(store, {"token;a": [(100, Decimal(1))]})
    rewrite = partial(record_rewrite, store, ["prices"], 7, finished=1)
    back_up(store, tmp_path / "backup.zip", NOW, Meanwhile(rewrite, 1))
    assert ArchiveReader(tmp_path / "backup.zip").manifest.tables["observation"].rows == 1
    versions = count(8)
    with pytest.raises(BackupFailed, match="again and again"):
        back_up(
            store,
            tmp_path / "other.zip",
            NOW,
            Meanwhile(lambda: record_rewrite(store, ["prices"], next(versions), finished=1), 100),
        )
    assert [path.name for path in tmp_path.iterdir()] == ["backup.zip"]


@pytest.mark.slow
def test_a_backup_begins_again_when_a_row_of_the_ledger_is_replaced_while_it_begins(
    settings: Settings, tmp_path: Path
) -> None:
    """As when a second import of rates brings an asset: its description is shown with prices."""

    class Busy(Store):
        """Has another definition shown before the rows of the ledger are read for the first time."""

        begun = False

        def stream(
            self, query: str, parts: Parts = (), output: str = "Native", /, **parameters: object
        ) -> Iterator[bytes]:
            if not self.begun:
                self.begun = True
                self.show("second")
            return super().stream(query, parts, output, **parameters)

        def show(self, name: str) -> None:
            write_assets(self, [asset(name)], version=new_version(self))
            self.run("show_assets", family="prices", version=new_version(self))
            self.execute("OPTIMIZE TABLE snapshot FINAL")

    with closing(Busy(settings)) as store:
        migrate(store)
        commit(store, {"token;a": [(100, Decimal(1))]})
        store.show("first")
        back_up(store, tmp_path / "backup.zip", NOW, Silent())
        assert store.begun
        head = read_ledger(store).heads["prices"]
        restore(store, ArchiveReader(tmp_path / "backup.zip"), Silent(), replace=True)
        assert read_ledger(store).heads["prices"].version == head.version
    assert prices(settings) == ONE


def changed(path: Path, folder: Path, change: Callable[[dict[str, Any]], None]) -> Path:
    """The same backup with another manifest."""
    other = folder / "changed.zip"
    with zipfile.ZipFile(path) as before, zipfile.ZipFile(other, "w") as after:
        for name in before.namelist():
            content = before.read(name)
            if name == "manifest.json":
                manifest = json.loads(content)
                change(manifest)
                content = json.dumps(manifest).encode()
            after.writestr(name, content)
    return other


@pytest.mark.slow
def test_a_restore_that_fails_leaves_the_store_as_it_was_and_nothing_beside_it(
    store: Store, settings: Settings, of_two: Path, tmp_path: Path
) -> None:
    """Somebody writes to the store, or rows are missing. A database that a killed restore left is dropped, and none
    that only has such a name."""
    write = Meanwhile(lambda: commit(store, {"token;a": [(100, Decimal(1))]}), 1)
    with pytest.raises(BackupFailed, match="meanwhile"):
        restore(store, ArchiveReader(of_two), write, replace=False)
    assert prices(settings) == ONE
    comment = f"A restore of {store.database}; the next one drops it"
    store.execute(f"CREATE DATABASE {store.database}_restore_1 COMMENT '{comment}'", in_database=False)
    foreign = f"{store.database}_restore_2"
    store.execute(f"CREATE DATABASE {foreign}", in_database=False)
    other = changed(of_two, tmp_path, lambda manifest: manifest["families"]["prices"].update(at=3))
    with pytest.raises(BackupRefused, match="The ledger of the backup is not the one"):
        restore(store, ArchiveReader(other), Silent(), replace=True)
    assert prices(settings) == ONE
    with closing(Store(replace(settings, clickhouse_database=foreign))) as other, client(by_url(settings)) as own:
        left = own.query(f"SHOW DATABASES LIKE '{store.database}\\_restore\\_%'").result_columns
        other.execute(f"DROP DATABASE {foreign}", in_database=False)
    assert left == [[foreign]]


@pytest.mark.slow
def test_a_restore_that_is_killed_while_it_exchanges_tables_is_completed_by_the_next_and_by_nobody_else(
    store: Store, settings: Settings, of_two: Path, caplog: pytest.LogCaptureFixture
) -> None:
    commit(store, {"token;a": [(100, Decimal(1))]})
    exchanged = []

    def die(statement: Statement) -> None:
        if statement.name.startswith("EXCHANGE"):
            exchanged.append(statement)
            if len(exchanged) == len(TABLES) // 2:
                raise StoreUnavailable("ClickHouse is gone.")

    with closing(WatchedStore(settings, before=die)) as broken, pytest.raises(StoreUnavailable):
        restore(broken, ArchiveReader(of_two), Silent(), replace=True)
    ledger = read_ledger(store)
    ((version,),) = {tuple(versions) for versions in ledger.open.values()}
    assert {"prices", "positions"} < set(ledger.open)
    Recovery(store).roll_forward([(family, version) for family in sorted(ledger.open)])
    assert set(read_ledger(store).open) == set(ledger.open)
    cure = "restore was interrupted; run `analytics-service restore` again, which completes it"
    assert caplog.messages == [f"A {cure}."]
    # Nobody writes into tables of which some are exchanged.
    with pytest.raises(StoreUnavailable, match=cure):
        begin(store, "prices", 0, 100)
    with pytest.raises(StoreUnavailable, match=cure), staging(store, "prices", None):
        pytest.fail("A rewrite has begun.")
    # Its last heartbeat was long ago.
    store.execute(f"INSERT INTO rewrite (family, version, announced_at) VALUES ('{RESTORE}', {version}, now() + 60)")
    monitor = Monitor(FreshHeads(store), dict, lambda: NOW, is_configured=False)
    assert monitor.obstacles() == [f"a {cure}"]
    assert monitor.check().faults == monitor.obstacles()
    # This one has nothing else to do.
    with pytest.raises(BackupRefused, match="There is data in"):
        restore(store, ArchiveReader(of_two), Silent(), replace=False)
    assert prices(settings) == TWO
    assert read_ledger(store).open == {}
    assert store.frame("table_engines", database=restored_into(store, version))["engine"].to_list() == [None]


@pytest.mark.slow
def test_backups_of_newer_versions_are_refused(of_two: Path, tmp_path: Path) -> None:
    later = {"number": 999, "name": "0999_later.sql", "checksum": "0" * 64}
    newer = changed(of_two, tmp_path, lambda manifest: manifest["migrations"].append(later))
    with pytest.raises(BackupRefused, match=r"0999_later\.sql.*newer version"):
        require_restorable(ArchiveReader(newer).manifest)
    other = changed(of_two, tmp_path, lambda manifest: manifest["migrations"][0].update(checksum="0" * 64))
    with pytest.raises(BackupRefused, match=r"Migration 0001_ledger\.sql was changed"):
        require_restorable(ArchiveReader(other).manifest)
    for number, cure in ((FORMAT + 1, "newer version"), (FORMAT - 1, "unreleased")):
        strange = changed(of_two, tmp_path, lambda manifest, number=number: manifest.update(format=number))
        with pytest.raises(BackupRefused, match=f"format {number}, .*{cure}"):
            ArchiveReader(strange)


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["{database}.asset", "snapshot_head", "asset (asset_id) SELECT 'x' -- ", "FUNCTION url('x')"]
)
def test_tables_that_no_backup_has_are_refused_before_anything_is_written(
    store: Store, of_two: Path, tmp_path: Path, name: str
) -> None:
    """Their names would become part of statements."""
    table = {"rows": 1, "bytes": 0, "sha256": hashlib.sha256().hexdigest()}
    named = {name.format(database=store.database): table}
    made_up = changed(of_two, tmp_path, lambda manifest: manifest["tables"].update(named))
    write = Meanwhile(lambda: pytest.fail("The restore has begun."), 1)
    with pytest.raises(BackupRefused, match="The backup has tables that no backup has"):
        restore(store, ArchiveReader(made_up), write, replace=True)


@pytest.mark.slow
def test_a_backup_of_an_older_schema_is_migrated(settings: Settings, of_two: Path) -> None:
    """Here of one without swap routes, and what came later."""
    with closing(Store(settings)) as store:
        migrate(store)
        manifest = ArchiveReader(of_two).manifest
        swaps = [migration.name for migration in manifest.migrations].index("0008_swaps.sql")
        older, known = ArchiveReader(of_two), tables_of(shipped()[:swaps])
        tables = {name: table for name, table in manifest.tables.items() if name in known}
        older.manifest = replace(manifest, migrations=manifest.migrations[:swaps], tables=tables)
        restore(store, older, Silent(), replace=False)
        assert missing(store) == {}
    assert prices(settings) == TWO


@pytest.mark.slow
def test_tables_that_were_dropped_by_hand_come_back(store: Store, settings: Settings, of_two: Path) -> None:
    dropped = ["snapshot_head_view", "observation", "cell", "account_event", "snapshot_head"]
    for name in dropped:
        store.execute(f"DROP TABLE {name} SYNC")
    with pytest.raises(BackupRefused, match="snapshot_head"):
        restore(store, ArchiveReader(of_two), Silent(), replace=False)
    record(store, [JobRun("prices", "running:3", 60, 0)])
    with pytest.raises(BackupRefused, match="running:3"):
        restore(store, ArchiveReader(of_two), Silent(), replace=True)
    assert set(missing(store)) == set(dropped)
    record(store, [JobRun("prices", "running:3", 60, None)])
    restore(store, ArchiveReader(of_two), Silent(), replace=True)
    assert prices(settings) == TWO
    assert missing(store) == {}
    commit(store, {"token;b": [(160, Decimal(5))]})
    assert read_ledger(store).heads["prices"].at == 160


@pytest.mark.slow
def test_a_store_that_a_scheduler_writes_to_is_refused(store: Store, settings: Settings, of_two: Path) -> None:
    """One that has stopped says so, and one that was killed falls silent. One may begin during the restore."""
    with client(settings) as own:
        columns = "(family, scheduler, heard_at, every, next_at)"
        own.command(f"INSERT INTO job_run {columns} VALUES ('prices', 'killed:1', now() - 181, 60, now())")
    record(store, [JobRun("prices", "stopped:2", 60, None), JobRun("routes", "running:3", 3600, 0)])
    alive = {scheduler.name: scheduler.alive for scheduler in read_runs(store)[1]}
    assert alive == {"killed:1": False, "stopped:2": False, "running:3": True}
    with pytest.raises(BackupRefused, match=r"The scheduler running:3 writes to the store"):
        restore(store, ArchiveReader(of_two), Silent(), replace=True)
    record(store, [JobRun("routes", "running:3", 3600, None)])
    start = Meanwhile(lambda: record(store, [JobRun("routes", "late:4", 3600, 0)]), 1)
    with pytest.raises(BackupRefused, match=r"The scheduler late:4 writes to the store"):
        restore(store, ArchiveReader(of_two), start, replace=True)
    assert prices(settings) == []
    record(store, [JobRun("routes", "late:4", 3600, None)])
    restore(store, ArchiveReader(of_two), Silent(), replace=True)
    assert prices(settings) == TWO
