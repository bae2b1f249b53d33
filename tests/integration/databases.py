"""Databases for tests, as `migrate` makes them, but without most views, which take as long as many a test.

A test that leaves only rows behind has its database emptied for a later one, which takes ClickHouse a tenth of the time
of making one. A database is dropped if the test has changed tables or views, deleted rows of one, or still runs a
statement.
"""

import uuid
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from clickhouse_connect.driver.client import Client

from analytics_service.clickhouse.connection import Store
from analytics_service.config.settings import Settings
from analytics_service.store.datasets.histories import HISTORIES
from analytics_service.store.migrations import migrate
from analytics_service.store.schema import view_names, view_statements
from tests.clickhouse import client

# All databases are copies of this one, with all views or without most of them. A copy takes a fifth of the time of all
# migrations.
_MODEL = "test_migrated"
_BACKUPS = {True: "Disk('backups', 'migrated_with_views')", False: "Disk('backups', 'migrated')"}
# The view that the service itself reads, and what is left of histories.
_KEPT = {"anomalies", "totals"}
# What tests may change but for rows, and what is under way. The list of migrations is not emptied.
_LOOK = """
SELECT
    (SELECT arraySort(groupArray((name, toString(uuid), toString(metadata_modification_time))))
     FROM system.tables WHERE database = {name:String}),
    (SELECT groupArray(name) FROM system.parts
     WHERE database = {name:String} AND table = 'schema_migration' AND active),
    (SELECT count() FROM system.mutations WHERE database = {name:String}),
    (SELECT count() FROM system.processes WHERE current_database = {name:String})
"""


@dataclass
class _Made:
    """A database: whether it has all views, whether a later test may have it, and what it looked like when it was
    made."""

    views: bool
    lasts: bool
    look: object


class Databases:
    """Those of one server."""

    def __init__(self, settings: Settings) -> None:
        self.price_max_age = settings.price_max_age
        self._server = replace(settings, clickhouse_database="default")
        with closing(Store(replace(settings, clickhouse_database=_MODEL))) as store:
            migrate(store)
            store.execute("OPTIMIZE TABLE schema_migration FINAL")
            store.execute(f"BACKUP DATABASE {_MODEL} TO {_BACKUPS[True]}", in_database=False)
            others = [view for view in view_names() if view not in {history.name for history in HISTORIES} | _KEPT]
            store.execute(f"DROP TABLE {', '.join(others)} SYNC")
            store.execute(f"BACKUP DATABASE {_MODEL} TO {_BACKUPS[False]}", in_database=False)
            store.execute(f"DROP DATABASE {_MODEL} SYNC", in_database=False)
        self._made: dict[str, _Made] = {}
        # Names of empty databases, with and without all views.
        self._spare: dict[bool, list[str]] = {True: [], False: []}
        self._reserved: set[str] = set()

    def reserve(self, views: bool) -> str:
        """The name of a database that `take` gives, and nobody else has."""
        name = self._spare[views].pop() if self._spare[views] else f"test_{uuid.uuid4().hex}"
        self._reserved.add(name)
        return name

    def take(self, name: str, views: bool) -> None:
        """Make a database, unless it is there already."""
        lasts = name in self._reserved
        self._reserved.discard(name)
        if name in self._made:
            return
        with client(self._server) as own:
            own.command(f"RESTORE DATABASE {_MODEL} AS `{name}` FROM {_BACKUPS[views]}")
            self._made[name] = _Made(views, lasts, _look(own, name))

    def give_back(self, name: str) -> None:
        """Empty a database for another test, or drop it."""
        made = self._made[name]
        with client(self._server) as own:
            if made.lasts and _look(own, name) == made.look:
                own.command(f"TRUNCATE TABLES FROM `{name}` NOT LIKE 'schema\\_migration'")
                self._spare[made.views].append(name)
            else:
                own.command(f"DROP DATABASE IF EXISTS `{name}` SYNC")
                del self._made[name]


# Those of each server, by its data folder.
_SERVERS: dict[Path, Databases] = {}


def keep_migrated(settings: Settings) -> None:
    """Have a server keep what `database` makes its databases from."""
    _SERVERS[settings.data_dir] = Databases(settings)


def reserve(settings: Settings, *, views: bool) -> str:
    """The name of a database for one test."""
    return _SERVERS[settings.data_dir].reserve(views)


@contextmanager
def database(settings: Settings, *, views: bool = False) -> Iterator[Store]:
    """A store on a database without rows, which is gone afterwards."""
    databases, store = _SERVERS[settings.data_dir], Store(settings)
    databases.take(store.database, views)
    try:
        if views and settings.price_max_age != databases.price_max_age:
            make_views(store)
        yield store
    finally:
        store.close()
        databases.give_back(store.database)


@contextmanager
def copied(settings: Settings, filled: Store, *, views: bool = False) -> Iterator[Store]:
    """A store on a new database that has the rows of another one."""
    with database(settings, views=views) as store, client(settings) as own:
        mine, others = _with_rows(own, store.database), _with_rows(own, filled.database)
        # Rows of the ledger make the heads, by a view.
        for table in others - mine - {"snapshot_head"}:
            own.command(f"INSERT INTO {table} SELECT * FROM {filled.database}.{table}")
        yield store


def make_views(store: Store) -> None:
    """Make all views, also those other than of histories."""
    for statement in view_statements(store.price_max_age):
        store.execute(statement)


def _look(own: Client, name: str) -> object:
    return own.query(_LOOK, parameters={"name": name}).first_row


def _with_rows(own: Client, database: str) -> set[str]:
    """The tables of a database that have rows."""
    found = own.query(f"SELECT name FROM system.tables WHERE database = '{database}' AND total_rows > 0")
    return {str(name) for (name,) in found.result_rows}
