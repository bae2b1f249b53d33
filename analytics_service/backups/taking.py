"""Takes a backup while the service runs: first the ledger, then all other tables.

The tables may include rows of runs that complete later. No reader of the restored store sees them, because its ledger
does not list these runs. When a rewrite is announced meanwhile (rule 8.3), everything is read again.

ClickHouse's own BACKUP writes to the disk of the server, which may be another machine. So the rows are queried instead.
"""

from contextlib import suppress
from datetime import datetime
from pathlib import Path

from analytics_service.backups.archive import FORMAT, ArchiveWriter, BackupFamily, Manifest, TableContent, writing
from analytics_service.config.settings import service_version
from analytics_service.errors import BackupFailed, BackupRefused, StoreUnavailable, Superseded
from analytics_service.market.instants import unix_second
from analytics_service.store.connection import Store
from analytics_service.store.job_runs import JOB_RUNS
from analytics_service.store.ledger import HEADS, LEDGER, REWRITES, Ledger, read_ledger, require_unchanged
from analytics_service.store.retries import Reporter
from analytics_service.store.rewrite import ledger_without_rewrites
from analytics_service.store.schema import Applied, missing, missing_message, shipped, tables_of

# Tables about the service's own processes, and a table that a view fills from the ledger.
NOT_SAVED = frozenset({REWRITES, JOB_RUNS, HEADS})
_ATTEMPTS = 5


def back_up(store: Store, path: Path, now: datetime, reporter: Reporter) -> Manifest:
    """Write the store, whose schema is current, into a file, and return its manifest.

    BackupRefused for a store without data. BackupFailed when the file cannot be written, or when every attempt to read
    the store is interrupted by a change.
    """
    if lacking := missing(store):
        raise BackupRefused(missing_message(lacking))
    for _ in range(_ATTEMPTS):
        ledger = ledger_without_rewrites(store)
        if not ledger.heads:
            raise BackupRefused("The store has no data, so there is nothing to back up.")
        with suppress(Superseded), writing(path) as archive:
            return _write(store, ledger, archive, now, reporter)
    raise BackupFailed("The store is changed again and again while it is read. Take the backup when that is over.")


def _write(store: Store, ledger: Ledger, archive: ArchiveWriter, now: datetime, reporter: Reporter) -> Manifest:
    bytes_of = {row["name"]: row["bytes"] for row in store.frame("tables").iter_rows(named=True)}
    tables = sorted((name for name in tables_of(shipped()) if name not in NOT_SAVED), key=lambda name: name != LEDGER)
    reporter.stage("Backup", sum(bytes_of[table] for table in tables))
    contents = {}
    for table in tables:
        contents[table] = _save(store, table, archive, reporter)
        if table == LEDGER and read_ledger(store).heads != ledger.heads:
            raise Superseded("A run was completed while the ledger was read.")
    heads = ledger.heads.values()
    for head in heads:
        require_unchanged(store, head)
    manifest = Manifest(
        format=FORMAT,
        taken_at=unix_second(now.replace(microsecond=0)),
        service=service_version(),
        clickhouse=store.server_version(),
        origins=sorted(map(str, ledger.origins)),
        migrations=[Applied(migration.number, migration.name, migration.checksum) for migration in shipped()],
        families={head.family: BackupFamily(head.at, head.last_observed_at, head.version) for head in heads},
        tables=contents,
    )
    archive.finish(manifest)
    return manifest


def _save(store: Store, table: str, archive: ArchiveWriter, reporter: Reporter) -> TableContent:
    size, digest = archive.add(table, store.stream("backup_rows", table=table), reporter)
    rows = int(store.frame("row_count", table=table)["rows"][0])
    if rows and not size:
        # A server that dies as it begins to answer sends an empty answer.
        raise StoreUnavailable(f"ClickHouse broke off its answer (rows of {table}).")
    return TableContent(rows, size, digest)
