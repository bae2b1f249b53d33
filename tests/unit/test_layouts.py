"""What a cluster makes of statements and queries."""

import re

import pytest

from analytics_service.clickhouse.cluster import SPLIT, Cluster
from analytics_service.clickhouse.queries import created_name, query_texts, sql_scripts
from analytics_service.store.schema import shipped_migrations, tables_of

ONE_SHARD, THREE_SHARDS = Cluster("Atomic", "main", 1), Cluster("Atomic", "main", 3)
# System tables that say the same on all servers of a cluster.
_SAME = {"clusters", "columns", "databases", "tables"}


def test_only_queries_about_the_asked_server_read_what_no_other_server_knows() -> None:
    """All others have the same answer from each: rows of all shards, or a copy that each has. What `{from}` stands for
    is on all servers."""
    texts = [query for script in sql_scripts("queries") for query in query_texts(script.read_text("utf-8"))]
    own = {name for name, text in texts if {*re.findall(r"\bsystem\.(\w+)", text)} - _SAME}
    assert own == {
        "read_backup_progress",
        "list_broken_parts",
        "read_free_room",
        "kill_backup",
        "read_researcher_limits",
    }


@pytest.mark.parametrize("layout", [Cluster(), Cluster("Atomic"), Cluster("Shared")])
def test_on_a_single_server_and_in_the_cloud_placeholders_are_empty(layout: Cluster) -> None:
    assert {*layout.placeholders.values()} == {""}
    assert layout.rendered("CREATE TABLE a{local}{on_cluster}", "analytics") == ["CREATE TABLE a"]


def test_a_database_that_sends_ddl_itself_needs_no_cluster() -> None:
    assert Cluster("Replicated", "main", 3).placeholders == {**ONE_SHARD.placeholders, "on_cluster": ""}


def test_a_statement_is_for_all_servers_and_for_the_parts_of_a_split_table() -> None:
    """Also of its staging tables. Rows are deleted from the parts only."""
    created = (
        "CREATE TABLE IF NOT EXISTS rollup{local}{on_cluster} (n UInt8)\nENGINE = {replicated}MergeTree ORDER BY n"
    )
    assert ONE_SHARD.rendered(created, "analytics") == [
        "CREATE TABLE IF NOT EXISTS rollup ON CLUSTER 'main' (n UInt8)\nENGINE = ReplicatedMergeTree ORDER BY n"
    ]
    assert THREE_SHARDS.rendered(created, "analytics") == [
        "CREATE TABLE IF NOT EXISTS rollup_local ON CLUSTER 'main' (n UInt8)\nENGINE = ReplicatedMergeTree ORDER BY n",
        "CREATE TABLE IF NOT EXISTS rollup ON CLUSTER 'main' AS rollup_local\n"
        "ENGINE = Distributed('main', 'analytics', 'rollup_local', cityHash64(asset_id))",
    ]
    assert THREE_SHARDS.rendered("DROP TABLE position_change_staging_1{local}{on_cluster}", "analytics") == [
        "DROP TABLE position_change_staging_1_local ON CLUSTER 'main'",
        "DROP TABLE position_change_staging_1 ON CLUSTER 'main'",
    ]
    assert THREE_SHARDS.rendered("DELETE FROM rollup{local}{on_cluster} WHERE true", "analytics") == [
        "DELETE FROM rollup_local ON CLUSTER 'main' WHERE true"
    ]


def test_each_table_is_split_or_copied() -> None:
    made = [
        statement
        for script in shipped_migrations()
        for statement in script.statements
        if statement.startswith("CREATE T")
    ]
    assert {created_name(statement) for statement in made if "{local}{on_cluster}" in statement} == {*SPLIT}
    assert {created_name(statement) for statement in made if "{copied" in statement} == {
        *tables_of(shipped_migrations())
    } - {*SPLIT}
    assert all("{on_cluster}" in statement and "ENGINE = {replicated}" in statement for statement in made)


def test_a_layout_fits_the_tables_that_it_makes() -> None:
    """A process that is set up otherwise would read and write less carefully than it must."""
    engines = ("ReplacingMergeTree", "SharedReplacingMergeTree", "ReplicatedReplacingMergeTree", "Distributed")
    fitting = [[engine for engine in engines if layout.fits(engine)] for layout in (Cluster(), ONE_SHARD, THREE_SHARDS)]
    assert fitting == [[*engines[:2]], [engines[2]], [engines[3]]]
