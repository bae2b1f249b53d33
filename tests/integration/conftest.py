"""A real embedded ClickHouse for all integration tests, and a database of its own for each test."""

import uuid
from collections.abc import Iterator
from dataclasses import replace

import pytest

from analytics_service.config import Settings
from analytics_service.store.connection import Store
from analytics_service.store.embedded import clickhouse
from analytics_service.store.migrations import migrate


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Settings]:
    """Settings that name one running server."""
    own = Settings(data_dir=tmp_path_factory.mktemp("clickhouse"))
    with clickhouse(own, "pytest") as running:
        yield running


@pytest.fixture
def settings(server: Settings) -> Settings:
    """Settings that name a database which no other test uses."""
    return replace(server, clickhouse_database=f"test_{uuid.uuid4().hex}")


@pytest.fixture
def store(settings: Settings) -> Iterator[Store]:
    """A store on that database, migrated; dropped after the test."""
    store = Store(settings)
    migrate(store)
    yield store
    store.execute_outside_database(f"DROP DATABASE IF EXISTS `{store.database}` SYNC")
    store.close()
