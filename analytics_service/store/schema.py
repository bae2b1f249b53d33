"""The tables and views that migrations create, and those of them that a database lacks."""

import re
from collections.abc import Mapping, Sequence

from analytics_service.errors import SchemaError
from analytics_service.store.applied import Migration, require_current, shipped
from analytics_service.store.connection import Store
from analytics_service.store.migrations import migrate
from analytics_service.store.sql import statements

_CREATE = re.compile(r"^CREATE (TABLE|MATERIALIZED VIEW) IF NOT EXISTS (\w+)", re.MULTILINE)


def tables_of(migrations: Sequence[Migration]) -> list[str]:
    """All tables that migrations create, in their order."""
    return [name for script in migrations for kind, name in _CREATE.findall(script.script) if kind == "TABLE"]


def made_by(migrations: Sequence[Migration]) -> Mapping[str, str]:
    """All tables and views that migrations create, each with the name of its script."""
    return {name: script.name for script in migrations for _, name in _CREATE.findall(script.script)}


def missing(store: Store) -> Mapping[str, str]:
    """Tables and views that the database lacks although their migrations were applied, each with the name of its
    script. SchemaError if the database does not match this version."""
    require_current(store)
    present = set(store.frame("tables")["name"])
    return {name: script for name, script in made_by(shipped()).items() if name not in present}


def remake(store: Store) -> None:
    """Create the missing tables and views again, empty."""
    for migration in shipped():
        for statement in statements(migration.script):
            store.execute(statement)


def create(store: Store, *, is_own: bool) -> None:
    """Create the schema of a database that is new, or bring that of the service's own database up to date.

    SchemaError for a database on another server with an older schema: only `migrate` changes that.
    """
    store.execute_outside_database(f"CREATE DATABASE IF NOT EXISTS `{store.database}`")
    if is_own or store.frame("tables").is_empty():
        migrate(store)
    else:
        require_current(store)


def require_all_tables(store: Store) -> None:
    """SchemaError when the database lacks tables or views although their migrations were applied."""
    if absent := missing(store):
        raise SchemaError(missing_message(absent))


def missing_message(lacking: Mapping[str, str]) -> str:
    """A message that names the missing tables and views, and says what to do."""
    named = ", ".join(f"{name} (made by {script})" for name, script in lacking.items())
    return (
        f"The database lacks {named}, although that was made before. "
        "Bring back the last backup with `analytics-service restore FILE --replace`."
    )
