"""A real embedded ClickHouse for all integration tests, and a separate database for each test."""

import uuid
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any, ClassVar

import pytest

from analytics_service.config import Settings
from analytics_service.embedded.clickhouse import clickhouse
from analytics_service.sources.simulated.source import SimulatedSource
from analytics_service.store.connection import Store
from analytics_service.store.migrations import migrate
from jobs.registry import JOBS
from jobs.runner import backfill, run_once
from tests.clickhouse import by_url, client

# A backup of a database that `migrate` has just made. Copies of it take a fifth of the time of all migrations.
_MIGRATED = "Disk('backups', 'migrated')"


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Settings]:
    """Settings that name one running server."""
    own = Settings(data_dir=tmp_path_factory.mktemp("clickhouse"))
    with clickhouse(own, "pytest") as running:
        settings = by_url(running)
        keep_migrated(settings)
        yield settings


def keep_migrated(settings: Settings) -> None:
    """Have a server keep what `database` makes its databases from."""
    with closing(Store(replace(settings, clickhouse_database="test_migrated"))) as store:
        migrate(store)
        store.execute_outside_database(f"BACKUP DATABASE {store.database} TO {_MIGRATED}")
        store.execute_outside_database(f"DROP DATABASE {store.database} SYNC")


@pytest.fixture
def settings(server: Settings) -> Settings:
    """Settings that name a database which no other test uses."""
    return replace(server, clickhouse_database=f"test_{uuid.uuid4().hex}")


@contextmanager
def database(settings: Settings) -> Iterator[Store]:
    """A store on a new database, as `migrate` makes it, which is dropped afterwards. See `keep_migrated`."""
    store = Store(settings)
    store.execute_outside_database(f"RESTORE DATABASE test_migrated AS `{store.database}` FROM {_MIGRATED}")
    try:
        yield store
    finally:
        store.execute_outside_database(f"DROP DATABASE IF EXISTS `{store.database}` SYNC")
        store.close()


@pytest.fixture
def store(settings: Settings) -> Iterator[Store]:
    """A store on that database."""
    with database(settings) as store:
        yield store


@dataclass(frozen=True)
class Simulated:
    """A database with every family of the simulated protocol: some history, and a snapshot of everything at noon."""

    settings: Settings
    store: Store
    noon: ClassVar[int] = 1740830400  # 2025-03-01 12:00:00 UTC

    def rows(self, sql: str) -> list[dict[str, Any]]:
        """The rows of a query, read as a researcher would."""
        with client(self.settings) as own:
            return list(own.query(sql).named_results())


@pytest.fixture(scope="session")
def simulated(server: Settings) -> Iterator[Simulated]:
    """The simulated protocol, read by many tests and written by none."""
    settings = replace(server, clickhouse_database="test_simulated")
    with database(settings) as store:
        _simulate(store)
        yield Simulated(settings, store)


def _simulate(store: Store) -> None:
    source, noon = SimulatedSource("1"), datetime.fromtimestamp(Simulated.noon, UTC)
    hour = timedelta(hours=1)
    for job in JOBS.values():
        if job.history:
            backfill(job, source, store, [noon - 2 * hour, noon - hour])
        run_once(job, source, store, noon)
