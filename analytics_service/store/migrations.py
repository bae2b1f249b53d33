"""Brings the schema up to date: numbered scripts are applied in order and recorded with a checksum."""

import hashlib
from dataclasses import dataclass

import polars as pl

from analytics_service.errors import SchemaError
from analytics_service.store.cells import write_all_cells
from analytics_service.store.connection import Store
from analytics_service.store.progress import NO_REPORT, Reporter
from analytics_service.store.rewrite import recover, settle
from analytics_service.store.sql import scripts, statements

# The oldest release that has all types and settings used in sql/.
OLDEST_SERVER = (25, 8)
# The script that makes cells. Those of a store that has rows already are computed before it is recorded.
_CELLS = 16
_LEDGER = """
CREATE TABLE IF NOT EXISTS schema_migration
(
    number UInt16 COMMENT 'Position of the script in the order of migrations',
    name String COMMENT 'File name of the script below sql/migrations',
    checksum FixedString(64) COMMENT 'SHA-256 of the script as it was applied, in hex',
    applied_at DateTime('UTC') DEFAULT now() COMMENT 'Instant at which it was applied'
)
ENGINE = ReplacingMergeTree ORDER BY number
COMMENT 'Migrations that were applied to this database, one row each'
"""


@dataclass(frozen=True, slots=True)
class Migration:
    """A numbered script of the schema."""

    number: int
    name: str
    script: str

    @property
    def checksum(self) -> str:
        """SHA-256 of the script, in hex."""
        return hashlib.sha256(self.script.encode()).hexdigest()


def shipped() -> list[Migration]:
    """The migrations of this version, in order."""
    return [Migration(int(f.name.split("_")[0]), f.name, f.read_text("utf-8")) for f in scripts("migrations")]


def migrate(store: Store, migrations: list[Migration] | None = None, reporter: Reporter = NO_REPORT) -> list[Migration]:
    """Apply and return the missing migrations. SchemaError if the server is too old, or an applied script has changed.

    Interrupted rewrites are completed first, because what they staged fits the schema that they began with. A script
    that fails half-way is not recorded. All of its statements run again next time.
    """
    require_server(store.server_version())
    store.execute_outside_database(f"CREATE DATABASE IF NOT EXISTS `{store.database}`")
    store.execute(_LEDGER)
    missing = pending(store, migrations)
    if missing:
        settle(store)
    else:
        recover(store)
    for migration in missing:
        for statement in statements(migration.script):
            store.execute(statement)
        if migration.number == _CELLS:
            write_all_cells(store, reporter)
        row = {"number": migration.number, "name": migration.name, "checksum": migration.checksum}
        store.insert("schema_migration", pl.DataFrame([row], schema_overrides={"number": pl.UInt16}))
    return missing


def pending(store: Store, migrations: list[Migration] | None = None) -> list[Migration]:
    """Migrations of this version that the database does not have. SchemaError if the two do not match."""
    applied = {row["number"]: row for row in store.frame("applied_migrations").iter_rows(named=True)}
    known = shipped() if migrations is None else migrations
    for number, row in applied.items():
        mine = next((m for m in known if m.number == number), None)
        if mine is None:
            raise SchemaError(
                f"The database has migration {row['name']}, which this version does not know: it was set up by a newer "
                "version. Install that version again."
            )
        if mine.checksum != row["checksum"]:
            raise SchemaError(
                f"Migration {mine.name} was changed after it had been applied. Restore the file as it was and put the "
                "change into a new migration."
            )
    return [m for m in known if m.number not in applied]


def require_server(version: str) -> None:
    """SchemaError if the server is older than the oldest supported one."""
    if tuple(int(part) for part in version.split(".")[:2]) < OLDEST_SERVER:
        oldest = ".".join(map(str, OLDEST_SERVER))
        raise SchemaError(f"This ClickHouse is version {version}; {oldest} is the oldest supported. Upgrade it.")
