"""Restores a backup into a new database, which then replaces the store's.

Nothing else may use the store meanwhile. The old database stays until the new one is complete and checked.
"""

import json
import shutil
import tarfile
from contextlib import closing, suppress
from pathlib import Path

from analytics_service.admin.backup import (
    DATABASE,
    MANIFEST,
    SPARE,
    Manifest,
    backup_disk,
    empty_folder,
    run_statement,
    saved_tables,
    statement_tables,
)
from analytics_service.clickhouse.connection import Store
from analytics_service.clickhouse.errors import Reporter
from analytics_service.errors import AnalyticsError, DiskFull, OperationFailed, SchemaError, UserError
from analytics_service.store.job_runs import JOB_RUNS
from analytics_service.store.migrations import migrate
from analytics_service.store.schema import Applied, Migration, shipped_migrations, unapplied_migrations
from analytics_service.store.write_lock import LOCKS

# Suffix of the database that is filled.
RESTORING = "_restoring"
# Tables that have rows even in a store without data.
_ALWAYS_FILLED = {"schema_migration", JOB_RUNS, LOCKS}
# Largest manifest, in bytes.
_MOST = 2**20


def read_manifest(path: Path) -> Manifest:
    """The manifest of a backup. UserError if the file is not a complete backup of a known schema."""
    try:
        # Opening a named pipe would wait for its writer.
        if not path.is_file():
            raise UserError(f"{path} is not a file. Name another file.")
        with tarfile.open(path, "r:") as archive:
            last = archive.getmembers()[-1]
            member = archive.extractfile(last) if last.name == MANIFEST else None
            fields = json.loads(member.read(_MOST) if member else "")
        fields["migrations"] = [Applied(**each) for each in fields["migrations"]]
        manifest = Manifest(**fields)
    except (tarfile.TarError, EOFError, ValueError, TypeError, KeyError, IndexError) as error:
        raise UserError(f"{path} is not a complete backup of this service.") from error
    except OSError as error:
        raise UserError(f"{path} cannot be read ({error.strerror or error}).") from error
    try:
        unapplied_migrations(manifest.migrations, shipped_migrations())
    except SchemaError as error:
        raise UserError(f"{path} was written by another version: {error}") from error
    return manifest


def restore(store: Store, path: Path, folder: Path, reporter: Reporter, *, replace: bool) -> Manifest:
    """Replace the store's content by a backup's. The backup is unpacked into `folder`.

    UserError for a file that cannot be restored, and for a store with data unless `replace`; DiskFull without room;
    OperationFailed for a damaged file. Nothing is changed then.
    """
    manifest = read_manifest(path)
    store.command(f"CREATE DATABASE IF NOT EXISTS `{store.database}`", in_database=False)
    filled = {name for name, size in store.query("list_tables").iter_rows() if size} - _ALWAYS_FILLED
    if filled and not replace:
        raise UserError("The store has data. With --replace, the backup replaces all of it.")
    applied = {each.number for each in manifest.migrations}
    name = store.database + RESTORING
    try:
        with empty_folder(folder), closing(store.sibling(name)) as beside:
            # A restore that was killed may have left it.
            drop_database(store, name)
            _unpack(path, folder, reporter)
            _load(beside, folder, [each for each in shipped_migrations() if each.number in applied], reporter)
    except BaseException:
        with suppress(AnalyticsError):
            drop_database(store, name)
        raise
    # Migrating makes the views and the heads: views would name the other database.
    drop_database(store, store.database)
    store.command(f"RENAME DATABASE `{name}` TO `{store.database}`", in_database=False)
    migrate(store, is_alone=True)
    return manifest


def drop_database(store: Store, name: str) -> None:
    store.command(f"DROP DATABASE IF EXISTS `{name}` SYNC", in_database=False)


def _unpack(path: Path, folder: Path, reporter: Reporter) -> None:
    """Unpack a backup. Refuses links, devices, and members that would leave the folder."""
    size = path.stat().st_size
    folder.mkdir(parents=True)
    # For the unpacked and for the restored data.
    if (free := shutil.disk_usage(folder).free) < 2 * size + SPARE:
        raise DiskFull(f"{free / 2**20:,.0f} MiB are free, {(2 * size + SPARE) / 2**20:,.0f} MiB are needed")
    reporter.stage("Unpacking", size)
    try:
        with tarfile.open(path, "r:") as archive:
            for member in archive:
                archive.extract(member, folder, filter="data")
                reporter.advance(member.size)
    except tarfile.TarError as error:
        raise UserError(f"{path} is not a complete backup of this service.") from error
    except OSError as error:
        raise OperationFailed(f"{path} cannot be unpacked into {folder} ({error.strerror or error}).") from error


def _load(beside: Store, folder: Path, migrations: list[Migration], reporter: Reporter) -> None:
    """Fill a new database. OperationFailed for a damaged file."""
    beside.command(f"CREATE DATABASE `{beside.database}`", in_database=False)
    parts = saved_tables(migrations)
    with beside.together("restore"):
        for part, names in parts.items():
            tables = statement_tables(names, DATABASE, beside.database)
            size = sum(file.stat().st_size for file in (folder / part).rglob("*"))
            run_statement(beside, f"RESTORE {tables} FROM {backup_disk(folder, part)}", ("Restoring", size), reporter)
    names = [name for names in parts.values() for name in names]
    reporter.stage("Checking", len(names))
    for name in names:
        if not beside.query("check_table", {"table": name})["result"].item():
            raise OperationFailed(f"The backup is damaged: the files of table {name} differ from what was written.")
        reporter.advance(1)
    # These rows are about processes that use the backed-up store.
    for table in (JOB_RUNS, LOCKS):
        beside.execute(f"TRUNCATE TABLE IF EXISTS {table}")
