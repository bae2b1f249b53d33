"""Brings the schema up to date: numbered scripts are applied in order and recorded with a checksum."""

import logging
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext

import polars as pl

from analytics_service.clickhouse.connection import Store
from analytics_service.clickhouse.queries import created_name
from analytics_service.errors import SchemaError
from analytics_service.store.job_runs import FORGOTTEN, running_scheduler
from analytics_service.store.ledger import HEADS, HEADS_VIEW, LEDGER
from analytics_service.store.rewrite import complete_interrupted, correction
from analytics_service.store.schema import (
    SHARDS,
    VIEWS,
    Applied,
    Migration,
    pending_migrations,
    read_applied,
    shards_to_record,
    shipped_migrations,
    view_names,
    view_statements,
)
from analytics_service.store.write_lock import ALL, LOCK_SECONDS, LOCKS, PATIENCE

log = logging.getLogger(__name__)

# The oldest release that has all types and settings of sql/.
OLDEST_SERVER = (25, 8)
SCHEMA_MIGRATION = """\
CREATE TABLE IF NOT EXISTS schema_migration{on_cluster}
(
    number UInt16 COMMENT 'Position of the script in the order of migrations',
    name String COMMENT 'File name of the script below sql/migrations',
    checksum FixedString(64) COMMENT 'SHA-256 of the script as it was applied, in hex',
    applied_at DateTime('UTC') DEFAULT now() COMMENT 'Instant at which it was applied'
)
ENGINE = {replicated}ReplacingMergeTree{copied} ORDER BY number
COMMENT 'Migrations that were applied to this database, one row each'
"""


def migrate(store: Store, migrations: Sequence[Migration] | None = None, *, is_alone: bool = False) -> list[Migration]:
    """Apply and return the missing migrations, and create the views unless they are current.

    DiskFull if the embedded server has no room. SchemaError if the server is too old, an applied script has changed,
    or this version cannot upgrade the schema; and if a scheduler writes to the store, unless the caller `is_alone` with
    it (rule 8.14, schema check). CorrectionInProgress while history is corrected.

    Interrupted rewrites are completed first, because their staged rows fit only the old schema. A script that fails
    half-way is not recorded; the next attempt executes all of its statements.
    """
    require_server(store.server_version())
    store.execute(f"CREATE DATABASE IF NOT EXISTS `{store.database}`{{on_cluster}}", in_database=False)
    store.execute(SCHEMA_MIGRATION)
    _record_shards(store)
    missing = pending_migrations(store, migrations)
    if missing and not is_alone:
        _require_no_scheduler(store)
    if missing:
        store.require_room()
    if missing and missing[0].number > 1:
        log.info("Upgrading the schema: %s", ", ".join(migration.name for migration in missing))
    with _without_corrections(store) if missing else nullcontext():
        for migration in missing:
            with store.together(migration.name):
                for statement in migration.statements:
                    store.execute(statement)
            _record(store, migration)
    _derive_heads(store)
    _make_views(store)
    complete_interrupted(store)
    return missing


def _record_shards(store: Store) -> None:
    if shards := shards_to_record(store):
        _record(store, Migration(SHARDS, shards, ""))


def _without_corrections(store: Store) -> AbstractContextManager[object]:
    """Hold the write lock, if the database has its table. Waits until the lock of a killed writer has expired."""
    if LOCKS not in store.query("list_tables")["name"]:
        return nullcontext()
    return correction(store, ALL, "migrate", patience=LOCK_SECONDS + PATIENCE)


def _derive_heads(store: Store) -> None:
    """Derive the heads from the ledger if their table, or the view that fills it, is lost."""
    present = set(store.query("list_tables")["name"])
    lost = {HEADS, HEADS_VIEW} - present
    if LEDGER in present and lost:
        for statement in (statement for migration in shipped_migrations() for statement in migration.statements):
            if created_name(statement) in lost:
                store.execute(statement)
        # Duplicate heads do no harm.
        columns = "dataset, at, last_observed_at, version, runs, sources"
        query = store.query("read_view_query", view=HEADS_VIEW)["query"].item()
        store.execute(f"INSERT INTO {HEADS} ({columns}) SELECT {columns} FROM ({query})")


def _make_views(store: Store) -> None:
    """Create all views, unless the database has them. On a cluster always: a server that was added may lack some."""
    statements = view_statements(store.price_max_age)
    views = Migration(VIEWS, "views", "\n".join(statements))
    is_recorded = Applied(views.number, views.name, views.checksum) in read_applied(store)
    if is_recorded and not store.layout.cluster and set(store.query("list_tables")["name"]).issuperset(view_names()):
        return
    store.require_room()
    with store.together("views"):
        for statement in statements:
            store.execute(statement)
    _record(store, views)


def _record(store: Store, migration: Migration) -> None:
    row = {"number": migration.number, "name": migration.name, "checksum": migration.checksum}
    store.insert("schema_migration", pl.DataFrame([row], schema_overrides={"number": pl.UInt16}))


def _require_no_scheduler(store: Store) -> None:
    try:
        scheduler = running_scheduler(store)
    except SchemaError:
        # The store is new, and has no table yet.
        return
    if scheduler:
        raise SchemaError(f"{scheduler} Stop it and try again: the schema is about to change. {FORGOTTEN}")


def require_server(version: str) -> None:
    """SchemaError if the server is older than the oldest supported release."""
    if tuple(int(part) for part in version.split(".")[:2]) < OLDEST_SERVER:
        oldest = ".".join(map(str, OLDEST_SERVER))
        raise SchemaError(f"This ClickHouse is version {version}; {oldest} is the oldest supported. Upgrade it.")
