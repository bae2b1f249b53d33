"""Staged rows that are added in pieces, as on a cluster, by processes that die or work at the same time."""

from contextlib import closing

import pytest

from analytics_service.clickhouse.connection import Store
from analytics_service.config.settings import Settings
from analytics_service.errors import StoreUnavailable
from analytics_service.store.bulk_copy import add_in_pieces
from analytics_service.store.datasets.events import EVENTS
from analytics_service.store.datasets.observations import OBSERVATIONS
from tests.doubles import Statement, WatchedStore
from tests.integration.conftest import Run

STAGED = "observation_staging_7"
DAYS = 5


def test_whoever_goes_on_adds_the_other_pieces_and_no_row_twice(settings: Settings, store: Store, run: Run) -> None:
    """A row of each of five days and two assets, in pieces of two days. A later run has written one of them, too."""
    store.execute(f"CREATE TABLE {STAGED} AS observation")
    insert = (
        "INSERT INTO {} (history, asset_id, observed_at, value, version) "
        "SELECT 'price', 'token;' || toString(number % 2), toDateTime(intDiv(number, 2) * 86400), {}"
    )
    store.execute(f"{insert.format(STAGED, '1, 7')} FROM numbers({2 * DAYS})")
    store.execute(f"{insert.format(OBSERVATIONS, '2, 8')} FROM numbers(1)")
    begun = []

    def die(statement: Statement) -> None:
        begun.append(statement)
        if begun.count(Statement("run", "insert_staged")) == 3:
            raise StoreUnavailable("ClickHouse is gone.")

    with closing(WatchedStore(settings, before=die)) as broken, pytest.raises(StoreUnavailable):
        add_in_pieces(broken, OBSERVATIONS, STAGED, 7, at_once=4)
    count = "SELECT count(), countIf(version = 7), uniqExact(observed_at) FROM observation"
    assert run(count) == [(8, 7, 4)]
    for _ in range(2):
        add_in_pieces(store, OBSERVATIONS, STAGED, 7, at_once=4)
        assert run(count) == [(10, 9, DAYS)]


def test_events_are_added_in_pieces_too(store: Store, run: Run) -> None:
    staged = f"{EVENTS}_staging_7"
    store.execute(f"CREATE TABLE {staged} AS {EVENTS}")
    store.execute(f"INSERT INTO {staged} (at, id, version) VALUES (1, 'a', 7), (90000, 'b', 7)")
    for _ in range(2):
        add_in_pieces(store, EVENTS, staged, 7, at_once=1)
        assert run(f"SELECT id FROM {EVENTS} ORDER BY id") == [("a",), ("b",)]
