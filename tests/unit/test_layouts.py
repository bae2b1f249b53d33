"""What a cluster makes of statements that are written for a single server, and how each statement behaves there."""

import re
from pathlib import Path

import pytest

import analytics_service
from analytics_service.store.layout import SPLIT, Layout
from analytics_service.store.sql import scripts
from tests.golden import COMPOSED, LAYOUTS, LAYOUTS_FILE, layouts, written

# How queries behave on a cluster. Nothing depends on a system table that only the asked server knows.
BEHAVIOUR = {
    "reads or fills tables that are split: all shards answer, or there is no answer": {
        "account_event_count",
        "account_event_counts",
        "account_event_page",
        "account_event_place",
        "account_events_since",
        "borrowing_items",
        "cell_count",
        "event_sums",
        "events_since",
        "example_address",
        "fill_quarters",
        "fill_wider_cells",
        "frame_before",
        "frame_days",
        "frame_edges",
        "frame_quarters",
        "frame_tail",
        "history_series",
        "instants",
        "left_behind",
        "observed_prices",
        "observed_since",
        "observed_values",
        "position_digests",
        "position_items",
        "prices_at",
        "rows_by_day",
        "rows_by_series",
    },
    "reads or writes tables with a copy on every server": {
        "announce_assets",
        "applied_migrations",
        "assets",
        "claim",
        "example_contract",
        "export_definitions",
        "family_state",
        "first_moment",
        "forget_future_reports",
        "import_began",
        "interest_added",
        "job_runs",
        "ledger",
        "make_claim",
        "new_version",
        "newest_source",
        "nth_snapshot",
        "recent_imports",
        "rewrites",
        "rows_by_family",
        "run_begins",
        "runs_reaching",
        "runs_since",
        "scheduled_runs",
        "show_assets",
        "snapshot_before",
    },
    "reads a table or view that the caller names, or is made of other queries": {
        "asset_ids",
        "backup_rows",
        "export_months",
        "export_rows",
        "frame_rows",
        "last_rows",
        "row_count",
        "snapshot_rows",
        "staged_days",
        "staged_runs",
    },
    "reads names, which are the same on all servers; of bytes and limits, those of the asked server": {
        "abandoned_staging",
        "asset_columns",
        "databases_by_comment",
        "cluster_shards",
        "table_engines",
        "export_columns",
        "foreign_views",
        "researcher_limits",
        "staging_tables",
        "tables",
    },
    "asks all servers": {"differing_tables"},
    "informs about the asked server": {"has_room", "server_memory", "table_sizes"},
    "reads views of a source in a database of the operator": {
        "source_columns",
        "source_events",
        "source_newest",
        "source_rows",
        "source_snapshot",
    },
}
_SPLIT = re.compile(rf"\b(FROM|JOIN|INTO) ({'|'.join(SPLIT)})\b")


def behaviour(query: str) -> str:
    """How a query behaves, from its text."""
    split, copied, named, names, everywhere, informs, foreign = BEHAVIOUR
    if "clusterAllReplicas" in query:
        return everywhere
    if "{database:Identifier}" in query or "startsWith(table, 'source_')" in query:
        return foreign
    if _SPLIT.search(query):
        return split
    if tables := {*re.findall(r"\bsystem\.(\w+)", query)}:
        return informs if tables & {"disks", "metrics", "parts"} else names
    return named if re.search(r"{(table:Identifier|view|parts)}", query) else copied


@pytest.mark.parametrize("script", scripts("queries"), ids=lambda path: path.stem)
def test_how_each_query_behaves_on_a_cluster_is_listed(script: Path) -> None:
    listed = [text for text, names in BEHAVIOUR.items() if script.stem in names]
    assert listed == [behaviour(script.read_text("utf-8"))]


def test_the_golden_file_has_every_kind_of_statement_that_code_composes() -> None:
    """`store/layout.py` has the rules for them, and `store/connection.py` inserts rows."""
    kinds = set()
    for path in Path(analytics_service.__file__).parent.rglob("*.py"):
        if path.stem not in ("layout", "connection"):
            text = path.read_text("utf-8")
            kinds |= {*re.findall(r'"((?:CREATE|ALTER|DROP|EXCHANGE|TRUNCATE|DELETE|RENAME|INSERT) [A-Z]+) ', text)}
    assert kinds == {" ".join(statement.split()[:2]) for statement in COMPOSED}


def test_the_golden_file_is_up_to_date() -> None:
    """`python -m tests.golden` writes it."""
    assert layouts() == LAYOUTS_FILE.read_text("utf-8")


@pytest.mark.parametrize("layout", [Layout(), Layout("Atomic"), Layout("Shared")])
def test_on_a_single_server_and_in_the_cloud_statements_stay_as_they_are(layout: Layout) -> None:
    assert [layout.rendered(statement, "analytics") for statement in written()] == [[one] for one in written()]


def test_columns_and_keys_are_those_that_are_written() -> None:
    """On one shard nothing changes but the servers, the engine and a setting."""
    changes = ((" ON CLUSTER 'main'", ""), ("ENGINE = Replicated", "ENGINE = "), ("MergeTree()", "MergeTree"))
    for statement in written():
        (rendered,) = LAYOUTS["A cluster of one shard"].rendered(statement, "analytics")
        for change in (*changes, ("SETTINGS replicated_", "SETTINGS non_replicated_")):
            rendered = rendered.replace(*change)
        if not rendered.startswith("INSERT"):
            assert statement.endswith(rendered)


def test_a_database_that_sends_ddl_itself_needs_no_cluster() -> None:
    replicated, one = Layout("Replicated", "main", 1), LAYOUTS["A cluster of one shard"]
    for statement in written():
        expected = [rendered.replace(" ON CLUSTER 'main'", "") for rendered in one.rendered(statement, "analytics")]
        assert replicated.rendered(statement, "analytics") == expected


def test_statements_have_settings_only_where_servers_share_tables() -> None:
    assert Layout().settings == Layout("Atomic").settings == {}
    assert Layout("Shared").settings == {"select_sequential_consistency": 1}
    one, several = (layout.settings for layout in LAYOUTS.values())
    assert one == Layout("Replicated").settings
    assert (one["insert_quorum"], one["insert_quorum_parallel"], one["select_sequential_consistency"]) == ("auto", 0, 1)
    assert one.items() < several.items()
    assert (several["skip_unavailable_shards"], several["distributed_foreground_insert"]) == (0, 1)


def test_a_layout_fits_the_tables_that_it_makes() -> None:
    """A process that is set up otherwise would read and write less carefully than it must."""
    engines = ("ReplacingMergeTree", "SharedReplacingMergeTree", "ReplicatedReplacingMergeTree", "Distributed")
    one, several = LAYOUTS.values()
    fitting = {layout: [engine for engine in engines if layout.fits(engine)] for layout in (Layout(), one, several)}
    assert fitting == {Layout(): [*engines[:2]], one: [engines[2]], several: [engines[3]]}
