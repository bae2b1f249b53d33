"""Restores a backup: into a separate database, where it is checked, and then by exchanging all tables.

Until tables are exchanged, nothing in the store has changed, so a restore that is killed before is simply repeated. For
readers it is a rewrite of every family (rule 8.10), so no answer mixes old and new rows, and workers show the new heads
at their next look at the ledger.

Writers must be stopped: rows written while tables are exchanged might be lost.
"""

import logging
from collections.abc import Generator, Iterable, Iterator
from contextlib import closing, contextmanager, suppress

import polars as pl

from analytics_service.backups.archive import ArchiveReader, BackupFamily, Manifest
from analytics_service.backups.exchanging import exchange, plan
from analytics_service.backups.taking import NOT_SAVED
from analytics_service.errors import AnalyticsError, BackupFailed, BackupRefused, SchemaError
from analytics_service.store.admission import read_claim
from analytics_service.store.connection import Store
from analytics_service.store.job_runs import FORGOTTEN, running_scheduler
from analytics_service.store.layout import REPLICATED, named
from analytics_service.store.ledger import HEADS, RESTORE, new_version, read_ledger
from analytics_service.store.migrations import migrate, remake
from analytics_service.store.retries import Reporter
from analytics_service.store.rewrite import ledger_without_rewrites, make_head_anew, restored_into
from analytics_service.store.schema import TABLES, Migration, missing, missing_message, shipped, tables_of, unapplied

log = logging.getLogger(__name__)


def require_restorable(manifest: Manifest) -> None:
    """BackupRefused when this version cannot bring the schema of the backup up to date, or for tables beside it."""
    try:
        unapplied(manifest.migrations, shipped())
    except SchemaError as error:
        taken_by = manifest.service or "unknown"
        raise BackupRefused(f"The backup was taken by another version ({taken_by}): {error}") from error
    # The names become part of statements.
    if strange := manifest.tables.keys() - (set(tables_of(_applied(manifest))) - NOT_SAVED):
        raise BackupRefused(f"The backup has tables that no backup has: {', '.join(sorted(strange))[:200]!r}.")


def _applied(manifest: Manifest) -> list[Migration]:
    applied = {script.number for script in manifest.migrations}
    return [migration for migration in shipped() if migration.number in applied]


def restore(
    store: Store, archive: ArchiveReader, reporter: Reporter, *, replace: bool, location: str = "the store"
) -> None:
    """Replace all data of the store, whose migrations were all applied, by a backup.

    BackupRefused, with nothing changed, for a backup that cannot be restored, for a store that has data when `replace`
    is false, and for a store to which a scheduler writes; `location` names the store in the message. BackupFailed when
    another process writes to the store.
    """
    require_restorable(archive.manifest)
    if store.layout.engine == REPLICATED:
        raise BackupRefused(
            f"Database {store.database} has the engine {REPLICATED}, which cannot exchange tables: use another."
        )
    with _all_tables(store, is_replaced=replace):
        _complete_others(store)
        before = ledger_without_rewrites(store)
        if (before.heads or read_claim(store).side) and not replace:
            raise BackupRefused(
                f"There is data in {location} already. With --replace, all of it is replaced by the backup."
            )
        _require_no_scheduler(store)
        archive.check(reporter)
        version = new_version(store)
        with _beside(store, version) as beside:
            _load(beside, archive, reporter)
            families = sorted({*TABLES, *before.heads, *archive.manifest.families, RESTORE})
            _mark(beside, version)
            plan(beside)
            _require_no_scheduler(store)
            if ledger_without_rewrites(store) != before:
                raise BackupFailed("The store was written to meanwhile. Stop what writes to it, and restore again.")
            exchange(store, beside.database, families, version)


@contextmanager
def _all_tables(store: Store, *, is_replaced: bool) -> Iterator[None]:
    """Create missing tables and views for the duration of the block. They are dropped again after an error.

    BackupRefused for a store that lacks tables and is not to be replaced: nobody can tell whether it had data.
    """
    absent = missing(store)
    if absent and not is_replaced:
        raise BackupRefused(missing_message(absent))
    try:
        if absent:
            remake(store)
        yield
    except BaseException:
        for name in reversed(list(absent)):
            with suppress(AnalyticsError):
                store.execute(f"DROP TABLE IF EXISTS {named(name)}{{on_cluster}} SYNC")
        raise


def _require_no_scheduler(store: Store) -> None:
    if scheduler := running_scheduler(store):
        raise BackupRefused(f"{scheduler} Stop it, and restore again. {FORGOTTEN}")


def _comment(store: Store) -> str:
    """The comment of databases that tells whose they are."""
    return f"A restore of {store.database}; the next one drops it"


def _complete_others(store: Store) -> None:
    """Complete a restore that was killed while it exchanged tables, and drop what killed ones have left."""
    for name in store.frame("databases_by_comment", comment=_comment(store))["name"]:
        unfinished = read_ledger(store).open.items()
        version = next((own for _, versions in unfinished for own in versions if restored_into(store, own) == name), 0)
        if version:
            exchange(store, name, [family for family, versions in unfinished if version in versions], version)
            log.warning("A restore that was interrupted is complete now.")
        _drop_database(store, name)


@contextmanager
def _beside(store: Store, version: int) -> Iterator[Store]:
    """A separate database for the duration of the block. It stays if tables are being exchanged."""
    with closing(store.sibling(restored_into(store, version))) as beside:
        try:
            create = f"CREATE DATABASE `{beside.database}`{{on_cluster}} COMMENT '{_comment(store)}'"
            store.execute(create, in_database=False)
            yield beside
        finally:
            try:
                if not any(version in versions for versions in read_ledger(store).open.values()):
                    _drop_database(store, beside.database)
            except AnalyticsError as error:
                # An earlier error must not be hidden.
                log.warning("%s could not be dropped: %s", beside.database, error)


def _drop_database(store: Store, name: str) -> None:
    store.execute(f"DROP DATABASE IF EXISTS `{name}`{{on_cluster}} SYNC", in_database=False)


def _load(beside: Store, archive: ArchiveReader, reporter: Reporter) -> None:
    """Fill an empty database that has the schema of the backup, and bring the schema up to date."""
    manifest = archive.manifest
    migrate(beside, _applied(manifest), is_alone=True)
    reporter.stage("Restoring", sum(table.bytes for table in manifest.tables.values()))
    for name, content in manifest.tables.items():
        if content.bytes:
            beside.insert_native(name, _reported(archive.chunks(name), reporter))
    # Schedulers that wrote to the original store do not write to this one.
    migrate(beside, is_alone=True)
    for family in manifest.families:
        make_head_anew(beside, family, new_version(beside))
    heads = read_ledger(beside).heads.values()
    if {head.family: BackupFamily(head.at, head.last_observed_at, head.version) for head in heads} != manifest.families:
        raise BackupRefused("The ledger of the backup is not the one that it was taken with. Nothing was changed.")


def _reported(chunks: Iterable[bytes], reporter: Reporter) -> Generator[bytes]:
    for chunk in chunks:
        yield chunk
        reporter.advance(len(chunk))


def _mark(beside: Store, version: int) -> None:
    """Make the heads differ from all heads that workers have seen (rule 8.2): the count of runs is too large for any
    store, so no worker mistakes the backup for a state that it knows with some runs appended."""
    restored = sorted(read_ledger(beside).heads)
    schema = {"family": pl.String, "runs": pl.UInt64}
    beside.insert(HEADS, pl.DataFrame({"family": restored, "runs": [version] * len(restored)}, schema=schema))
