"""A real embedded ClickHouse for all integration tests, and a separate database for each test."""

import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any, ClassVar

import pytest

from analytics_service.clickhouse.connection import Store
from analytics_service.config.settings import Settings
from analytics_service.embedded import clickhouse as embedded
from analytics_service.sources.simulated.source import SimulatedSource
from jobs.registry import JOBS
from jobs.runner import backfill, take_snapshot
from tests import clickhouse
from tests.integration.databases import database, keep_migrated, reserve
from tests.integration.pages import commit
from tests.integration.routes import NOON, Client, client_of

Run = Callable[[str], list[tuple[Any, ...]]]


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Settings]:
    """Settings that name one running server."""
    own = Settings(data_dir=tmp_path_factory.mktemp("clickhouse"))
    with embedded.clickhouse(own, "pytest") as running:
        settings = clickhouse.by_url(running)
        keep_migrated(settings)
        yield settings


@pytest.fixture
def settings(request: pytest.FixtureRequest, server: Settings) -> Settings:
    """Settings that name a database which no other test uses meanwhile. It is there if the test asks for `store`."""
    if "store" in request.fixturenames:
        return replace(server, clickhouse_database=reserve(server, views="views" in request.fixturenames))
    return replace(server, clickhouse_database=f"test_{uuid.uuid4().hex}")


@pytest.fixture
def store(request: pytest.FixtureRequest, settings: Settings) -> Iterator[Store]:
    """A store on that database; with all views if the test asks for `views`."""
    with database(settings, views="views" in request.fixturenames) as store:
        yield store


@pytest.fixture
def views(store: Store) -> None:
    """All views of that database."""


@pytest.fixture
def client(settings: Settings) -> Iterator[clickhouse.Client]:
    """Access to the tables that is independent of the service's own code."""
    with clickhouse.client(settings) as own:
        yield own


@pytest.fixture
def run(client: clickhouse.Client) -> Run:
    """Runs SQL as a researcher would."""
    return lambda sql: [tuple(row) for row in client.query(sql).result_rows]


@dataclass(frozen=True)
class Simulated:
    """A database with every dataset of the simulated protocol: some history, and a snapshot of everything at noon."""

    settings: Settings
    store: Store
    noon: ClassVar[int] = NOON

    def rows(self, sql: str) -> list[dict[str, Any]]:
        """The rows of a query, read as a researcher would."""
        with clickhouse.client(self.settings) as own:
            return list(own.query(sql).named_results())


@pytest.fixture(scope="session")
def simulated(server: Settings) -> Iterator[Simulated]:
    """The simulated protocol, read by many tests and written by none."""
    settings = replace(server, clickhouse_database="test_simulated")
    with database(settings, views=True) as store:
        simulate(store, SimulatedSource("1"))
        yield Simulated(settings, store)


def simulate(store: Store, source: SimulatedSource) -> None:
    """Some history, and a snapshot of everything at noon."""
    noon = datetime.fromtimestamp(Simulated.noon, UTC)
    hour = timedelta(hours=1)
    for job in JOBS.values():
        backfill(job, source, store, [noon - 2 * hour, noon - hour])
        take_snapshot(job, source, store, noon)


@pytest.fixture(scope="session")
def protocol(simulated: Simulated) -> Client:
    """The service with the simulated protocol, half a minute old."""
    return client_of(simulated.settings, simulated.store)


@pytest.fixture(scope="session")
def two_assets(server: Settings) -> Iterator[Client]:
    """The service with the prices of two assets, half a minute old."""
    prices = [(NOON - 3600, Decimal("1.5")), (NOON, Decimal("1572.5"))]
    settings = replace(server, clickhouse_database="test_two_assets")
    with database(settings) as store:
        commit(store, {"token;a": prices, "token;b": [(NOON, Decimal(0))]})
        yield client_of(settings, store)


@pytest.fixture(scope="session")
def empty(server: Settings) -> Iterator[Client]:
    """The service before any snapshot."""
    settings = replace(server, clickhouse_database="test_empty")
    with database(settings) as store:
        yield client_of(settings, store)
