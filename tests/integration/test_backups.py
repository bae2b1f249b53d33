"""Backups: what is in them, and what restoring one leaves, on the real server."""

import json
import zipfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from analytics_service.backups.archive import FORMAT, ArchiveReader, Manifest, Script, Snapshot, TableContent, writing
from analytics_service.backups.restoring import require_restorable, restore
from analytics_service.backups.taking import NOT_SAVED, back_up
from analytics_service.config import Settings
from analytics_service.errors import BackupFailed, BackupRefused, Superseded
from analytics_service.history.catalogue import HISTORIES
from analytics_service.store.admission import read_holdings
from analytics_service.store.announcements import REWRITE, tell
from analytics_service.store.applied import shipped
from analytics_service.store.cells import cell_table, write_all_cells
from analytics_service.store.connection import Store
from analytics_service.store.families import FAMILY_OF, TABLES
from analytics_service.store.job_runs import JobRun, read_runs, record
from analytics_service.store.ledger import Origin, new_version, oldest_change, read_ledger, require_unchanged
from analytics_service.store.migrations import migrate
from analytics_service.store.progress import NO_REPORT
from analytics_service.store.schema import missing, schema_of
from analytics_service.store.sql import Parts
from tests.clickhouse import by_url, client
from tests.integration.conftest import Simulated
from tests.integration.databases import database
from tests.integration.pages import asset, commit
from tests.stored import write_assets

NOW = datetime(2026, 1, 1, tzinfo=UTC)
SCHEMA = schema_of(shipped())


class Silent:
    """Shows no progress."""

    def stage(self, label: str, total: int) -> None:
        pass

    def advance(self, count: int) -> None:
        pass


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

        yield {table: rows(table) for table in SCHEMA.tables if table not in NOT_SAVED}


def test_a_restored_store_has_the_same_rows_in_every_table(
    simulated: Simulated, backup: Path, store: Store, settings: Settings
) -> None:
    """Rollups and heads, too, which are not in the file: views fill them."""
    restore(store, ArchiveReader(backup), Silent(), replace=False)
    with contents(simulated.settings) as before, contents(settings) as after:
        assert before.keys() == after.keys()
        for table in before:
            # Nothing was dropped there.
            assert before[table] or table == "raw_dropped", table
            if table != "snapshot_head":
                assert after[table] == before[table], table
    known, restored = read_ledger(simulated.store), read_ledger(store)
    assert restored.origins == known.origins
    assert {f: (h.at, h.last_observed_at, h.version) for f, h in restored.heads.items()} == {
        f: (h.at, h.last_observed_at, h.version) for f, h in known.heads.items()
    }
    assert read_holdings(store).claimed_by == "simulated:1"


def test_the_families_of_tables_are_those_whose_runs_write_them(simulated: Simulated) -> None:
    """Each table has rows of runs of its family only. Definitions, the ledger and what views fill belong to none."""
    for table, family in FAMILY_OF.items():
        own = f"version IN (SELECT version FROM snapshot WHERE family = '{family}')"
        found = simulated.rows(f"SELECT count() > 0 AS some, countIf(NOT {own}) AS others FROM {table}")
        assert found == [{"some": 1, "others": 0}], table
    cells = {cell_table(history.table) for history in HISTORIES}
    assert set(SCHEMA.sources) == {*FAMILY_OF, *cells, "snapshot", "asset", "raw_dropped", *NOT_SAVED}
    assert TABLES.keys() == read_ledger(simulated.store).heads.keys()


def prices(settings: Settings) -> list[tuple[str, int, Decimal]]:
    """The prices of a store, by asset and time."""
    with client(settings) as own:
        query = "SELECT asset_id, toUnixTimestamp(observed_at), price FROM price FINAL ORDER BY ALL"
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


def test_amounts_are_exact_and_rows_of_a_run_that_is_not_complete_stay_out(
    store: Store, settings: Settings, tmp_path: Path
) -> None:
    """Nor are the cells that such a run has closed already."""
    commit(store, {"token;a": [(100, Decimal(1)), (900, Decimal(1))]})
    later = "('token;a', 960, 7, 9000000000000), ('token;a', 1800, 7, 9000000000000)"
    store.execute(f"INSERT INTO price (asset_id, observed_at, price, version) VALUES {later}")
    write_all_cells(store, NO_REPORT)
    greatest, decimal = 2**256 - 1, "99999999999999999999.999999999999999999"
    store.execute(
        "INSERT INTO event (at, id, kind, asset_id, address, amount, usd, version) "
        f"VALUES (100, 'e', 'borrow', 'token;a', 'x', toUInt256('{greatest}'), toDecimal128('{decimal}', 18), 1)"
    )
    store.execute("INSERT INTO snapshot (family, at, kind, version) VALUES ('loans', 100, 'job', 1)")
    back_up(store, tmp_path / "backup.zip", NOW, Silent())
    store.execute("TRUNCATE TABLE event")
    restore(store, ArchiveReader(tmp_path / "backup.zip"), Silent(), replace=True)
    assert prices(settings) == [*ONE, ("token;a", 900, Decimal(1))]
    with client(settings) as own:
        assert own.query("SELECT toUnixTimestamp(cell), close FROM price_cell").result_rows == [(0, Decimal(1))]
        assert own.query("SELECT amount, usd FROM event").result_rows == [(greatest, Decimal(decimal))]


def test_rows_of_a_run_that_was_overtaken_by_definitions_stay_out(
    store: Store, settings: Settings, tmp_path: Path
) -> None:
    """The row of the ledger that shows the definitions has a greater version than the run, which is not listed yet."""
    commit(store, {"token;a": [(100, Decimal(1))]})
    under_way = new_version(store)
    store.execute(f"INSERT INTO price (asset_id, observed_at, price, version) VALUES ('token;a', 200, 7, {under_way})")
    write_assets(store, [asset("new")], version=new_version(store))
    store.run("show_assets", family="prices", version=new_version(store))
    assert read_ledger(store).heads["prices"].version > under_way
    back_up(store, tmp_path / "backup.zip", NOW, Silent())
    restore(store, ArchiveReader(tmp_path / "backup.zip"), Silent(), replace=True)
    assert prices(settings) == ONE


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


def test_a_backup_begins_again_when_history_is_rewritten_meanwhile(store: Store, tmp_path: Path) -> None:
    commit(store, {"token;a": [(100, Decimal(1))]})
    rewrite = lambda: tell(store, REWRITE, ["prices"], new_version(store), finished=1)  # noqa: E731
    back_up(store, tmp_path / "backup.zip", NOW, Meanwhile(rewrite, 1))
    assert ArchiveReader(tmp_path / "backup.zip").manifest.tables["price"].rows == 1
    with pytest.raises(BackupFailed, match="again and again"):
        back_up(store, tmp_path / "other.zip", NOW, Meanwhile(rewrite, 100))
    assert [path.name for path in tmp_path.iterdir()] == ["backup.zip"]


def test_a_backup_begins_again_when_rows_without_a_time_are_added_while_it_reads_them(
    settings: Settings, tmp_path: Path
) -> None:
    """The rows of such a table are those of all runs, and are counted after they were read."""
    added: list[int] = []

    class Busy(Store):
        """Describes another asset as soon as the rows of `asset` were read, twice."""

        def native_rows(self, query: str, parts: Parts = (), **parameters: object) -> Iterator[bytes]:
            yield from super().native_rows(query, parts, **parameters)
            if parameters["table"] == "asset" and len(added) < 2:
                added.append(len(added))
                write_assets(self, [asset(f"new{len(added)}")], version=new_version(self))

    with closing(Busy(settings)) as store:
        migrate(store)
        commit(store, {"token;a": [(100, Decimal(1))]})
        before = store.frame("backup_count", {"only": "true"}, table="asset")["rows"][0]
        manifest = back_up(store, tmp_path / "backup.zip", NOW, NO_REPORT)
        assert manifest.tables["asset"].rows == before + 2
        restore(store, ArchiveReader(tmp_path / "backup.zip"), NO_REPORT, replace=True)
        assert store.frame("backup_count", {"only": "true"}, table="asset")["rows"][0] == before + 2


def test_a_backup_begins_again_when_a_row_of_the_ledger_is_replaced_while_it_begins(
    settings: Settings, tmp_path: Path
) -> None:
    """As when a second import of rates brings an asset: its description is shown with prices."""

    class Busy(Store):
        """Has another definition shown before the rows of the ledger are read for the first time."""

        begun = False

        def native_rows(self, query: str, parts: Parts = (), **parameters: object) -> Iterator[bytes]:
            if not self.begun:
                self.begun = True
                self.show("second")
            return super().native_rows(query, parts, **parameters)

        def show(self, name: str) -> None:
            write_assets(self, [asset(name)], version=new_version(self))
            self.run("show_assets", family="prices", version=new_version(self))
            self.execute("OPTIMIZE TABLE snapshot FINAL")

    with closing(Busy(settings)) as store:
        migrate(store)
        commit(store, {"token;a": [(100, Decimal(1))]})
        store.show("first")
        back_up(store, tmp_path / "backup.zip", NOW, NO_REPORT)
        assert store.begun
        head = read_ledger(store).heads["prices"]
        restore(store, ArchiveReader(tmp_path / "backup.zip"), NO_REPORT, replace=True)
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
    store.execute_outside_database(f"CREATE DATABASE {store.database}_restore_1 COMMENT '{comment}'")
    foreign = f"{store.database}_restore_2"
    store.execute_outside_database(f"CREATE DATABASE {foreign}")
    short = changed(of_two, tmp_path, lambda manifest: manifest["tables"]["price"].update(rows=3))
    with pytest.raises(BackupRefused, match="price has 2 rows, and the backup says 3"):
        restore(store, ArchiveReader(short), Silent(), replace=True)
    assert prices(settings) == ONE
    with closing(Store(replace(settings, clickhouse_database=foreign))) as other, client(by_url(settings)) as own:
        left = own.query(f"SHOW DATABASES LIKE '{store.database}\\_restore\\_%'").result_columns
        other.execute_outside_database(f"DROP DATABASE {foreign}")
    assert left == [[foreign]]


def test_backups_of_newer_versions_are_refused(of_two: Path, tmp_path: Path) -> None:
    later = {"number": 999, "name": "0999_later.sql", "checksum": "0" * 64}
    newer = changed(of_two, tmp_path, lambda manifest: manifest["migrations"].append(later))
    with pytest.raises(BackupRefused, match=r"0999_later\.sql.*newer version"):
        require_restorable(ArchiveReader(newer).manifest)
    other = changed(of_two, tmp_path, lambda manifest: manifest["migrations"][0].update(checksum="0" * 64))
    with pytest.raises(BackupRefused, match=r"0001_ledger\.sql is not the one"):
        require_restorable(ArchiveReader(other).manifest)
    format_2 = changed(of_two, tmp_path, lambda manifest: manifest.update(format=2))
    with pytest.raises(BackupRefused, match="format 2"):
        ArchiveReader(format_2)


def test_a_backup_of_an_older_schema_is_migrated(
    server: Settings, store: Store, settings: Settings, tmp_path: Path
) -> None:
    """Here it is from before runs said whether they are simulated."""
    older = shipped()[:12]
    old = Store(replace(server, clickhouse_database="test_backup_of_older"))
    try:
        migrate(old, older)
        old.execute(
            "INSERT INTO snapshot (family, at, kind, last_observed_at, source, version) "
            "VALUES ('prices', 100, 'job', 100, 'simulated:3', 5)"
        )
        old.execute("INSERT INTO price (asset_id, observed_at, price, version) VALUES ('token;a', 100, 1, 5)")
        with writing(tmp_path / "old.zip") as archive:
            tables = {}
            for name in ("snapshot", "price"):
                rows = old.native_rows("backup_rows", {"only": "true"}, table=name)
                tables[name] = TableContent(1, *archive.add(name, rows, Silent()))
            scripts = [Script(each.number, each.name, each.checksum) for each in older]
            heads = {"prices": Snapshot(100, 100, 5)}
            archive.finish(Manifest(FORMAT, 0, "", "", [], None, scripts, heads, tables))
    finally:
        old.execute_outside_database(f"DROP DATABASE IF EXISTS {old.database} SYNC")
        old.close()
    restore(store, ArchiveReader(tmp_path / "old.zip"), Silent(), replace=False)
    assert prices(settings) == ONE
    assert read_ledger(store).origins == {Origin("simulated:3", simulated=True)}


def test_tables_that_were_dropped_by_hand_come_back(store: Store, settings: Settings, of_two: Path) -> None:
    dropped = ["snapshot_head_view", "price", "price_cell", "event", "snapshot_head"]
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
