"""Migrations, and the schema as a public interface: its comments, its dictionary."""

import re
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from click.testing import CliRunner

from analytics_service.cli.main import cli
from analytics_service.clickhouse.client import connect, pools_for
from analytics_service.clickhouse.cluster import Cluster
from analytics_service.clickhouse.columns import SnapshotTable
from analytics_service.clickhouse.connection import Store
from analytics_service.config.settings import Settings
from analytics_service.errors import SchemaError
from analytics_service.store.datasets import assets, events, markets, positions
from analytics_service.store.job_runs import JobRun, record_job_run
from analytics_service.store.ledger import read_heads
from analytics_service.store.migrations import migrate, require_server
from analytics_service.store.schema import (
    Migration,
    pending_migrations,
    shipped_migrations,
    tables_made_by,
    view_names,
    view_statements,
)
from tests import clickhouse
from tests.dictionary import DICTIONARY, dictionary
from tests.integration.conftest import Run
from tests.integration.pages import commit

_TABLES = [
    table for module in (markets, positions) for table in vars(module).values() if isinstance(table, SnapshotTable)
]
_DECLARED = {
    **{table.name: table.columns for table in _TABLES},
    "asset_definition": assets.COLUMNS,
    "event_version": events.COLUMNS,
    "position_change": positions.ITEM_COLUMNS,
}
ONE_SHARD, THREE_SHARDS = Cluster("Atomic", "main", 1), Cluster("Atomic", "main", 3)
# Columns that whoever writes a row adds.
_OF_RUNS = ("observed_at", "defined_at", "version", "origin", "removed", "closed")


def test_a_changed_script_is_refused_by_name(store: Store) -> None:
    first, *rest = shipped_migrations()
    with pytest.raises(SchemaError, match=first.name):
        migrate(store, [replace(first, script=first.script + "-- changed\n"), *rest])


def test_a_database_of_a_newer_version_is_refused(store: Store) -> None:
    with pytest.raises(SchemaError, match="newer"):
        pending_migrations(store, shipped_migrations()[:-1])


def test_a_database_of_an_unreleased_schema_is_refused_in_one_line(store: Store) -> None:
    """Its first script was that of the ledger."""
    store.execute("ALTER TABLE schema_migration DELETE WHERE number = 1 SETTINGS mutations_sync = 2")
    store.execute("INSERT INTO schema_migration (number, name, checksum) SELECT 1, '0001_ledger.sql', repeat('0', 64)")
    for act in (migrate, pending_migrations):
        with pytest.raises(SchemaError, match=r"^An unreleased version before 1.0.0 .*`export`.*`import`.*\.$"):
            act(store)


def test_a_condition_on_asset_and_time_reads_of_a_view_what_it_reads_of_the_table(
    settings: Settings, store: Store
) -> None:
    """A week of one asset, of a year of hours of four."""
    hours = [int(datetime(2025, 1, 1, tzinfo=UTC).timestamp()) + 3600 * hour for hour in range(8_760)]
    commit(store, {f"token;{name}": [(at, Decimal(at % 97)) for at in hours] for name in "abcd"})
    where = "asset_id = 'token;d' AND observed_at >= '2025-03-03' AND observed_at < '2025-03-10'"
    with clickhouse.client(settings) as own:
        table = own.query(f"SELECT count(), sum(value) FROM observation FINAL WHERE history = 'price' AND {where}")
        view = own.query(f"SELECT count(), sum(price) FROM price WHERE {where}")
    assert table.result_rows == view.result_rows == [(168, sum(Decimal(at % 97) for at in hours[1464:1632]))]
    # The view also reads the definitions of four assets.
    assert int(view.summary["read_rows"]) <= int(table.summary["read_rows"]) + 4


def test_a_script_that_failed_half_way_runs_again_as_a_whole(settings: Settings, store: Store, run: Run) -> None:
    """The first statement took effect, the second failed, and the script is not recorded."""
    first = "CREATE TABLE IF NOT EXISTS half (n UInt8) ENGINE = MergeTree ORDER BY n COMMENT 'x';\n"
    broken = Migration(900, "0900_half.sql", first + "CREATE TABLE other (n NoSuchType) ENGINE = Memory;\n")
    with pytest.raises(Exception, match="refused"):
        migrate(store, [*shipped_migrations(), broken])
    assert run("EXISTS half") == [(1,)]
    mended = Migration(900, "0900_half.sql", first + "INSERT INTO half VALUES (7);\n")
    assert migrate(store, [*shipped_migrations(), mended]) == [mended]
    assert run("SELECT n FROM half") == [(7,)]


def test_the_schema_does_not_change_beside_a_running_scheduler(
    settings: Settings, store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    """It may be of an older version, whose rows lack what the newer schema needs. Who is alone with a store need not
    wait for a scheduler that was killed."""
    later, last = (
        Migration(n, f"0{n}_later.sql", f"CREATE TABLE later_{n} (n UInt8) ENGINE = Memory;\n") for n in (900, 901)
    )
    run = JobRun("prices", "host:1", 60, next_at=int(time.time()) + 60)
    record_job_run(store, [run])
    assert migrate(store) == []
    with pytest.raises(SchemaError, match=r"The scheduler host:1 writes to the store; .* Stop it and try again"):
        migrate(store, [*shipped_migrations(), later])
    assert pending_migrations(store) == []
    with caplog.at_level("INFO"):
        assert migrate(store, [*shipped_migrations(), later], is_alone=True) == [later]
    assert caplog.messages == ["Upgrading the schema: 0900_later.sql"]
    record_job_run(store, [replace(run, next_at=None)])
    assert migrate(store, [*shipped_migrations(), later, last]) == [last]


def test_migrating_names_tables_and_views_that_are_gone(settings: Settings, store: Store) -> None:
    """Their migrations are recorded, so that nothing makes them again."""
    store.execute("DROP TABLE job_run SYNC")
    store.execute("DROP TABLE swap_route SYNC")
    for command in ("migrate", "status"):
        result = CliRunner().invoke(cli, [command], env=settings.to_environment({}))
        assert result.exit_code == 1
        assert "job_run (made by 0002_ledger.sql), swap_route (made by 0008_swaps.sql)" in result.output
        assert "analytics-service restore FILE --replace" in result.output


def test_views_are_made_again_if_one_is_missing_or_was_made_by_another_version_or_setting(
    store: Store, run: Run
) -> None:
    def uuids() -> set[object]:
        return {id_ for (id_,) in run("SELECT uuid FROM system.tables WHERE database = currentDatabase()")}

    migrate(store)
    before = uuids()
    migrate(store)
    assert uuids() == before
    store.execute("DROP VIEW price SYNC")
    migrate(store)
    after = uuids()
    assert len(after) == len(before)
    assert len(after - before) == len(view_names())
    store.execute("INSERT INTO schema_migration (number, name, checksum) SELECT 0, 'views', repeat('0', 64)")
    migrate(store)
    newest = uuids()
    assert len(newest - after) == len(view_names())
    # They have the age at which a price is too old.
    store.price_max_age /= 2
    migrate(store)
    assert len(uuids() - newest) == len(view_names())


@pytest.mark.parametrize("lost", ["snapshot_head", "snapshot_head_view"])
def test_heads_are_derived_again_if_what_keeps_them_is_lost(store: Store, lost: str) -> None:
    commit(store, {"token;a": [(100, Decimal(1))]})
    before = read_heads(store)
    assert before
    store.execute(f"DROP TABLE {lost} SYNC")
    assert migrate(store) == []
    after = read_heads(store)
    assert {dataset: replace(head, runs=0) for dataset, head in after.items()} == {
        dataset: replace(head, runs=0) for dataset, head in before.items()
    }
    commit(store, {"token;a": [(200, Decimal(1))]})
    assert read_heads(store) != after


@pytest.mark.usefixtures("store")
@pytest.mark.parametrize("layout", [ONE_SHARD, THREE_SHARDS])
def test_clickhouse_understands_every_statement_of_a_cluster(run: Run, layout: Cluster) -> None:
    scripts = [statement for migration in shipped_migrations() for statement in migration.statements]
    written = [*scripts, *view_statements(timedelta(days=1))]
    rendered = [each for statement in written for each in layout.rendered(statement, "analytics")]
    quoted = [statement.replace("\\", "\\\\").replace("'", "\\'") for statement in rendered]
    listed = ", ".join(f"'{statement}'" for statement in quoted)
    assert run(f"SELECT countIf(formatQuery(statement) != '') FROM (SELECT arrayJoin([{listed}]) AS statement)") == [
        (len(rendered),)
    ]


@pytest.mark.usefixtures("store")
@pytest.mark.parametrize("layout", [ONE_SHARD, THREE_SHARDS, Cluster("Shared")])
def test_clickhouse_knows_every_setting_of_a_cluster(run: Run, layout: Cluster) -> None:
    """By name, and it takes the value for the setting's type."""
    for name, value in layout.settings.items():
        shown = run(f"SELECT value FROM system.settings WHERE name = '{name}' SETTINGS {name} = '{value}'")
        assert shown == [(str(value),)]


@pytest.mark.usefixtures("views")
def test_the_scripts_make_what_a_new_database_has(store: Store, run: Run) -> None:
    """Nothing else is in it, apart from the list of migrations itself."""
    present = run("SELECT name FROM system.tables WHERE database = currentDatabase() AND name != 'schema_migration'")
    assert {name for (name,) in present} == {*tables_made_by(shipped_migrations()), *view_names()}


def test_an_old_server_is_refused_in_plain_words() -> None:
    for version in ("25.7.9.1", "24.12.1.1", "9.1"):
        with pytest.raises(SchemaError, match=rf"{version}.*25\.8 is the oldest"):
            require_server(version)
    for version in ("25.8.1.1", "26.1.2.3"):
        require_server(version)


@pytest.mark.usefixtures("views")
def test_every_table_and_column_says_what_it_means(store: Store, run: Run) -> None:
    assert run("SELECT name FROM system.tables WHERE database = currentDatabase() AND comment = ''") == []
    assert run("SELECT table, name FROM system.columns WHERE database = currentDatabase() AND comment = ''") == []


@pytest.mark.usefixtures("store")
def test_the_schema_has_the_types_and_meanings_that_records_declare(run: Run) -> None:
    """LowCardinality is no matter of a record."""
    for table, columns in _DECLARED.items():
        made = run(
            f"SELECT name, type, comment FROM system.columns WHERE database = currentDatabase() AND table = '{table}'"
        )
        own = {name: (_plain(kind), meaning) for name, kind, meaning in made if name not in _OF_RUNS}
        assert own == {
            name: (f"Nullable({kind.sql})" if kind.nullable and kind.nothing is None else kind.sql, kind.meaning)
            for name, kind in columns.items()
        }, table


def _plain(kind: str) -> str:
    return re.sub(r"LowCardinality\((.*)\)", r"\1", kind)


@pytest.mark.usefixtures("views")
def test_the_dictionary_is_that_of_the_schema(settings: Settings) -> None:
    """`python -m tests.dictionary` writes it."""
    assert dictionary(settings) == DICTIONARY.read_text("utf-8")


@pytest.mark.usefixtures("views")
def test_the_dictionary_has_every_column_of_views_with_parameters(run: Run, store: Store) -> None:
    """Or says whose columns they are. What such a view declares does not change what it has. test_views.py compares
    those of the present and as of an instant."""
    store.execute("INSERT INTO asset_definition (id) VALUES ('x')")
    page = DICTIONARY.read_text("utf-8")
    described = {
        heading: re.findall(r"(?m)^- `(\w+)` (.*?): ", text)
        for heading, text in re.findall(r"(?ms)^### (\w+)\n(.*?)(?=^##|\Z)", page)
    }
    for view, arguments in {
        "account_item_at": "time = 0",
        "anomalies": "start = 0, end = 1, factor = 3",
        "account_history": "address = 'x'",
        "risk_ladder": "asset_id = 'x', time = 0",
    }.items():
        columns = [(name, _plain(kind)) for name, kind, *_ in run(f"DESCRIBE {view}({arguments})")]
        like = re.search(rf"(?m)^### {view}\n\n.*, with the columns of (\w+)", page)
        assert described[like[1] if like else view] == columns


def test_no_statement_inserts_asynchronously(settings: Settings) -> None:
    """By default ClickHouse does, and refuses that with a quorum whose INSERTs follow each other."""
    sql = "SELECT getSetting('async_insert')"
    with clickhouse.client(replace(settings, clickhouse_database="default")) as own:
        assert own.command(sql) == "true"
    pools = pools_for(settings)
    service, _ = connect(settings, pools)
    assert service.command(sql, use_database=False) == "false"
    pools.clear()
