"""Restores a backup into a new database, which then replaces the store's.

Nothing else may use the store meanwhile. The old database stays until the new one is complete and checked.
"""

import shutil
import tarfile
from collections.abc import Sequence
from contextlib import closing, suppress
from pathlib import Path

from analytics_service.admin.backup import (
    DATABASE,
    FIRST,
    FIRST_TABLES,
    SECOND,
    SPARE,
    backup_disk,
    empty_folder,
    run_statement,
    second_tables,
    statement_tables,
)
from analytics_service.clickhouse.connection import Store
from analytics_service.clickhouse.errors import Reporter
from analytics_service.errors import AnalyticsError, DiskFull, OperationFailed, SchemaError, UserError
from analytics_service.store.job_runs import JOB_RUNS
from analytics_service.store.migrations import migrate
from analytics_service.store.schema import pending_migrations, shipped_migrations
from analytics_service.store.write_lock import LOCKS

# Suffix of the database that is filled.
RESTORING = "_restoring"
# Tables that have rows even in a store without data.
_ALWAYS_FILLED = {"schema_migration", JOB_RUNS, LOCKS}
_NOT_ONE = "{} is not a complete backup of this service."


def restore(store: Store, path: Path, folder: Path, reporter: Reporter, *, replace: bool) -> None:
    """Replace the store's content by a backup's. The backup is unpacked into `folder`.

    UserError for a file that cannot be restored, and for a store with data unless `replace`; DiskFull without room;
    OperationFailed for a damaged file. Nothing is changed then.
    """
    store.command(f"CREATE DATABASE IF NOT EXISTS `{store.database}`", in_database=False)
    filled = {name for name, size in store.query("list_tables").iter_rows() if size} - _ALWAYS_FILLED
    if filled and not replace:
        raise UserError("The store has data. With --replace, the backup replaces all of it.")
    name = store.database + RESTORING
    try:
        with empty_folder(folder), closing(store.sibling(name)) as beside:
            # A restore that was killed may have left it.
            drop_database(store, name)
            _unpack(path, folder, reporter)
            _load(beside, folder, reporter)
    except BaseException:
        with suppress(AnalyticsError):
            drop_database(store, name)
        raise
    # Migrating makes the views and the heads: views would name the other database.
    drop_database(store, store.database)
    store.command(f"RENAME DATABASE `{name}` TO `{store.database}`", in_database=False)
    migrate(store, is_alone=True)


def drop_database(store: Store, name: str) -> None:
    store.command(f"DROP DATABASE IF EXISTS `{name}` SYNC", in_database=False)


def _unpack(path: Path, folder: Path, reporter: Reporter) -> None:
    """Unpack a backup. Refuses links, devices, and members that would leave the folder."""
    # Opening a named pipe would wait for its writer.
    if not path.is_file():
        raise UserError(f"{path} is not a file. Name another file.")
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
        raise UserError(_NOT_ONE.format(path)) from error
    except OSError as error:
        raise OperationFailed(f"{path} cannot be unpacked into {folder} ({error.strerror or error}).") from error
    if not all((folder / part / ".backup").is_file() for part in (FIRST, SECOND)):
        raise UserError(_NOT_ONE.format(path))


def _load(beside: Store, folder: Path, reporter: Reporter) -> None:
    """Fill a new database. UserError for a backup of a newer version, OperationFailed for a damaged file."""
    beside.command(f"CREATE DATABASE `{beside.database}`", in_database=False)
    with beside.together("restore"):
        _load_part(beside, folder, FIRST, FIRST_TABLES, reporter)
        try:
            missing = pending_migrations(beside)
        except SchemaError as error:
            raise UserError(f"The backup was written by another version: {error}") from error
        applied = [migration for migration in shipped_migrations() if migration not in missing]
        _load_part(beside, folder, SECOND, second_tables(applied), reporter)
    # These rows are about processes that use the backed-up store.
    for table in (JOB_RUNS, LOCKS):
        beside.execute(f"TRUNCATE TABLE IF EXISTS {table}")


def _load_part(beside: Store, folder: Path, part: str, names: Sequence[str], reporter: Reporter) -> None:
    """Restore the tables of a part, and check their files."""
    tables = statement_tables(names, DATABASE, beside.database)
    size = sum(file.stat().st_size for file in (folder / part).rglob("*"))
    run_statement(beside, f"RESTORE {tables} FROM {backup_disk(folder, part)}", ("Restoring", size), reporter)
    reporter.stage("Checking", len(names))
    for name in names:
        if not beside.query("check_table", {"table": name})["result"].item():
            raise OperationFailed(f"The backup is damaged: the files of table {name} differ from what was written.")
        reporter.advance(1)
