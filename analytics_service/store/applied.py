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


@cache
def shipped() -> tuple[Migration, ...]:
    """The migrations of this version, in order."""
    return tuple(Migration(int(f.name.split("_")[0]), f.name, f.read_text("utf-8")) for f in scripts("migrations"))


def pending(store: Store, migrations: Sequence[Migration] | None = None) -> list[Migration]:
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


def require_current(store: Store) -> None:
    """SchemaError when migrations are to be applied, or the database was set up by a newer version."""
    if lacking := pending(store):
        names = ", ".join(migration.name for migration in lacking)
        raise SchemaError(f"The database lacks {names}; run `analytics-service migrate`.")
