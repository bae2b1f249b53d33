"""Databases for tests, as `migrate` makes them, but without most views, which take as long as many a test.

What a test has used is emptied and renamed for a later one, which takes ClickHouse a fifth of the time of making one.
No name comes twice, so that whatever still runs for an earlier test finds no tables any more.
"""

import uuid
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path

from clickhouse_connect.driver.client import Client

from analytics_service.config.settings import Settings
from analytics_service.store.connection import Store
from analytics_service.store.histories import HISTORIES
from analytics_service.store.migrations import migrate
from analytics_service.store.schema import view_names, view_statements
from tests.clickhouse import client

# The database that all others are copies of, and its backup. Copies of that take a fifth of the time of all migrations.
_MODEL, _BACKUP = "test_migrated", "Disk('backups', 'migrated')"
# Views come last. Their statements name the database in which they were made.
_TABLES = """
SELECT name, replaceAll(create_table_query, concat(database, '.'), '') AS statement
FROM system.tables
WHERE database = currentDatabase()
ORDER BY engine = 'MaterializedView', name
"""
# The view that the service itself reads.
_READ = {"doubts_since"}
_MUTATED = "SELECT DISTINCT table FROM system.mutations WHERE database = currentDatabase()"


class Databases:
    """Those of one server."""

    def __init__(self, settings: Settings) -> None:
        self._model_settings = replace(settings, clickhouse_database=_MODEL)
        with closing(Store(self._model_settings)) as store:
            migrate(store)
            others = [view for view in view_names() if view not in {history.name for history in HISTORIES} | _READ]
            store.execute(f"DROP TABLE {', '.join(others)} SYNC")
            store.execute(f"BACKUP DATABASE {_MODEL} TO {_BACKUP}", in_database=False)
        with client(self._model_settings) as own:
            self._statements = _tables(own)
            filled = own.query("SELECT name FROM system.tables WHERE database = currentDatabase() AND total_rows > 0")
            self._filled = [str(name) for (name,) in filled.result_rows]
        # Emptied databases, and which tables they have.
        self._spare: list[tuple[str, set[str]]] = []

    def take(self, name: str) -> None:
        """Make a database."""
        with client(self._model_settings) as own:
            try:
                spare, present = self._spare.pop()
            except IndexError:
                own.command(f"RESTORE DATABASE {_MODEL} AS `{name}` FROM {_BACKUP}")
                return
            own.command(f"RENAME DATABASE `{spare}` TO `{name}`")
            own.database = name
            for table, statement in self._statements.items():
                if table not in present:
                    own.command(statement)
            for table in self._filled:
                own.command(f"INSERT INTO {table} SELECT * FROM {_MODEL}.{table}")

    def give_back(self, name: str) -> None:
        """Empty a database for another test, or drop it if a statement is still under way there."""
        with client(self._model_settings) as own:
            if not own.command(f"EXISTS DATABASE `{name}`"):
                return
            spare = f"spare_{uuid.uuid4().hex}"
            own.command(f"RENAME DATABASE `{name}` TO `{spare}`")
            if own.command(f"SELECT count() FROM system.processes WHERE current_database = '{name}'"):
                own.command(f"DROP DATABASE `{spare}` SYNC")
                return
            own.database = spare
            mutated = {table for (table,) in own.query(_MUTATED).result_rows}
            found = _tables(own)
            same = {table for table in found if found[table] == self._statements.get(table)} - mutated
            others = [f"`{table}`" for table in reversed(found) if table not in same]
            if others:
                own.command(f"DROP TABLE {', '.join(others)} SYNC")
            own.command(f"TRUNCATE ALL TABLES FROM `{spare}`")
            self._spare.append((spare, same))


# Those of each server, by its data folder.
_SERVERS: dict[Path, Databases] = {}


def keep_migrated(settings: Settings) -> None:
    """Have a server keep what `database` makes its databases from."""
    _SERVERS[settings.data_dir] = Databases(settings)


@contextmanager
def database(settings: Settings) -> Iterator[Store]:
    """A store on a new database, which is gone afterwards."""
    databases, store = _SERVERS[settings.data_dir], Store(settings)
    databases.take(store.database)
    try:
        yield store
    finally:
        store.close()
        databases.give_back(store.database)


def make_views(store: Store) -> None:
    """Make all views, also those other than of histories."""
    for statement in view_statements(store.price_max_age):
        store.execute(statement)


def _tables(own: Client) -> dict[str, str]:
    """By which statement each table and view of a client's database is made."""
    return {str(name): str(statement) for name, statement in own.query(_TABLES).result_rows}
