"""Snapshots from the future are refused, and readers pass over stored ones until their time has come (rule 8.16)."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import falcon.testing
import pytest

from analytics_service.app import create_app
from analytics_service.clickhouse.connection import Store
from analytics_service.config.settings import Settings
from analytics_service.errors import UserError
from analytics_service.market.instants import floor_to, format_instant, unix_second
from analytics_service.sources.registry import origin_of
from analytics_service.store.commits import Provenance, begin, commit
from analytics_service.store.datasets.histories import PRICES as PRICE_FILES
from analytics_service.store.job_runs import missing_runs
from analytics_service.store.ledger import head_without_future, hide_future_snapshots, read_head, read_ledger
from jobs.registry import JOBS
from jobs.runner import take_snapshot
from jobs.snapshot import JobContext
from tests import clickhouse
from tests.doubles import LOCAL, FirstHeads
from tests.integration.databases import database
from tests.integration.imports import Progress, asked, assets_file, import_files, prices_file
from tests.integration.lending import Lending

MINUTE = timedelta(minutes=1)
NOW = floor_to(datetime.now(UTC), MINUTE)
AHEAD = NOW + 300 * MINUTE
# Ten minutes ago it becomes lively.
SOURCE = Lending(unix_second(NOW) - 600)
DATASETS = ("prices", "markets", "loans", "ptoken", "positions")
# What has happened since the last tick, of all that the snapshot from the future has, depends on how long tests take.
SURE = f"time NOT BETWEEN fromUnixTimestamp({unix_second(NOW) - 60}) AND fromUnixTimestamp({unix_second(AHEAD) - 3600})"


def take_ahead(store: Store, dataset: str) -> None:
    """What a scheduler wrote whose clock, and ClickHouse's, ran ahead."""
    job, beginning = JOBS[dataset], begin(store, dataset, 0, 1)
    changes = job.collect(JobContext(dataset, SOURCE, store, [AHEAD], beginning.present))
    commit(store, changes, Provenance("job", origin_of(SOURCE)), beginning)


@dataclass(frozen=True)
class World:
    """A store, and its service and that for operators."""

    settings: Settings
    store: Store
    client: falcon.testing.TestClient
    operators: falcon.testing.TestClient

    def get(self, path: str) -> falcon.testing.Result:
        return self.client.simulate_get(f"/api/v1{path}")


@dataclass(frozen=True)
class Pair:
    """A store with snapshots from the future, and one without; both have all ticks before."""

    ahead: World
    usual: World


@pytest.fixture(scope="module")
def pair(server: Settings) -> Iterator[Pair]:
    ahead = replace(server, clickhouse_database="test_ahead")
    usual = replace(server, clickhouse_database="test_usual")
    with database(ahead, views=True) as first, database(usual, views=True) as second:
        for store in (first, second):
            # Two ticks of what histories and past moments are read of, and one of the rest.
            for dataset in ("prices", "markets"):
                take_snapshot(JOBS[dataset], SOURCE, store, NOW - 20 * MINUTE)
            for dataset in DATASETS if store is first else ():
                take_ahead(store, dataset)
            for dataset in DATASETS:
                take_snapshot(JOBS[dataset], SOURCE, store, NOW - MINUTE)
        yield Pair(world(ahead, first), world(usual, second))


def world(settings: Settings, store: Store) -> World:
    app = create_app(settings, store, lambda: NOW, FirstHeads(store))
    operators = falcon.testing.TestClient(app.operators, headers=LOCAL)
    return World(settings, store, falcon.testing.TestClient(app), operators)


def test_every_answer_is_that_of_a_store_without_the_snapshot(pair: Pair) -> None:
    span = f"start={unix_second(NOW) - 7200}&end={unix_second(NOW) + 7200}"
    for path in (
        "/assets/prices",
        "/analytics/market/risk",
        "/analytics/market/state",
        f"/markets/supply?at={unix_second(NOW) - 600}",
        f"/assets/price-history?{span}&period=min&interval=15&agg=ohlc",
        f"/markets/history/tvl?{span}&period=d",
        f"/analytics/market/history/loans-originated/by-asset?{span}&period=h",
    ):
        ahead, usual = pair.ahead.get(path), pair.usual.get(path)
        assert usual.status_code == 200, usual.text
        # Perhaps there were no loans within the last two hours.
        assert (ahead.json, ahead.headers.get("As-Of")) == (usual.json, usual.headers.get("As-Of")), path


def test_every_view_is_that_of_a_store_without_the_snapshot(pair: Pair) -> None:
    for view in ("price_now", "market_now", f"events WHERE {SURE}"):
        both = []
        for one in (pair.ahead, pair.usual):
            with clickhouse.client(one.settings) as own:
                both.append(own.query(f"SELECT * FROM {view} ORDER BY ALL").result_rows)
        assert both[0] == both[1] != [], view


def test_a_store_with_such_a_snapshot_is_not_healthy(pair: Pair) -> None:
    at = format_instant(AHEAD)
    cure = f"`analytics-service remove prices --start {at}` removes it"
    faults = pair.ahead.get("/status/health").json["data"]["faults"]
    assert f"prices: the snapshot of {at} is 300 minutes in the future; {cure}" in faults
    ahead, usual = (one.operators.simulate_get("/metrics").text for one in (pair.ahead, pair.usual))
    assert ahead.count("analytics_snapshot_ahead{") == len(JOBS)
    assert 'analytics_snapshot_ahead{dataset="prices"} 1.0' in ahead
    assert 'analytics_snapshot_ahead{dataset="prices"} 0.0' in usual


def test_gaps_are_no_instants_to_come(pair: Pair) -> None:
    """From 20 minutes before to 1 minute before there are 20 instants, of which 2 have a snapshot."""
    since = unix_second(NOW - timedelta(days=1))
    assert missing_runs(pair.ahead.store, {"prices": 60}, since) == {"prices": 18}


def test_a_snapshot_is_passed_over_until_its_time_has_come(pair: Pair) -> None:
    store = pair.ahead.store
    head = read_head(store, "markets")
    assert head is not None
    assert head_without_future(store, head, unix_second(AHEAD) - 60) == (head, 0)
    before, first = head_without_future(store, head, unix_second(AHEAD) - 61)
    assert (before.at, before.last_observed_at, first) == (*[unix_second(NOW - MINUTE)] * 2, unix_second(AHEAD))


def test_a_snapshot_of_more_than_a_minute_ahead_is_refused_with_both_times(store: Store) -> None:
    at = datetime.now(UTC).replace(microsecond=0) + timedelta(seconds=70)
    with pytest.raises(
        UserError, match=rf"as of {format_instant(at)} lies ahead of ClickHouse's clock, which shows 2.*Z"
    ):
        take_snapshot(JOBS["prices"], SOURCE, store, at)
    assert read_ledger(store).heads == {}
    assert take_snapshot(JOBS["prices"], SOURCE, store, at - timedelta(seconds=30))


def test_imported_values_of_later_today_are_no_fault_and_shown_by_the_minute(store: Store, tmp_path: Path) -> None:
    """An import takes observations of up to a day ahead, such as the close of today."""
    take_snapshot(JOBS["prices"], SOURCE, store, NOW - 5 * MINUTE)
    rows = [("token;0xa", unix_second(NOW + minutes * MINUTE), "1.5") for minutes in (-10, 300)]
    request = asked(PRICE_FILES, prices_file(tmp_path, rows), assets=assets_file(tmp_path))
    import_files(store, request, NOW, Progress())
    ledger = hide_future_snapshots(store, read_ledger(store))
    assert (ledger.heads["prices"].at, ledger.ahead) == (unix_second(NOW - 5 * MINUTE), {})
    assert ledger.heads["prices"].last_observed_at == ledger.now - ledger.now % 60
