"""Imports during which ClickHouse or the import itself dies."""

import logging
import os
import signal
import time
from collections.abc import Iterator
from contextlib import closing
from decimal import Decimal
from pathlib import Path

import pytest

from analytics_service.clickhouse.connection import Store
from analytics_service.clickhouse.running import read_running
from analytics_service.config.settings import Settings
from analytics_service.embedded.clickhouse import clickhouse
from analytics_service.errors import StoreUnavailable
from analytics_service.store.migrations import migrate
from analytics_service.store.rewrite import correction
from tests.doubles import Statement, WatchedStore
from tests.integration.imports import (
    IDS,
    Progress,
    contents,
    many,
    observations,
    prices_file,
    query,
    run,
)


def flaky(settings: Settings, failures: int) -> Store:
    """A store whose inserts of prices arrive and then fail, so many times."""
    left = [failures]

    def fail(statement: Statement) -> None:
        if statement.kind == "insert" and statement.name.startswith("observation_staging") and left[0]:
            left[0] -= 1
            raise StoreUnavailable("ClickHouse cannot be reached.")

    return WatchedStore(settings, after=fail)


@pytest.mark.usefixtures("store")
def test_a_failed_insert_is_sent_again(settings: Settings, tmp_path: Path) -> None:
    pauses: list[float] = []
    path = prices_file(tmp_path, [(IDS[0], 100, "1"), (IDS[1], 100, "2")])
    with closing(flaky(settings, failures=3)) as store:
        run(store, path, wait=pauses.append)
    assert pauses == sorted(pauses)
    assert len(pauses) == 3
    assert observations(settings) == {(IDS[0], 100): Decimal(1), (IDS[1], 100): Decimal(2)}


@pytest.mark.usefixtures("store")
def test_an_import_gives_up_after_half_a_minute_and_says_how_to_continue(settings: Settings, tmp_path: Path) -> None:
    pauses: list[float] = []
    path = prices_file(tmp_path, [(IDS[0], 100, "1")])
    with (
        closing(flaky(settings, failures=1000)) as store,
        pytest.raises(StoreUnavailable, match="run the same command again"),
    ):
        run(store, path, wait=pauses.append)
    assert 20 <= sum(pauses) <= 40
    assert contents(settings)["ledger"] == []


@pytest.fixture(scope="module")
def mortal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Settings]:
    """A server that only this test uses, so that it can be killed."""
    with clickhouse(Settings(data_dir=tmp_path_factory.mktemp("mortal")), "pytest") as running:
        yield running


def test_an_import_survives_the_death_of_clickhouse(
    mortal: Settings, store: Store, settings: Settings, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """What it wrote is what an import that nothing disturbs writes."""
    # Their log records hold open connections, which pytest keeps, and which the server would wait for when it stops.
    for logger in ("clickhouse_connect", "urllib3"):
        caplog.set_level(logging.CRITICAL, logger)
    rows = many(2_000, 2, seed=4)
    path = prices_file(tmp_path, rows)
    announced = read_running(mortal.data_dir)
    assert announced is not None
    with closing(Store(mortal)) as disturbed:
        migrate(disturbed)
        pauses: list[float] = []

        def pause(seconds: float) -> None:
            pauses.append(seconds)
            time.sleep(seconds)

        progress = Progress(at_first_batch=lambda: os.kill(announced.server, signal.SIGKILL))
        run(disturbed, path, reporter=progress, wait=pause)
        assert pauses, "ClickHouse was not missed"
        run(store, path)
        assert contents(mortal) == contents(settings)


def test_the_next_correction_drops_the_staging_tables_of_those_before_and_no_others(
    store: Store, settings: Settings
) -> None:
    others = {"dbt_staging_1", "observation_staging_x", "`my_staging_x-1`"}
    ours = {"asset_definition_staging_17", "observation_staging_17", "snapshot_staging_17"}
    for name in others | ours:
        store.execute(f"CREATE TABLE {name} (n UInt8) ENGINE = MergeTree ORDER BY n COMMENT 'x'")
    with correction(store, "rates", "remove"):
        pass
    assert staged(settings) == {name.strip("`") for name in others}


def staged(settings: Settings) -> set[str]:
    """Tables with names like those of staging tables."""
    sql = "SELECT name FROM system.tables WHERE database = currentDatabase() AND position(name, '_staging_') > 0"
    return {str(name) for (name,) in query(settings, sql)}
