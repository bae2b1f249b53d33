"""The tables and views that the migrations' scripts create, and which of them a database lacks."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from analytics_service.store.applied import Migration, pending, require_current, shipped
from analytics_service.store.connection import Store
from analytics_service.store.migrations import migrate
from analytics_service.store.sql import statements

_CREATE = re.compile(r"CREATE (?:TABLE|MATERIALIZED VIEW) IF NOT EXISTS (\w+)(?: TO (\w+))?")
_DROP = re.compile(r"DROP (?:TABLE|VIEW) IF EXISTS (\w+)")


@dataclass(frozen=True, slots=True)
class Schema:
    """Tables and views by name, each with the script that makes it; `feeds` is the table that each view fills."""

    made_by: Mapping[str, str]
    feeds: Mapping[str, str]

    @property
    def tables(self) -> list[str]:
        """All tables, in the order in which they are made."""
        return [name for name in self.made_by if name not in self.feeds]

    @property
    def sources(self) -> list[str]:
        """The tables that no view fills."""
        return [name for name in self.tables if name not in self.feeds.values()]


def schema_of(migrations: Sequence[Migration]) -> Schema:
    """What is there once the migrations are applied."""
    made_by: dict[str, str] = {}
    feeds: dict[str, str] = {}
    for migration in migrations:
        for statement in statements(migration.script):
            code = "\n".join(line for line in statement.splitlines() if not line.startswith("--")).strip()
            if created := _CREATE.match(code):
                made_by[created[1]] = migration.name
                feeds |= {created[1]: created[2]} if created[2] else {}
            elif dropped := _DROP.match(code):
                made_by.pop(dropped[1], None)
                feeds.pop(dropped[1], None)
    return Schema(made_by, feeds)


def missing(store: Store) -> Mapping[str, str]:
    """Tables and views that the database lacks although the migrations which make them were applied, each with the name
    of that script. SchemaError if the database does not match this version."""
    later = {migration.number for migration in pending(store)}
    schema = schema_of([migration for migration in shipped() if migration.number not in later])
    present = set(store.frame("tables")["name"])
    return {name: script for name, script in schema.made_by.items() if name not in present}


def create(store: Store, *, is_own: bool) -> None:
    """Make the schema of a database that is new, or the service's own.

    SchemaError for a database on another server whose schema is older: only `migrate` changes that.
    """
    store.execute_outside_database(f"CREATE DATABASE IF NOT EXISTS `{store.database}`")
    if is_own or store.frame("tables").is_empty():
        migrate(store)
    else:
        require_current(store)


def complete(store: Store, other: Store) -> None:
    """Create the tables and views that the database lacks, empty and as in another database, which has all of them."""
    made = {row["name"]: row["statement"] for row in other.frame("create_statements").iter_rows(named=True)}
    for name in missing(store):
        store.execute(made[name].replace(f"{other.database}.", f"{store.database}."))


def what_is_missing(lacking: Mapping[str, str]) -> str:
    """What a database lacks, and what to do about it, in words."""
    named = ", ".join(f"{name} (made by {script})" for name, script in lacking.items())
    return (
        f"The database lacks {named}, although that was made before. "
        "Bring back the last backup with `analytics-service restore FILE --replace`."
    )
