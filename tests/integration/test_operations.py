"""What operators are told of the service: on their bind, and by `status`."""

import json
import shutil
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from analytics_service.app import App, create_app
from analytics_service.cli.report import as_json, collect_report
from analytics_service.clickhouse.connection import Store
from analytics_service.clickhouse.running import KEPT_FREE
from analytics_service.config.settings import Settings
from analytics_service.sources.simulated.source import SimulatedSource
from analytics_service.state import facts
from analytics_service.store.job_runs import JobRun, missing_runs, record_job_run
from analytics_service.store.ledger import LEDGER, LedgerRow, ledger_frame, new_version
from analytics_service.store.rewrite import correction
from jobs.registry import JOBS
from jobs.runner import backfill, take_snapshot
from tests.doubles import LOCAL, FreshHeads, WatchedStore
from tests.integration.conftest import Simulated
from tests.integration.routes import NOON, Client, at

AT_NOON = "2025-03-01T12:00:00Z"
HOUR = timedelta(hours=1)


def operators_of(settings: Settings, store: Store, now: int = NOON + 30) -> Client:
    """What is on the operators' bind of a service."""
    return Client(create_app(settings, store, lambda: at(now), FreshHeads(store)).operators, headers=LOCAL)


def document(client: Client) -> dict[str, Any]:
    """What /operations answers."""
    answer = client.simulate_get("/operations")
    assert answer.status_code == 200
    assert (answer.json["error"], answer.headers["cache-control"]) == (None, "no-store")
    return dict(answer.json["data"])


def told(store: Store, dataset: str = "prices", **report: Any) -> None:
    """A scheduler tells of its job, which runs next a minute after noon."""
    record_job_run(store, [JobRun(dataset, "host:1", 60, NOON + 60, **report)])


def test_the_disk_is_that_of_the_data_folder(simulated: Simulated) -> None:
    """Without what the server keeps free."""
    disk = document(operators_of(simulated.settings, simulated.store))["store"]["disk"]
    (row,) = simulated.rows("SELECT path FROM system.disks WHERE name = 'default'")
    assert disk["total_bytes"] == shutil.disk_usage(row["path"]).total - KEPT_FREE
    assert 0 < disk["free_bytes"] < disk["total_bytes"]


def test_a_full_disk_is_a_problem_and_not_that_schedulers_cannot_report(
    settings: Settings, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every disk is full that has less than four exabytes left."""
    take_snapshot(JOBS["prices"], SimulatedSource("1"), store, at(NOON))
    own = replace(settings, source="simulated:1")
    assert "no scheduler is running" in document(operators_of(own, store))["faults"]
    monkeypatch.setattr(facts, "_FULL", 2**62)
    faults = document(operators_of(own, store))["faults"]
    assert faults[0] == "the disk of ClickHouse is full; free space on it"
    assert "no scheduler is running" not in faults
    public = Client(create_app(own, store, lambda: at(NOON + 30), FreshHeads(store)))
    health = public.simulate_get("/api/v1/status/health").json["data"]
    assert faults[0] in health["faults"]
    assert collect_report(own, at(NOON + 30)).status.faults[0] == faults[0]


def test_each_job_has_its_last_error_and_its_gaps(settings: Settings, store: Store) -> None:
    """Of the four instants from 11:57 to 12:00, that of 11:58 has no snapshot. The rates have failed."""
    for minute in (3, 1, 0):
        take_snapshot(JOBS["prices"], SimulatedSource("1"), store, at(NOON - 60 * minute))
    told(store)
    told(store, "rates", failed_at=NOON, error="It is away.")
    found = document(operators_of(replace(settings, source="simulated:1"), store))
    snapshots = {one["dataset"]: one for one in found["snapshots"]}
    assert (snapshots["prices"]["gaps_last_day"], snapshots["prices"]["last_error_at"]) == (1, None)
    assert (snapshots["rates"]["last_error_at"], snapshots["rates"]["last_error"]) == (AT_NOON, "It is away.")
    assert [(one["name"], one["alive"]) for one in found["schedulers"]] == [("host:1", True)]


def test_status_and_the_operators_bind_tell_the_same(settings: Settings, store: Store) -> None:
    """Of what is the same from moment to moment."""
    take_snapshot(JOBS["prices"], SimulatedSource("1"), store, at(NOON))
    backfill(JOBS["prices"], SimulatedSource("1"), store, [at(NOON) - HOUR])
    told(store)
    served = document(operators_of(settings, store))
    printed = json.loads(as_json(collect_report(settings, at(NOON + 30)).status))
    for one in (printed, served):
        del one["store"]["disk"]["free_bytes"]
        del one["schedulers"][0]["heard_seconds_ago"]
    assert printed == served


def test_a_dataset_that_is_rewritten_is_a_problem_only_if_nobody_works_on_it(settings: Settings, store: Store) -> None:
    """A service that runs meanwhile shows what was before the correction."""
    take_snapshot(JOBS["prices"], SimulatedSource("1"), store, at(NOON))
    with correction(store, "prices", "import") as lock:
        lock.announce("prices", new_version(store), 1, (NOON, NOON))
        status = collect_report(settings, at(NOON + 30)).status
        assert ([*status.withheld], [one.operation for one in status.facts.corrections]) == ([], ["import"])
    assert collect_report(settings, at(NOON + 30)).status.withheld == ["prices cannot be shown"]


@pytest.fixture
def every_quarter(settings: Settings, store: Store) -> Callable[[int], App]:
    """A service with default intervals, so many seconds after a scheduler that takes all snapshots every 15 minutes has
    taken the last ones, of noon and a quarter to."""
    datasets = [job.dataset for job in JOBS.values()]
    instants = (NOON - 900, NOON)
    runs = [LedgerRow(one, second, "job", second, second, 1, "test", second) for one in datasets for second in instants]
    store.insert(LEDGER, ledger_frame(runs))
    record_job_run(store, [JobRun(one, "host:1", 900, NOON + 900) for one in datasets])
    return lambda seconds: create_app(settings, store, lambda: at(NOON + seconds), FreshHeads(store))


def test_what_is_fresh_follows_from_the_intervals_of_the_scheduler(every_quarter: Callable[[int], App]) -> None:
    """Not from the settings of this host, by which prices would be late after five minutes. Answers may be cached until
    the scheduler brings newer ones."""
    for seconds, fresh in ((4500, True), (4501, False)):
        app = every_quarter(seconds)
        operators = Client(app.operators, headers=LOCAL)
        found = {(one["interval_seconds"], one["fresh"]) for one in document(operators)["snapshots"]}
        assert found == {(900, fresh)}
        lines = operators.simulate_get("/metrics").text.splitlines()
        assert f'analytics_snapshot_fresh{{dataset="prices"}} {float(fresh)}' in lines
        for bind in (app, app.operators):
            assert Client(bind, headers=LOCAL).simulate_get("/readyz").status_code == 200
    assert 'analytics_history_gaps{dataset="prices"} 0.0' in lines
    answer = Client(every_quarter(100)).simulate_get("/api/v1/assets/prices")
    assert (answer.status_code, answer.headers["cache-control"]) == (200, "public, max-age=800")


def test_nothing_is_scheduled_where_there_is_no_source(
    settings: Settings, store: Store, every_quarter: Callable[[int], App]
) -> None:
    """A scheduler that ran last week does not change that."""
    every_quarter(0)
    found = document(operators_of(replace(settings, source="none"), store, NOON + 4501))
    assert {(one["interval_seconds"], one["gaps_last_day"]) for one in found["snapshots"]} == {(None, None)}


def test_why_a_store_is_away_is_told_to_operators_only_and_without_secrets() -> None:
    away = Settings(clickhouse_url="http://127.0.0.1:1", clickhouse_password="sesame")  # noqa: S106
    app = create_app(away)
    answer = Client(app.operators, headers=LOCAL).simulate_get("/operations")
    found = answer.json["data"]
    assert found["faults"] == ["the store cannot be reached"]
    assert (found["store"]["reachable"], found["snapshots"]) == (False, [])
    assert found["store"]["error"] == "ClickHouse at http://127.0.0.1:1 cannot be reached: connection refused."
    assert "sesame" not in answer.text
    assert "127.0.0.1" not in Client(app).simulate_get("/api/v1/status/health").text


def test_what_is_known_stays_while_the_store_is_away(settings: Settings, store: Store) -> None:
    take_snapshot(JOBS["prices"], SimulatedSource("1"), store, at(NOON))
    told(store)
    now = NOON + 30
    with closing(WatchedStore(settings)) as watched:
        client = Client(create_app(settings, watched, lambda: at(now), FreshHeads(watched)).operators, headers=LOCAL)
        before, asked = document(client), watched.queries["read_job_runs"]
        now, watched.away = NOON + 90, True
        found = document(client)
    assert (found["store"]["reachable"], found["store"]["disk"]) == (False, before["store"]["disk"])
    assert found["schedulers"] == before["schedulers"]
    assert [one["age_seconds"] for one in found["snapshots"] if one["dataset"] == "prices"] == [90]
    # However many ask, the store is asked once in a while.
    assert watched.queries["read_job_runs"] == asked


def test_operations_take_no_parameters_and_are_not_on_the_main_bind(empty: Client) -> None:
    refused = Client(empty.app.operators, headers=LOCAL).simulate_get("/operations", query_string="a=1")
    assert (refused.status_code, refused.json["error"]["kind"]) == (400, "query_parameter_unknown")
    answer = empty.simulate_get("/operations")
    assert (answer.status_code, answer.json["error"]["kind"]) == (404, "path_unknown")
    assert "operations" not in empty.simulate_get("/").text


def test_gaps_are_instants_between_scheduled_snapshots_that_have_none(store: Store) -> None:
    """Of prices, each minute from NOON + 2: minutes 4, 5 and 7 are missing; a backfill has added minute 5.

    Snapshots at other seconds count for the minute they are in. What was filled in before the first scheduled one, and
    what is older than asked for, does not count. Rates were never scheduled.
    """

    def run(dataset: str, second: int, kind: str, version: int = 1) -> LedgerRow:
        return LedgerRow(dataset, NOON + second, kind, NOON, NOON, 1, "test", version)

    minutes = {0: "backfill", 120: "job", 180: "job", 190: "job", 300: "backfill", 360: "job", 495: "job"}
    prices = [
        run("prices", second, kind, version=10**9 * (NOON + second) + 250_000_000) for second, kind in minutes.items()
    ]
    others = [run("prices", -3600, "job"), run("prices", 1000, "import"), run("rates", 0, "backfill")]
    store.insert(LEDGER, ledger_frame([*prices, *others]))
    intervals = {"prices": 60, "rates": 60, "loans": 300}
    assert missing_runs(store, intervals, NOON - 60) == {"prices": 2}
    assert missing_runs(store, {}, NOON) == {}
