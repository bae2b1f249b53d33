"""What operators are told of the service: on their bind, and by `status`."""

import json
import shutil
import threading
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import polars as pl
import pytest

from analytics_service.app import App, create_app
from analytics_service.cli.report import collect_status
from analytics_service.cli.report_forms import as_json
from analytics_service.config.settings import Settings
from analytics_service.errors import Busy
from analytics_service.resources.operations import Operations
from analytics_service.sources.simulated.source import SimulatedSource
from analytics_service.state.heads import Heads
from analytics_service.state.health import Monitor, Status
from analytics_service.store import disk
from analytics_service.store.connection import Store
from analytics_service.store.job_runs import JOB_RUNS, JobRun, ScheduledRun, read_runs, record, scheduled_runs
from analytics_service.store.ledger import LEDGER, Run, ledger_frame
from analytics_service.store.shards import Replica
from jobs.registry import JOBS
from jobs.runner import backfill, run_once
from jobs.scheduler import build, follow_clock
from tests.doubles import LOCAL, FreshHeads, Statement, WatchedStore
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


def told(store: Store, took_ms: int, scheduler: str = "host:1", outcome: str = "done") -> None:
    """A scheduler tells that its run of prices for noon took so long."""
    record(store, [JobRun("prices", scheduler, 60, NOON + 60, ran_at=NOON, outcome=outcome, took_ms=took_ms)])


@pytest.fixture(scope="module")
def told_of(simulated: Simulated) -> dict[str, Any]:
    """The document of a store that has all families of the simulated protocol, half a minute after their snapshots."""
    return document(operators_of(simulated.settings, simulated.store))


def test_the_tables_have_the_bytes_that_clickhouse_counts(told_of: dict[str, Any], simulated: Simulated) -> None:
    counted = simulated.rows(
        "SELECT name, total_bytes FROM system.tables WHERE database = currentDatabase() AND total_bytes > 0"
    )
    expected = {row["name"]: row["total_bytes"] for row in counted}
    assert {one["table"]: one["bytes"] for one in told_of["tables"]} == expected
    assert told_of["clickhouse"]["disk_bytes"] == sum(expected.values())


def test_the_disk_is_that_of_the_data_folder(told_of: dict[str, Any], simulated: Simulated) -> None:
    """Without what the server keeps free."""
    (row,) = simulated.rows("SELECT path FROM system.disks WHERE name = 'default'")
    disk = told_of["clickhouse"]["disk"]
    assert disk["total_bytes"] == shutil.disk_usage(row["path"]).total - 32 * 2**20
    assert 0 < disk["free_bytes"] < disk["total_bytes"]


def test_a_full_disk_is_a_problem_and_not_that_schedulers_cannot_report(
    settings: Settings, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every disk is full that has less than four exabytes left."""
    run_once(JOBS["prices"], SimulatedSource("1"), store, at(NOON))
    own = replace(settings, source="simulated:1")
    assert "no scheduler is running" in document(operators_of(own, store))["faults"]
    monkeypatch.setattr(disk, "_FULL", 2**62)
    faults = document(operators_of(own, store))["faults"]
    assert faults[0] == "the disk of ClickHouse is full; free space on it"
    assert "no scheduler is running" not in faults
    public = Client(create_app(own, store, lambda: at(NOON + 30), FreshHeads(store)))
    health = public.simulate_get("/api/v1/status/health").json["data"]
    assert faults[0] in health["faults"]
    assert collect_status(own, at(NOON + 30)).faults[0] == faults[0]


def test_backfills_and_imports_are_listed_with_what_they_brought(told_of: dict[str, Any], simulated: Simulated) -> None:
    """The store was filled by a backfill of two hours for each family that has a past."""
    runs = {run["family"]: run for run in told_of["imports"]}
    assert runs.keys() == {job.family for job in JOBS.values()}
    prices = runs["prices"]
    assert (prices["kind"], prices["snapshots"], prices["source"]) == ("backfill", 2, "simulated:1")
    assert (prices["first"], prices["last"]) == ("2025-03-01T10:00:00Z", "2025-03-01T11:00:00Z")
    (counted,) = simulated.rows(f"SELECT count() AS rows FROM price WHERE observed_at < toDateTime({NOON}, 'UTC')")
    assert prices["rows"] == counted["rows"]


def test_of_the_imports_the_newest_come_first_and_old_ones_are_left_out(settings: Settings, store: Store) -> None:
    """An import that is repeated takes the place of the one before."""
    runs = [Run("prices", NOON + n, "import", NOON, NOON + n, n, f"{n}.csv", 10**9 * (NOON + n)) for n in range(1, 26)]
    again = replace(runs[0], version=10**9 * (NOON + 99))
    store.insert(LEDGER, ledger_frame([*runs, again]))
    listed = [(run["source"], run["began"]) for run in document(operators_of(settings, store))["imports"]]
    assert listed[:2] == [("1.csv", "2025-03-01T12:01:39Z"), ("25.csv", "2025-03-01T12:00:25Z")]
    assert len(listed) == 20


def test_each_job_has_its_last_run_the_next_one_and_its_gaps(settings: Settings, store: Store) -> None:
    """Of the four instants from 11:57 to 12:00, that of 11:58 has no snapshot. The rates have failed."""
    source = SimulatedSource("1")
    for minute in (3, 1, 0):
        run_once(JOBS["prices"], source, store, at(NOON - 60 * minute))
    told(store, 1234)
    failed = JobRun("rates", "host:1", 60, NOON + 60, NOON, "It is away.", ran_at=NOON, outcome="failed", took_ms=9)
    record(store, [failed])
    found = document(operators_of(replace(settings, source="simulated:1"), store))
    families = {one["family"]: one for one in found["families"]}
    prices = families["prices"]
    assert prices["last_run"] == {
        "at": AT_NOON,
        "outcome": "done",
        "ms": 1234,
        "rows": len(source.prices(at(NOON))),
    }
    assert (prices["next_run"], prices["gaps_last_day"]) == ("2025-03-01T12:01:00Z", 1)
    assert families["rates"]["last_run"] == {"at": AT_NOON, "outcome": "failed", "ms": 9, "rows": None}
    assert families["rates"]["last_error"] == "It is away."
    assert families["markets"]["last_run"] is None


def test_the_next_run_and_the_last_one_are_those_that_a_scheduler_told_of_last(
    settings: Settings, store: Store
) -> None:
    """The snapshot of noon was taken, and that of a minute later has failed: it has no rows."""
    run_once(JOBS["prices"], SimulatedSource("1"), store, at(NOON))
    told(store, 5)
    last = JobRun("prices", "host:1", 60, NOON + 120, ran_at=NOON + 60, outcome="failed", took_ms=9)
    record(store, [last])
    (prices, *_) = document(operators_of(settings, store, NOON + 90))["families"]
    assert prices["next_run"] == "2025-03-01T12:02:00Z"
    assert prices["last_run"] == {"at": "2025-03-01T12:01:00Z", "outcome": "failed", "ms": 9, "rows": None}


def test_reports_from_before_the_clock_was_set_back_give_way(settings: Settings, store: Store) -> None:
    """The scheduler's clock and ClickHouse's were two hours ahead; a dead scheduler reported then, too."""
    now = datetime.now(UTC)
    ahead = now + 2 * HOUR
    scheduler = build(settings, SimulatedSource("1"), store, threading.Event(), ahead, jobs=[JOBS["prices"]])
    scheduler.start(paused=True)
    job = scheduler.get_job("prices")
    report_then = job.func.status(int(ahead.timestamp()))
    rows = pl.DataFrame([report_then, replace(report_then, scheduler="dead:1")]).rename({"interval": "every"})
    heard_at = pl.lit(int(ahead.timestamp()), pl.UInt32).alias("heard_at")
    store.insert(
        JOB_RUNS, rows.select("family", "scheduler", heard_at, "every", pl.col("next_at").cast(pl.UInt32), "error")
    )
    follow_clock(scheduler, store, lambda: now)
    (told,), (alive,) = read_runs(store)
    assert told.next_at == int(job.next_run_time.timestamp())
    assert 0 <= alive.heard_seconds_ago < 3_600
    scheduler.shutdown()


def test_of_two_schedulers_the_one_that_took_the_snapshot_is_told_of(settings: Settings, store: Store) -> None:
    run_once(JOBS["prices"], SimulatedSource("1"), store, at(NOON))
    told(store, 5, "host:1", "already_done")
    told(store, 800, "host:2")
    told(store, 6, "host:3", "already_done")
    (prices, *_) = document(operators_of(settings, store))["families"]
    assert (prices["last_run"]["outcome"], prices["last_run"]["ms"]) == ("done", 800)


def test_status_and_the_operators_bind_tell_the_same(settings: Settings, store: Store) -> None:
    """Except that `status` sees no workers, and asks for the HTTP service at its address."""
    run_once(JOBS["prices"], SimulatedSource("1"), store, at(NOON))
    backfill(JOBS["prices"], SimulatedSource("1"), store, [at(NOON) - HOUR])
    told(store, 700)
    served = document(operators_of(settings, store))
    printed = json.loads(as_json(collect_status(settings, at(NOON + 30))))
    assert printed.keys() == served.keys()
    assert [one["table"] for one in printed["tables"]] == [one["table"] for one in served["tables"]]
    # The others change from moment to moment.
    for one in (printed, served):
        for name in ("http", "workers", "tables"):
            del one[name]
        for name in ("memory_bytes", "disk_bytes", "disk"):
            del one["clickhouse"][name]
        del one["schedulers"][0]["heard_seconds_ago"]
    assert printed == served


@pytest.fixture
def every_quarter(settings: Settings, store: Store) -> Callable[[int], App]:
    """A service with default intervals, so many seconds after a scheduler that takes all snapshots every 15 minutes has
    taken the last ones, of noon and a quarter to."""
    families = [job.family for job in JOBS.values()]
    instants = (NOON - 900, NOON)
    runs = [Run(one, second, "job", second, second, 1, "test", second) for one in families for second in instants]
    store.insert(LEDGER, ledger_frame(runs))
    record(store, [JobRun(one, "host:1", 900, NOON + 900) for one in families])
    return lambda seconds: create_app(settings, store, lambda: at(NOON + seconds), FreshHeads(store))


def test_what_is_fresh_follows_from_the_intervals_of_the_scheduler(every_quarter: Callable[[int], App]) -> None:
    """Not from the settings of this host, by which prices would be late after five minutes."""
    for seconds, fresh in ((4500, True), (4501, False)):
        app = every_quarter(seconds)
        families = document(Client(app.operators, headers=LOCAL))["families"]
        assert {(one["interval_seconds"], one["fresh"]) for one in families} == {(900, fresh)}
        for bind in (app, app.operators):
            assert Client(bind, headers=LOCAL).simulate_get("/readyz").status_code == 200


def test_nothing_is_scheduled_where_there_is_no_source(
    settings: Settings, store: Store, every_quarter: Callable[[int], App]
) -> None:
    """A scheduler that ran last week does not change that."""
    every_quarter(0)
    unscheduled = replace(settings, source="none")
    app = create_app(unscheduled, store, lambda: at(NOON + 4501), FreshHeads(store))
    found = document(Client(app.operators, headers=LOCAL))
    assert {one["interval_seconds"] for one in found["families"]} == {None}
    assert {one["gaps_last_day"] for one in found["families"]} == {None}


def test_metrics_tell_of_the_scheduler_as_it_runs(every_quarter: Callable[[int], App]) -> None:
    lines = Client(every_quarter(4500).operators, headers=LOCAL).simulate_get("/metrics").text.splitlines()
    assert 'analytics_snapshot_fresh{family="prices"} 1.0' in lines
    assert 'analytics_history_gaps{family="prices"} 0.0' in lines
    (due,) = (line for line in lines if line.startswith('analytics_job_next_run_timestamp_seconds{job="prices"}'))
    assert float(due.split()[-1]) == NOON + 900


def test_answers_may_be_cached_until_the_scheduler_brings_newer_ones(every_quarter: Callable[[int], App]) -> None:
    answer = Client(every_quarter(100)).simulate_get("/api/v1/assets/prices")
    assert (answer.status_code, answer.headers["cache-control"]) == (200, "public, max-age=800")


def test_this_process_is_the_worker_where_there_is_no_other(settings: Settings, store: Store) -> None:
    app = create_app(settings, store, lambda: at(NOON + 30), FreshHeads(store))
    for _ in range(3):
        Client(app).simulate_get("/healthz")
    (worker,) = document(Client(app.operators, headers=LOCAL))["workers"]
    assert worker["requests"] == 3
    assert worker["resident_bytes"] > 10 * 2**20


def test_a_store_that_is_busy_for_long_is_a_fault_and_what_it_told_before_stays(
    settings: Settings, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    is_busy = threading.Event()

    def refuse(statement: Statement) -> None:
        if is_busy.is_set():
            raise Busy

    monkeypatch.setattr("analytics_service.resources.operations._CACHE_SECONDS", 0.0)
    run_once(JOBS["prices"], SimulatedSource("1"), store, at(NOON))
    now, slow = NOON + 30, WatchedStore(settings, before=refuse)
    client = Client(create_app(settings, slow, lambda: at(now), FreshHeads(store)).operators, headers=LOCAL)
    before = document(client)
    assert before["clickhouse"]["alive"]
    is_busy.set()
    now = NOON + 59
    assert document(client)["faults"] == before["faults"]
    now = NOON + 90
    found = document(client)
    assert found["faults"] == ["The service is busy. Try again in a few seconds."]
    # It answers the poller.
    assert (found["healthy"], found["clickhouse"]["alive"]) == (False, True)
    assert (found["at"], found["clickhouse"]["read_at"]) == ("2025-03-01T12:01:30Z", "2025-03-01T12:00:30Z")
    assert found["tables"] == before["tables"]
    assert [one["age_seconds"] for one in found["families"] if one["family"] == "prices"] == [90]
    slow.close()


def test_which_servers_answered_is_not_told_while_the_store_is_away() -> None:
    settings = Settings(clickhouse_url="http://127.0.0.1:1")
    with closing(Store(settings)) as store:
        monitor = Monitor(Heads(store, interval=None), dict, lambda: at(NOON), is_configured=False)
        operations = Operations(settings, store, monitor, list, lambda: at(NOON))
        operations._stored = Status(at(NOON), reachable=True, replicas=[Replica(1, "a:9000", True)])
        status = operations.record()
    assert (status.reachable, status.replicas) == (False, ())


def test_a_store_that_is_away_is_a_fault_in_words_without_secrets() -> None:
    away = Settings(clickhouse_url="http://127.0.0.1:1", clickhouse_password="sesame")  # noqa: S106
    answer = Client(create_app(away).operators, headers=LOCAL).simulate_get("/operations")
    found = answer.json["data"]
    assert found["faults"] == ["ClickHouse at http://127.0.0.1:1 cannot be reached: connection refused."]
    assert (found["clickhouse"]["alive"], found["tables"], found["families"]) == (False, [], [])
    assert found["schema"] == {"pending": None, "missing": None}
    assert "sesame" not in answer.text


def test_the_folder_of_the_data_is_not_told(tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("private")
    answer = Client(create_app(Settings(data_dir=folder)).operators, headers=LOCAL).simulate_get("/operations")
    assert "No ClickHouse is running in the data folder." in answer.json["data"]["faults"][0]
    assert str(folder) not in answer.text


def test_the_store_is_asked_once_however_many_ask(settings: Settings, store: Store) -> None:
    with closing(WatchedStore(settings)) as counted:
        client = operators_of(settings, counted)
        for _ in range(10):
            document(client)
        assert counted.queries["table_sizes"] == 1


def test_operations_take_no_parameters(settings: Settings, store: Store) -> None:
    answer = operators_of(settings, store).simulate_get("/operations", query_string="a=1")
    assert (answer.status_code, answer.json["error"]["kind"]) == (400, "query_parameter_unknown")


def test_operations_are_not_on_the_main_bind(settings: Settings, store: Store) -> None:
    app = create_app(settings, store, lambda: at(NOON), FreshHeads(store))
    answer = Client(app).simulate_get("/operations")
    assert (answer.status_code, answer.json["error"]["kind"]) == (404, "path_unknown")
    assert "operations" not in Client(app).simulate_get("/").text


def test_gaps_are_instants_between_scheduled_snapshots_that_have_none(store: Store) -> None:
    """Of prices, each minute from NOON + 2: minutes 4, 5 and 7 are missing; a backfill has added minute 5.

    Snapshots at other seconds count for the minute they are in. What was filled in before the first scheduled one, and
    what is older than asked for, does not count. Rates were never scheduled.
    """

    def run(family: str, second: int, kind: str, version: int = 1) -> Run:
        return Run(family, NOON + second, kind, NOON, NOON, 1, "test", version)

    minutes = {0: "backfill", 120: "job", 180: "job", 190: "job", 300: "backfill", 360: "job", 495: "job"}
    prices = [
        run("prices", second, kind, version=10**9 * (NOON + second) + 250_000_000) for second, kind in minutes.items()
    ]
    others = [run("prices", -3600, "job"), run("prices", 1000, "import"), run("rates", 0, "backfill")]
    store.insert(LEDGER, ledger_frame([*prices, *others]))
    intervals = {"prices": 60, "rates": 60, "loans": 300}
    scheduled = scheduled_runs(store, intervals, NOON - 60 + 86_400)
    assert scheduled == [ScheduledRun("prices", NOON + 495, rows=1, lag=0.25, missing=2)]
    assert scheduled_runs(store, {}, NOON) == []
