"""Backs up the store of a data folder into one file, while the service runs.

ClickHouse's BACKUP copies each table as of a moment. The ledger is copied first, so the tables have every row of the
commits that it lists. Rows of later commits are copied, too, but no reader sees them. The write lock keeps corrections
out. If a job adds late observations meanwhile (rule 8.1, late data), the backup starts over.
"""

import json
import os
import secrets
import shutil
import tarfile
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

from analytics_service.clickhouse.connection import Store
from analytics_service.clickhouse.errors import Reporter
from analytics_service.config.private_files import NewFile
from analytics_service.errors import AnalyticsError, OperationFailed, StoreUnavailable, Superseded, UserError
from analytics_service.market.instants import unix_second
from analytics_service.store.ledger import HEADS, LEDGER, read_heads, require_unchanged
from analytics_service.store.rewrite import correction
from analytics_service.store.schema import (
    Applied,
    Migration,
    missing_message,
    missing_tables,
    shipped_migrations,
    tables_of,
)
from analytics_service.store.write_lock import ALL

# The last member of the file. Without it, the file is incomplete.
MANIFEST = "backup.json"
# The two parts of a backup, in order.
FIRST, SECOND = "ledger", "tables"
# Bytes that a backup leaves free on the disk.
SPARE = 64 * 2**20
# The name of the database within a backup.
DATABASE = "analytics"
_ATTEMPTS = 5
_PAUSE = 0.1


@dataclass(frozen=True, slots=True)
class Manifest:
    """Describes a backup: its time (unix second), and the applied migrations of its store."""

    taken_at: int
    migrations: Sequence[Applied]


def saved_tables(migrations: Sequence[Migration]) -> dict[str, list[str]]:
    """The tables of each part of a backup. The heads are left out, because they follow from the ledger."""
    others = [name for name in tables_of(migrations) if name not in (LEDGER, HEADS)]
    return {FIRST: [LEDGER], SECOND: [*others, "schema_migration"]}


def back_up(store: Store, path: Path, folder: Path, reporter: Reporter) -> Manifest:
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
                manifest = _copy(store, folder, reporter)
                _pack(folder, path, manifest, reporter)
                return manifest
    raise OperationFailed("History was rewritten during every attempt. Take the backup later.")


def _copy(store: Store, folder: Path, reporter: Reporter) -> Manifest:
    """Make ClickHouse copy all tables into the folder. Superseded if history was rewritten meanwhile."""
    heads = read_heads(store)
    taken_at = unix_second(datetime.now(UTC).replace(microsecond=0))
    sizes = dict(store.query("list_tables").iter_rows())
    store.require_room(sum(sizes.values()) + SPARE)
    for part, names in saved_tables(shipped_migrations()).items():
        tables = statement_tables(names, store.database, DATABASE)
        size = sum(sizes[name] for name in names)
        run_statement(store, f"BACKUP {tables} TO {backup_disk(folder, part)}", ("Copying", size), reporter)
    require_unchanged(store, *heads.values())
    applied = [Applied(migration.number, migration.name, migration.checksum) for migration in shipped_migrations()]
    return Manifest(taken_at, applied)


def _pack(folder: Path, path: Path, manifest: Manifest, reporter: Reporter) -> None:
    """Pack the folder into one file."""
    (folder / MANIFEST).write_text(json.dumps(asdict(manifest)), "utf-8")
    files = [file for part in (FIRST, SECOND) for file in sorted((folder / part).rglob("*")) if file.is_file()]
    reporter.stage("Packing", sum(file.stat().st_size for file in files))
    try:
        with NewFile(path) as new:
            with tarfile.open(fileobj=new.file, mode="w") as archive:
                for file in (*files, folder / MANIFEST):
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
