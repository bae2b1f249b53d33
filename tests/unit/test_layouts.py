"""What a cluster makes of statements and queries."""

import re

import pytest

from analytics_service.clickhouse.cluster import SPLIT, Layout
from analytics_service.clickhouse.queries import created, scripts
from analytics_service.store.schema import Applied, shipped, tables_of, unapplied

ONE_SHARD, THREE_SHARDS = Layout("Atomic", "main", 1), Layout("Atomic", "main", 3)
# System tables that say the same on all servers of a cluster.
_SAME = {"clusters", "columns", "databases", "tables"}
MADE_BEFORE = [
    (1, "0001_ledger.sql", "377d4aa08db63ccf9ec4dc0440677a08506528c7a8d212fbc7d54bedc25521a0"),
    (2, "0002_observations.sql", "9987250805e6bdf373e1214dd8764e6a60ed2bc7da588dd10f780824c468ff1c"),
    (3, "0003_assets.sql", "20232815bb89a61100186058e69427d45aa4ec1b4c417f65424b1b065d271855"),
    (4, "0004_markets.sql", "ef7a09e609906429209d33607f99c85d494f80d77291dfb9e21b4a716a70e0ba"),
    (5, "0005_ptoken.sql", "e77df337b0140aab90c5ee75de96588e9ade523c1462de3bb68bb998b9213b92"),
    (6, "0006_positions.sql", "d213792d45c5f936899fa534fbfd51562987d467aff881e832951dbb1e8a1c01"),
    (7, "0007_events.sql", "616095f2b022e978c8cd0afc65b401bb088e96a24c5c05c80d741b35e4c04808"),
    (8, "0008_swaps.sql", "9638250743fee5952e27fe3bda96d2d55367be1da11fd27e849f86d2ddb604c3"),
    (9, "0009_stated.sql", "1d4e9cd101c537f012b3cf71f653d9b08b6a23629a0c2b5d811372543b68f953"),
]


def test_only_queries_about_the_asked_server_read_what_no_other_server_knows() -> None:
    """All others have the same answer from each: rows of all shards, or a copy that each has. What `{from}` stands for
    is on all servers."""
    texts = {script.stem: script.read_text("utf-8") for script in scripts("queries")}
    own = {name for name, text in texts.items() if {*re.findall(r"\bsystem\.(\w+)", text)} - _SAME}
    assert own == {"backup_progress", "broken_parts", "free_room", "kill_backup", "researcher_limits"}


@pytest.mark.parametrize("layout", [Layout(), Layout("Atomic"), Layout("Shared")])
def test_on_a_single_server_and_in_the_cloud_placeholders_are_empty(layout: Layout) -> None:
    assert {*layout.placeholders.values()} == {""}
    assert layout.rendered("CREATE TABLE a{local}{on_cluster}", "analytics") == ["CREATE TABLE a"]


def test_a_database_that_sends_ddl_itself_needs_no_cluster() -> None:
    assert Layout("Replicated", "main", 3).placeholders == {**ONE_SHARD.placeholders, "on_cluster": ""}


def test_a_statement_is_for_all_servers_and_for_the_parts_of_a_split_table() -> None:
    """Also of its staging tables. Rows are deleted from the parts only."""
    created = "CREATE TABLE IF NOT EXISTS cell{local}{on_cluster} (n UInt8)\nENGINE = {replicated}MergeTree ORDER BY n"
    assert ONE_SHARD.rendered(created, "analytics") == [
        "CREATE TABLE IF NOT EXISTS cell ON CLUSTER 'main' (n UInt8)\nENGINE = ReplicatedMergeTree ORDER BY n"
    ]
    assert THREE_SHARDS.rendered(created, "analytics") == [
        "CREATE TABLE IF NOT EXISTS cell_local ON CLUSTER 'main' (n UInt8)\nENGINE = ReplicatedMergeTree ORDER BY n",
        "CREATE TABLE IF NOT EXISTS cell ON CLUSTER 'main' AS cell_local\n"
        "ENGINE = Distributed('main', 'analytics', 'cell_local', cityHash64(asset_id))",
    ]
    assert THREE_SHARDS.rendered("DROP TABLE event_staging_1{local}{on_cluster}", "analytics") == [
        "DROP TABLE event_staging_1_local ON CLUSTER 'main'",
        "DROP TABLE event_staging_1 ON CLUSTER 'main'",
    ]
    assert THREE_SHARDS.rendered("DELETE FROM cell{local}{on_cluster} WHERE true", "analytics") == [
        "DELETE FROM cell_local ON CLUSTER 'main' WHERE true"
    ]


def test_each_table_is_split_or_copied() -> None:
    tables = tables_of(shipped())
    made = [statement for script in shipped() for statement in script.statements if statement.startswith("CREATE T")]
    assert {created(statement) for statement in made if "{local}{on_cluster}" in statement} == {*SPLIT}
    made = [statement for statement in made if created(statement) in tables]
    assert {created(statement) for statement in made if "{copied" in statement} == {*tables} - {*SPLIT}
    assert all("{on_cluster}" in statement and "ENGINE = {replicated}" in statement for statement in made)


def test_a_store_that_was_made_before_scripts_had_placeholders_goes_on() -> None:
    """These are the checksums in it, of the text for a single server."""
    assert unapplied([Applied(*row) for row in MADE_BEFORE], shipped()[: len(MADE_BEFORE)]) == []


def test_a_layout_fits_the_tables_that_it_makes() -> None:
    """A process that is set up otherwise would read and write less carefully than it must."""
    engines = ("ReplacingMergeTree", "SharedReplacingMergeTree", "ReplicatedReplacingMergeTree", "Distributed")
    fitting = [[engine for engine in engines if layout.fits(engine)] for layout in (Layout(), ONE_SHARD, THREE_SHARDS)]
    assert fitting == [[*engines[:2]], [engines[2]], [engines[3]]]
