"""What probes, the report of health and /metrics tell of the store and its snapshots (rule 1.3)."""

from contextlib import closing
from dataclasses import replace

from analytics_service.app import create_app
from analytics_service.clickhouse.connection import Store
from analytics_service.config.settings import Settings
from analytics_service.store.job_runs import JobRun, record_job_run
from analytics_service.store.ledger import LEDGER, LedgerRow, ledger_frame
from jobs.registry import JOBS
from tests.doubles import LOCAL, FreshHeads, WatchedStore
from tests.integration.routes import NOON, Client, at, client_of, expect_error
from tests.samples import samples

NOWHERE = Settings(clickhouse_url="http://127.0.0.1:1")
PRICES_OF_NOON = LedgerRow("prices", NOON, "job", NOON, NOON, 0, "test", 1)


def test_readiness_needs_a_store_a_schema_and_snapshots(settings: Settings, store: Store) -> None:
    def missing(client: Client) -> str:
        return expect_error(client.simulate_get("/readyz"), 503, "unavailable", "server")

    assert "store" in missing(client_of(NOWHERE))
    assert "schema" in missing(client_of(replace(settings, clickhouse_database="nothing_here")))
    assert "there is no history yet" in missing(client_of(settings, store))
    assert "there is no history yet" in missing(client_of(replace(settings, source="none"), store))
    assert "there is no snapshot of prices yet" in missing(client_of(replace(settings, source="simulated"), store))
    store.insert(LEDGER, ledger_frame([replace(PRICES_OF_NOON, dataset=job.dataset) for job in JOBS.values()]))
    year_later = NOON + 365 * 86_400
    assert client_of(settings, store, year_later).simulate_get("/readyz").status_code == 200
    impatient = replace(settings, ready_max_age=3600)
    assert client_of(impatient, store, NOON + 3600).simulate_get("/readyz").status_code == 200
    assert "prices" in missing(client_of(impatient, store, NOON + 3601))
    # Without a source nothing is scheduled, so nothing can be late.
    assert client_of(replace(impatient, source="none"), store, year_later).simulate_get("/readyz").status_code == 200


def test_health_shows_the_store_and_every_dataset(settings: Settings, store: Store) -> None:
    store.insert(LEDGER, ledger_frame([PRICES_OF_NOON]))
    data = client_of(settings, store, NOON + 400).simulate_get("/api/v1/status/health").json["data"]
    snapshots = {snapshot.pop("dataset"): snapshot for snapshot in data.pop("snapshots")}
    assert snapshots["prices"] == {
        "newest": "2025-03-01T12:00:00Z",
        "age_seconds": 400,
        "fresh": False,
        "interval_seconds": 60,
        "complete_until": None,
    }
    assert snapshots["markets"] == {
        "newest": None,
        "age_seconds": None,
        "fresh": False,
        "interval_seconds": 60,
        "complete_until": None,
    }
    assert sorted(snapshots) == sorted(job.dataset for job in JOBS.values())
    assert "snapshots of prices are not fresh" in data.pop("faults")
    assert data == {
        "healthy": False,
        "at": "2025-03-01T12:06:40Z",
        "simulated": False,
        "sources": ["test"],
        "store": {"reachable": True, "schema_current": True},
        "lost_prices": [],
        "anomalies_last_day": 0,
        "filling": False,
    }
    unreachable = client_of(NOWHERE).simulate_get("/api/v1/status/health")
    assert (unreachable.status_code, unreachable.json["data"]["store"]["reachable"]) == (200, False)


def test_a_scrape_without_the_store_goes_on_to_show_how_old_snapshots_are(settings: Settings, store: Store) -> None:
    """After the first scrape the store is away, and the clock goes on for a minute."""
    store.insert(LEDGER, ledger_frame([replace(PRICES_OF_NOON, at=NOON + 10)]))
    record_job_run(store, [JobRun("prices", "host:1", 60, NOON + 60)])
    now = NOON + 30
    with closing(WatchedStore(settings)) as away:
        client = Client(create_app(settings, away, lambda: at(now), FreshHeads(away)).operators, headers=LOCAL)
        answer = client.simulate_get("/metrics")
        assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
        shown = samples(answer.text)
        assert (shown["analytics_store_up"], shown['analytics_snapshot_fresh{dataset="prices"}']) == (1, 1)
        assert 0 < shown["analytics_store_disk_free_bytes"] < shown["analytics_store_disk_size_bytes"]
        assert shown['analytics_history_gaps{dataset="prices"}'] == 0
        now, away.away = NOON + 90, True
        shown = samples(client.simulate_get("/metrics").text)
        assert shown["analytics_store_up"] == 0
        assert shown['analytics_snapshot_age_seconds{dataset="prices"}'] == 80
        assert shown['analytics_history_gaps{dataset="prices"}'] == 0
        assert "analytics_schema_current" not in shown
