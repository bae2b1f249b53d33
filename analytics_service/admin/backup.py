"""Backs up the store of a data folder into one file, while the service runs.

ClickHouse's BACKUP copies each table as it is at a moment. The ledger is copied first: the tables then have every row
of the commits that it lists. Rows of later commits come along, and nobody is shown them. The write lock keeps
corrections out; if a job brings observations late meanwhile (rule 8.1), the backup begins again.
"""

import json
import os
import secrets
import tarfile
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

from analytics_service.clickhouse.connection import Store
from analytics_service.clickhouse.errors import Reporter
from analytics_service.config.private_files import NewFile
from analytics_service.config.settings import service_version
from analytics_service.embedded.leftovers import empty_folder
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

# The last member of the file: without it, the file is not whole.
MANIFEST = "backup.json"
FORMAT = 3
# The two parts of a backup, in their order.
FIRST, SECOND = "ledger", "tables"
# Bytes of the disk that a backup leaves free.
SPARE = 64 * 2**20
# The name of the database within a backup.
DATABASE = "analytics"
_ATTEMPTS = 5
_PAUSE = 0.1


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a backup was taken of. `taken_at` is a unix second, `migrations` are those that were applied."""

    format: int
    taken_at: int
    service: str
    migrations: Sequence[Applied]


def saved_tables(migrations: Sequence[Migration]) -> dict[str, list[str]]:
    """The tables of each part of a backup of a schema. The heads are not among them: they follow from the ledger."""
    others = [name for name in tables_of(migrations) if name not in (LEDGER, HEADS)]
    return {FIRST: [LEDGER], SECOND: [*others, "schema_migration"]}


def back_up(store: Store, path: Path, folder: Path, reporter: Reporter) -> Manifest:
    """Write the store, whose schema is current, into a new file. `folder` is for the time until it is packed.

    BackupRefused for a file that exists, and for a store that lacks tables. DiskFull without room; BackupFailed when
    the file cannot be written, or when history is rewritten during every attempt. CorrectionRefused while history is
    corrected.
    """
    # A link to nowhere, too: the file would take its place.
    if os.path.lexists(path):
        raise UserError(f"{path} exists. Name another file.")
    if not os.access(path.parent, os.W_OK):
        raise UserError(f"{path.parent} is no folder that this user may write to. Name a file in another one.")
    if lacking := missing_tables(store):
        raise UserError(missing_message(lacking))
    with correction(store, ALL, "backup"):
        for _ in range(_ATTEMPTS):
            with suppress(Superseded), empty_folder(folder):
                manifest = _copy(store, folder, reporter)
                _pack(folder, path, manifest, reporter)
                return manifest
    raise OperationFailed("History is rewritten again and again. Take the backup when that is over.")


def _copy(store: Store, folder: Path, reporter: Reporter) -> Manifest:
    """Have ClickHouse copy all tables into the folder. Superseded if history was rewritten meanwhile."""
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
    return Manifest(FORMAT, taken_at, service_version(), applied)


def _pack(folder: Path, path: Path, manifest: Manifest, reporter: Reporter) -> None:
    """Make one file of a folder."""
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


def statement_tables(names: Iterable[str], database: str, other: str) -> str:
    """Tables in a BACKUP or RESTORE, and the database that they get."""
    return ", ".join(f"TABLE `{database}`.{name} AS `{other}`.{name}" for name in names)


def backup_disk(folder: Path, part: str) -> str:
    """A part of a backup as BACKUP and RESTORE name it."""
    return f"Disk('backups', '{folder.name}/{part}')"


def run_statement(store: Store, statement: str, stage: tuple[str, int], reporter: Reporter) -> None:
    """Execute a BACKUP or RESTORE, however long it takes. `stage` is the label and the number of its bytes.

    BackupFailed when it fails, DiskFull if that is why, and StoreUnavailable when ClickHouse was restarted.
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
                # On a full disk ClickHouse's own error may be any.
                store.require_room(SPARE)
                raise OperationFailed(f"ClickHouse cannot do it: {error.partition(', Stack trace')[0][:500]}")
            done = copied
            time.sleep(_PAUSE)
    except BaseException:
        with suppress(AnalyticsError):
            store.run("kill_backup", id=own)
        raise
