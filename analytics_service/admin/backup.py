"""Backs up the store of a data folder into one file, while the service runs.

ClickHouse's BACKUP copies each table as of a moment. The ledger is copied first, so the tables have every row of the
commits that it lists. Rows of later commits are copied, too, but no reader sees them. The write lock keeps corrections
out. If a job adds late observations meanwhile (rule 8.1, late data), the backup starts over.
"""

import os
import secrets
import shutil
import tarfile
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from analytics_service.clickhouse.connection import Store
from analytics_service.clickhouse.errors import Reporter
from analytics_service.config.private_files import NewFile
from analytics_service.errors import AnalyticsError, OperationFailed, StoreUnavailable, Superseded, UserError
from analytics_service.store.ledger import HEADS, LEDGER, read_heads, require_unchanged
from analytics_service.store.rewrite import correction
from analytics_service.store.schema import (
    Migration,
    missing_message,
    missing_tables,
    shipped_migrations,
    tables_of,
)
from analytics_service.store.write_lock import ALL

# The two parts of a backup, in order, and the tables of the first: with the migrations of the second one's tables.
FIRST, SECOND = "ledger", "tables"
FIRST_TABLES = (LEDGER, "schema_migration")
# Bytes that a backup leaves free on the disk.
SPARE = 64 * 2**20
# The name of the database within a backup.
DATABASE = "analytics"
_ATTEMPTS = 5
_PAUSE = 0.1


def second_tables(migrations: Sequence[Migration]) -> list[str]:
    """The tables of the second part. The heads are left out, because they follow from the ledger."""
    return [name for name in tables_of(migrations) if name not in (LEDGER, HEADS)]


def back_up(store: Store, path: Path, folder: Path, reporter: Reporter) -> None:
    """Write the store, whose schema is current, into a new file. `folder` holds the parts until they are packed.

    UserError if the file exists or the store lacks tables; DiskFull without room; CorrectionInProgress during a
    correction; OperationFailed if the file cannot be written, or history was rewritten during every attempt.
    """
    # Refuse a dangling link, too: the file would replace it.
    if os.path.lexists(path):
        raise UserError(f"{path} exists. Name another file.")
    if not os.access(path.parent, os.W_OK):
        raise UserError(f"{path.parent} is not a folder that this user may write to. Name a file in another folder.")
    if missing := missing_tables(store):
        raise UserError(missing_message(missing))
    with correction(store, ALL, "backup"):
        for _ in range(_ATTEMPTS):
            with suppress(Superseded), empty_folder(folder):
                _copy(store, folder, reporter)
                _pack(folder, path, reporter)
                return
    raise OperationFailed("History was rewritten during every attempt. Take the backup later.")


def _copy(store: Store, folder: Path, reporter: Reporter) -> None:
    """Make ClickHouse copy all tables into the folder. Superseded if history was rewritten meanwhile."""
    heads = read_heads(store)
    sizes = dict(store.query("list_tables").iter_rows())
    store.require_room(sum(sizes.values()) + SPARE)
    for part, names in ((FIRST, FIRST_TABLES), (SECOND, second_tables(shipped_migrations()))):
        tables = statement_tables(names, store.database, DATABASE)
        size = sum(sizes[name] for name in names)
        run_statement(store, f"BACKUP {tables} TO {backup_disk(folder, part)}", ("Copying", size), reporter)
    require_unchanged(store, *heads.values())


def _pack(folder: Path, path: Path, reporter: Reporter) -> None:
    """Pack the folder into one file."""
    # ClickHouse's lists of the files of each part, `.backup`, come last: without them, the file is incomplete.
    files = [file for file in sorted(folder.rglob("*"), reverse=True) if file.is_file()]
    reporter.stage("Packing", sum(file.stat().st_size for file in files))
    try:
        with NewFile(path) as new:
            with tarfile.open(fileobj=new.file, mode="w") as archive:
                for file in files:
                    archive.add(file, file.relative_to(folder))
                    reporter.advance(file.stat().st_size)
            new.keep()
    except OSError as error:
        raise OperationFailed(f"The backup {path} cannot be written ({error.strerror or error}).") from error


@contextmanager
def empty_folder(folder: Path) -> Iterator[None]:
    """Remove a folder before and after the block. A backup or restore that was killed may have left it."""
    try:
        shutil.rmtree(folder, ignore_errors=True)
        yield
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def statement_tables(names: Iterable[str], database: str, other: str) -> str:
    """The tables of a BACKUP or RESTORE statement, with `other` as their new database."""
    return ", ".join(f"TABLE `{database}`.{name} AS `{other}`.{name}" for name in names)


def backup_disk(folder: Path, part: str) -> str:
    """The name of a part in BACKUP and RESTORE statements."""
    return f"Disk('backups', '{folder.name}/{part}')"


def run_statement(store: Store, statement: str, stage: tuple[str, int], reporter: Reporter) -> None:
    """Execute a BACKUP or RESTORE without a time limit. `stage` is its label and its number of bytes.

    OperationFailed if it fails, DiskFull if the disk is the reason, StoreUnavailable if ClickHouse was restarted.
    """
    own, done = secrets.token_hex(8), 0
    reporter.stage(*stage)
    store.command(f"{statement} SETTINGS id = '{own}' ASYNC", in_database=False)
    try:
        while True:
            rows = store.query("read_backup_progress", id=own)
            if rows.is_empty():
                raise StoreUnavailable("ClickHouse was restarted meanwhile.")
            status, error, copied = rows.row(0)
            reporter.advance(copied - done)
            if status in ("BACKUP_CREATED", "RESTORED"):
                return
            if status not in ("CREATING_BACKUP", "RESTORING"):
                # On a full disk, ClickHouse's error may be any.
                store.require_room(SPARE)
                raise OperationFailed(f"ClickHouse reports an error: {error.partition(', Stack trace')[0][:500]}")
            done = copied
            time.sleep(_PAUSE)
    except BaseException:
        with suppress(AnalyticsError):
            store.run("kill_backup", id=own)
        raise
