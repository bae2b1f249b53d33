"""What a cluster makes of statements and queries."""

import re

import pytest

from analytics_service.store.layout import SPLIT, Layout
from analytics_service.store.schema import Applied, shipped, tables_of, unapplied
from analytics_service.store.sql import created, scripts
from tests.golden import LAYOUTS, LAYOUTS_FILE, layouts

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
    assert own == {"broken_parts", "free_room", "researcher_limits"}


def test_the_golden_file_is_up_to_date() -> None:
    """`python -m tests.golden` writes it."""
    assert layouts() == LAYOUTS_FILE.read_text("utf-8")


@pytest.mark.parametrize("layout", [Layout(), Layout("Atomic"), Layout("Shared")])
def test_on_a_single_server_and_in_the_cloud_placeholders_are_empty(layout: Layout) -> None:
    assert {*layout.placeholders.values()} == {""}
    assert layout.rendered("CREATE TABLE a{local}{on_cluster}", "analytics") == ["CREATE TABLE a"]


def test_servers_that_have_not_executed_a_statement_are_told_from_its_answer() -> None:
    """In a Replicated database by shard and replica. On a single server no statement has such an answer."""
    answer = ["s1", "r1", "OK", "1", "0\ns1", "r2", "QUEUED", "1", "0"]
    assert Layout("Replicated").left_out(answer) == ["s1:r2"]
    assert Layout().left_out(answer) == []
    assert Layout("Replicated").left_out("") == []


def test_a_database_that_sends_ddl_itself_needs_no_cluster() -> None:
    one = LAYOUTS["A cluster of one shard"].placeholders
    assert Layout("Replicated", "main", 3).placeholders == {**one, "on_cluster": ""}


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
    one, several, *_ = LAYOUTS.values()
    fitting = {layout: [engine for engine in engines if layout.fits(engine)] for layout in (Layout(), one, several)}
    assert fitting == {Layout(): [*engines[:2]], one: [engines[2]], several: [engines[3]]}
