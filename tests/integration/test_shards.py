"""A store of three shards: answers are those of a single server, or none while a shard is away."""

import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from click.testing import CliRunner

from analytics_service.admin.remove import Removal, remove
from analytics_service.cli.main import cli
from analytics_service.clickhouse.connection import Store
from analytics_service.clickhouse.queries import split_statements
from analytics_service.config.settings import Settings
from analytics_service.errors import OtherShards, SchemaError, StoreUnavailable
from analytics_service.sources.simulated import RICH_ADDRESS
from analytics_service.sources.simulated.source import SimulatedSource
from analytics_service.state.health import Monitor
from analytics_service.state.watcher import HeadWatcher
from analytics_service.store.ledger import read_heads
from analytics_service.store.migrations import migrate
from analytics_service.store.schema import pending_migrations
from jobs.registry import JOBS
from jobs.runner import backfill, take_snapshot
from tests.clickhouse import client
from tests.integration import imports
from tests.integration.databases import database, make_views
from tests.integration.routes import KINDS, NOON, ROUTES, SNAPSHOT_ROUTES, at, client_of, get
from tests.integration.shards import SMALLER, Shard, ShardedStore, running, settings_of
from tests.processes import slack, until

HOUR = timedelta(hours=1)
# One path of each kind that the store answers.
PATHS = [path for path in KINDS.values() if path in SNAPSHOT_ROUTES]
# Status and body by path.
Answers = Mapping[str, tuple[int, bytes]]


class Real(SimulatedSource):
    """The simulated protocol, which files may join."""

    simulated = False


class Stores(NamedTuple):
    """Two stores with the same data, on one server and on three, and the answers from the first."""

    whole: Store
    split: Store
    shards: list[Shard]
    answers: Answers


@pytest.fixture(scope="module")
def shards(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Shard]]:
    with running(tmp_path_factory.mktemp("shards")) as servers:
        yield servers


@pytest.fixture(scope="module")
def stores(server: Settings, shards: list[Shard], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stores]:
    folder = tmp_path_factory.mktemp("files")
    with (
        database(replace(server, clickhouse_database="test_whole")) as whole,
        closing(ShardedStore(settings_of(shards), shards)) as split,
    ):
        make_views(whole)
        migrate(split)
        for store in (whole, split):
            fill(store, folder)
        yield Stores(whole, split, shards, answers(whole, PATHS))


def fill(store: Store, folder: Path) -> None:
    """Snapshots that the paths need, and imported prices: with all that is staged. A snapshot of markets is removed:
    with all that is taken out."""
    source = Real("1")
    for name in ("prices", "markets", "ptoken", "positions", "loans"):
        take_snapshot(JOBS[name], source, store, at(NOON))
    rows = [(asset, NOON - 60 * minute, f"{minute + 1}.5") for minute in range(20) for asset in imports.IDS]
    imports.run(store, imports.prices_file(folder, rows))
    take_snapshot(JOBS["markets"], source, store, at(NOON) + HOUR)
    remove(store, Removal("markets", None, NOON + 1, NOON + 3601), folder, imports.Progress())


def fill_all(store: Store) -> None:
    """The other datasets, and earlier snapshots that come later."""
    source = Real("1")
    for name in ("rates", "routes"):
        take_snapshot(JOBS[name], source, store, at(NOON))
    for name in ("positions", "loans"):
        backfill(JOBS[name], source, store, [at(NOON) - HOUR])


def answers(store: Store, paths: Iterable[str] = ROUTES) -> Answers:
    """Status and body of routes, of a process that remembers nothing."""
    fresh = client_of(store._settings, store)
    return {path: (answer.status_code, answer.content) for path in paths for answer in [get(fresh, path)]}


def monitor_of(store: Store) -> Monitor:
    """What a process tells of a store."""
    return Monitor(HeadWatcher(store, interval=None), dict, lambda: at(NOON), is_configured=False)


def rows(store: Store, sql: str, shard: Shard | None = None) -> list[tuple[Any, ...]]:
    """The rows of a query with nobody's settings, from a shard or from wherever the store is reached."""
    settings = store._settings
    with client(replace(settings, clickhouse_url=shard.url) if shard else settings) as own:
        return [tuple(row) for row in own.query(sql).result_rows]


def test_a_path_of_each_kind_answers_the_same_from_one_server_and_from_three(stores: Stores) -> None:
    assert {status for status, _ in stores.answers.values()} == {200}
    assert answers(stores.split, PATHS) == stores.answers


def test_researchers_see_the_same_without_settings_of_their_own(stores: Stores) -> None:
    expect_same_views(stores, "price", f"position_at(time = {NOON})")


def expect_same_views(stores: Stores, *views: str) -> None:
    for view in views:
        whole, split = (rows(store, f"SELECT * FROM {view} ORDER BY ALL") for store in (stores.whole, stores.split))
        assert split == [tuple(pytest.approx(v) if isinstance(v, float) else v for v in row) for row in whole] != []


def test_each_shard_has_some_of_the_rows_of_a_large_table(stores: Stores) -> None:
    for table in ("observation", "rollup", "position_change", "event_version"):
        ((total,),) = rows(stores.whole, f"SELECT count() FROM {table} FINAL")
        parts = [rows(stores.split, f"SELECT count() FROM {table}_local FINAL", shard)[0][0] for shard in stores.shards]
        assert sum(parts) == total
        assert min(parts) > 0


def test_without_one_of_the_shards_nothing_is_answered_that_needs_it(
    stores: Stores, caplog: pytest.LogCaptureFixture
) -> None:
    """Nor is a snapshot taken. Tables that every server has a copy of are read on."""
    heads, away = read_heads(stores.split), stores.shards[2]
    later = (JOBS["prices"], Real("1"), stores.split, at(NOON) + HOUR)
    away.stop()
    try:
        without = answers(stores.split, PATHS)
        assert "cannot reach all servers of its cluster" in caplog.text
        assert all("\n" not in record.getMessage() for record in caplog.records)
        monitor = monitor_of(stores.split)
        assert "the store cannot be read in full" in monitor.check().faults
        assert monitor.obstacles() == []
        with pytest.raises(StoreUnavailable):
            take_snapshot(*later)
        assert read_heads(stores.split) == heads
    finally:
        away.start()
        until(away.answers)
    refused = {path for path, (status, _) in without.items() if status == 503}
    assert refused == {path for path in PATHS if {"prices", "positions", "loans"} & {*ROUTES[path].datasets.split()}}
    read_on = {path: without[path] for path in {*PATHS} - refused}
    assert read_on
    assert read_on.items() <= stores.answers.items()
    assert take_snapshot(*later)


def test_while_a_shard_hangs_what_needs_it_is_refused_within_five_seconds(stores: Stores) -> None:
    service = client_of(stores.split._settings, stores.split)
    # In tests, the first request also reads the facts for operators, which has more time.
    assert get(service, KINDS["status"]).status_code == 200
    with stores.shards[2].paused():
        begun = time.monotonic()
        assert get(service, KINDS["one series"]).status_code == 503
        assert time.monotonic() - begun < 5.5 * slack()
        # Tables that every server has a copy of are read on.
        assert read_heads(stores.split)


def test_a_cluster_that_the_server_does_not_know_is_told(shards: list[Shard]) -> None:
    with (
        closing(Store(settings_of(shards, clickhouse_cluster="nowhere"))) as store,
        pytest.raises(SchemaError, match=f"{shards[0].url} has no cluster nowhere; ANALYTICS_CLICKHOUSE_CLUSTER"),
    ):
        store.server_version()


def test_a_process_without_the_name_of_the_cluster_is_refused(stores: Stores) -> None:
    with (
        closing(Store(replace(settings_of(stores.shards), clickhouse_cluster=None))) as store,
        pytest.raises(
            SchemaError, match=r"has the engine Distributed\. Set ANALYTICS_CLICKHOUSE_CLUSTER to the cluster"
        ),
    ):
        read_heads(store)


def test_shards_other_than_those_of_the_store_are_refused(stores: Stores) -> None:
    """By `migrate`, at each start, by a running service, and before a snapshot is taken."""
    heads = read_heads(stores.split)
    settings = settings_of(stores.shards, clickhouse_cluster=SMALLER)
    with closing(ShardedStore(settings, stores.shards)) as fewer:
        for refused in (
            migrate,
            pending_migrations,
            lambda store: take_snapshot(JOBS["prices"], Real("1"), store, at(NOON) + 3 * HOUR),
        ):
            with pytest.raises(OtherShards, match=f"cluster {SMALLER} has 1 127"):
                refused(fewer)
        said = f"the shards of cluster {SMALLER} differ from the shards that the store records".encode()
        assert {(status, said in body) for status, body in answers(fewer, PATHS).values()} == {(503, True)}
    assert read_heads(stores.split) == heads


@pytest.mark.slow
def test_every_route_and_view_answers_the_same_from_one_server_and_from_three(stores: Stores) -> None:
    for store in (stores.whole, stores.split):
        fill_all(store)
    expected = answers(stores.whole)
    assert {status for status, _ in expected.values()} == {200}
    assert answers(stores.split) == expected
    history = f"account_history(address = '{RICH_ADDRESS}')"
    expect_same_views(stores, "account", "events", "market_now", "price_hourly", "totals", history)


@pytest.mark.slow
def test_a_store_of_two_shards_is_copied_into_one_of_three(stores: Stores, tmp_path: Path) -> None:
    """As `example cluster` says."""
    old = settings_of(stores.shards, clickhouse_database="test_smaller", clickhouse_cluster=SMALLER)
    new = settings_of(stores.shards, clickhouse_database="test_grown")
    with closing(ShardedStore(old, stores.shards)) as smaller, closing(ShardedStore(new, stores.shards)) as grown:
        migrate(smaller)
        fill(smaller, tmp_path)
        fill_all(smaller)
        before = answers(smaller)
        assert {status for status, _ in before.values()} == {200}
        migrate(grown)
        for statement in copying(stores.shards[0], old, new):
            rows(grown, statement)
        assert answers(grown) == before
        parts = [rows(grown, "SELECT count() FROM observation_local", shard)[0][0] for shard in stores.shards]
        assert min(parts) > 0
        assert take_snapshot(JOBS["prices"], Real("1"), grown, at(NOON) + 2 * HOUR)


def copying(server: Shard, old: Settings, new: Settings) -> list[str]:
    """The statements that the example's query answers. What these stores have in place of Replicated tables is copied
    with the Distributed tables over it."""
    query = CliRunner().invoke(cli, ["example", "cluster"]).output
    for name, own in {
        "'old.example:9000'": server.host,
        "'analytics' AS old_database": old.clickhouse_database,
        "'grown'": new.clickhouse_database,
        "'PASSWORD'": old.clickhouse_password,
    }.items():
        assert name in query
        query = query.replace(name, f"'{own}'" + name.rpartition("'")[2])
    (query,) = split_statements(query)
    with client(new) as own:
        found = [str(row[0]) for row in own.query(query).result_rows]
    return [statement.removesuffix(";") for statement in found if "_copy " not in statement]
