"""Compares the migrations of this version with those that were applied to a database."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from analytics_service.errors import SchemaError
from analytics_service.store.connection import Store
from analytics_service.store.sql import scripts

# The number under which the views are recorded, as they were last made. Scripts are numbered from 1 on.
VIEWS = 0


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


@dataclass(frozen=True, slots=True)
class Applied:
    """A script that was applied to a database, as recorded there."""

    number: int
    name: str
    checksum: str


@cache
def shipped() -> tuple[Migration, ...]:
    """The migrations of this version, in order."""
    return tuple(Migration(int(f.name.split("_")[0]), f.name, f.read_text("utf-8")) for f in scripts("migrations"))


def read_applied(store: Store) -> list[Applied]:
    """What was applied to the database: scripts, and the views."""
    return [Applied(*row) for row in store.frame("applied_migrations").iter_rows()]


def pending(store: Store, migrations: Sequence[Migration] | None = None) -> list[Migration]:
    """Migrations of this version that the database does not have. SchemaError if the two do not match."""
    return unapplied(read_applied(store), shipped() if migrations is None else migrations)


def unapplied(applied: Sequence[Applied], migrations: Sequence[Migration]) -> list[Migration]:
    """The migrations that were not applied. SchemaError if an applied script does not match its migration."""
    by_number = {migration.number: migration for migration in migrations}
    applied = [record for record in applied if record.number != VIEWS]
    if any(record.number in by_number and by_number[record.number].name != record.name for record in applied):
        raise SchemaError(
            "This database has the schema of an earlier, unreleased version, which cannot be brought up to date. Use "
            "an empty folder (--data-dir) or database (ANALYTICS_CLICKHOUSE_DATABASE), and import or backfill again."
        )
    for record in applied:
        if record.number not in by_number:
            raise SchemaError(
                f"The database has migration {record.name}, which this version does not know: it was set up by a newer "
                "version. Install that version again."
            )
        if by_number[record.number].checksum != record.checksum:
            raise SchemaError(
                f"Migration {record.name} was changed after it had been applied. Restore the file as it was and put "
                "the change into a new migration."
            )
    numbers = {record.number for record in applied}
    return [migration for migration in migrations if migration.number not in numbers]


def require_all_applied(missing: Sequence[Migration]) -> None:
    """SchemaError when migrations are missing from the database."""
    if missing:
        names = ", ".join(migration.name for migration in missing)
        raise SchemaError(f"The database lacks {names}; run `analytics-service migrate`.")


def require_current(store: Store) -> None:
    """SchemaError when migrations are missing from the database, or the schema is of another version."""
    require_all_applied(pending(store))
