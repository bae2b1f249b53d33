"""Compares the migrations of this version with those that were applied to a database."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from analytics_service.errors import SchemaError
from analytics_service.store.connection import Store
from analytics_service.store.sql import scripts


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
    """A script that was applied to a database, as that has recorded it."""

    number: int
    name: str
    checksum: str


@cache
def shipped() -> tuple[Migration, ...]:
    """The migrations of this version, in order."""
    return tuple(Migration(int(f.name.split("_")[0]), f.name, f.read_text("utf-8")) for f in scripts("migrations"))


def pending(store: Store, migrations: Sequence[Migration] | None = None) -> list[Migration]:
    """Migrations of this version that the database does not have. SchemaError if the two do not match."""
    applied = [Applied(*row) for row in store.frame("applied_migrations").iter_rows()]
    return lacking(applied, shipped() if migrations is None else migrations)


def lacking(applied: Sequence[Applied], known: Sequence[Migration]) -> list[Migration]:
    """The known migrations that were not applied. SchemaError if those that were do not match."""
    mine = {migration.number: migration for migration in known}
    if any(one.number in mine and mine[one.number].name != one.name for one in applied):
        raise SchemaError(
            "This database has the schema of an earlier, unreleased version, which cannot be brought up to date. Use "
            "an empty folder (--data-dir) or database (ANALYTICS_CLICKHOUSE_DATABASE), and import or backfill again."
        )
    for one in applied:
        if one.number not in mine:
            raise SchemaError(
                f"The database has migration {one.name}, which this version does not know: it was set up by a newer "
                "version. Install that version again."
            )
        if mine[one.number].checksum != one.checksum:
            raise SchemaError(
                f"Migration {one.name} was changed after it had been applied. Restore the file as it was and put the "
                "change into a new migration."
            )
    numbers = {one.number for one in applied}
    return [migration for migration in known if migration.number not in numbers]


def require_none_lacking(missing: Sequence[Migration]) -> None:
    """SchemaError when migrations are to be applied."""
    if missing:
        names = ", ".join(migration.name for migration in missing)
        raise SchemaError(f"The database lacks {names}; run `analytics-service migrate`.")


def require_current(store: Store) -> None:
    """SchemaError when migrations are to be applied, or the schema is of another version."""
    require_none_lacking(pending(store))
