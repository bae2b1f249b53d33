"""Imports during which ClickHouse or the import itself dies."""

from contextlib import closing
from pathlib import Path

import pytest

from analytics_service.clickhouse.connection import Store
from analytics_service.config.settings import Settings
from analytics_service.errors import StoreUnavailable
from analytics_service.store.rewrite import correction
from tests.doubles import Statement, WatchedStore
from tests.integration.imports import (
    IDS,
    contents,
    prices_file,
    query,
    run,
)


@pytest.mark.usefixtures("store")
def test_an_import_without_clickhouse_writes_nothing_and_says_how_to_continue(
    settings: Settings, tmp_path: Path
) -> None:
    """Rows arrive, and then the insert fails."""

    def fail(statement: Statement) -> None:
        if statement.kind == "insert" and statement.name.startswith("observation_staging"):
            raise StoreUnavailable("ClickHouse cannot be reached.")

    path = prices_file(tmp_path, [(IDS[0], 100, "1")])
    with (
        closing(WatchedStore(settings, after=fail)) as store,
        pytest.raises(StoreUnavailable, match="run the same command again"),
    ):
        run(store, path)
    assert contents(settings)["ledger"] == []


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
