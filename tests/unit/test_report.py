"""What `status` makes of what it finds."""

import json
import os
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from click import unstyle

from analytics_service.cli.report import Report, as_json, as_text, http_address
from analytics_service.config.settings import Settings
from analytics_service.embedded.folder import DataFolder
from analytics_service.state.facts import DiskSpace, Facts, LostPrice
from analytics_service.state.health import Dataset, Status
from analytics_service.store.job_runs import Scheduler
from analytics_service.store.ledger import Origin
from analytics_service.store.write_lock import LockHolder

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("analytics-service up --workers 3", "127.0.0.1:8001"),
        ("analytics-service serve", "127.0.0.1:8001"),
        ("analytics-service jobs run", "127.0.0.1:8000"),
    ],
)
def test_the_http_service_is_expected_where_the_holder_of_the_folder_serves(
    tmp_path: Path, command: str, expected: str
) -> None:
    folder = DataFolder(tmp_path)
    folder.create()
    settings = Settings(data_dir=tmp_path)
    assert http_address(settings, None) == "127.0.0.1:8000"
    lock = folder.lock(command, "127.0.0.1:8001")
    assert lock is not None
    try:
        assert http_address(settings, None) == expected
        assert http_address(settings, "127.0.0.1:9") == "127.0.0.1:9"
    finally:
        os.close(lock)


STATUS = Status(
    NOON,
    reachable=True,
    schema_current=True,
    origins=[Origin("simulated:1", simulated=True)],
    datasets=[
        Dataset("prices", NOON, 0, True, 60, gaps=2, failed_at=NOON, error="The source is away."),
        Dataset("rates", None, None, False, 60),
    ],
    facts=Facts(
        disk=DiskSpace(3 * 2**30, 4 * 2**30),
        lost_prices=[LostPrice("native;b", "BBB", NOON - timedelta(days=2), has_market=True)],
        anomalies=11,
        schedulers=[Scheduler("host:1", 30, alive=True), Scheduler("host:0", 900, alive=False)],
        corrections=[LockHolder("", "remove", "prices", "analytics-service remove price", NOON)],
    ),
    version="1.2.3",
)
REPORT = Report(STATUS, "http://127.0.0.1:8123", ["http://127.0.0.1:8123/play", "(a password)"], "not ready on [::1]:1")


def test_the_table_shows_datasets_and_problems() -> None:
    lines = unstyle(as_text(REPORT)).splitlines()
    assert lines[:5] == [
        "ClickHouse  answers at http://127.0.0.1:8123",
        "SQL         http://127.0.0.1:8123/play",
        "            (a password)",
        "Disk        3.0 GiB of 4.0 GiB are left",
        "HTTP        not ready on [::1]:1",
    ]
    assert "Scheduler   host:1, last heard from 30 s ago" in lines
    assert not any("host:0" in line for line in lines)
    assert "Source      simulated:1, which is simulated" in lines
    at = lines.index("Correction  remove of prices since 2026-03-01T12:00:00Z")
    assert lines[at + 1] == "            analytics-service remove price"
    rows = [line.split() for line in lines]
    prices = "prices 2026-03-01T12:00:00Z 0 min 0 s 2 2026-03-01T12:00:00Z: The source is away."
    assert prices.split() in rows
    assert ["rates", "-", "-", "!", "-", "-"] in rows
    assert "Anomalies   11 in the last day; the view `anomalies` lists them" in lines
    assert lines[-2:] == [f"Problem     {fault}" for fault in STATUS.faults]


def test_why_clickhouse_does_not_answer_is_shown() -> None:
    away = replace(REPORT, status=Status(NOON, error="It refuses the password.", answers=False, version=""))
    assert unstyle(as_text(away)).splitlines() == [
        "ClickHouse  does not answer at http://127.0.0.1:8123",
        "            It refuses the password.",
        "HTTP        not ready on [::1]:1",
        "",
        "Problem     the store cannot be reached",
    ]


def test_the_document_has_the_same_facts_under_names_that_stay() -> None:
    assert json.loads(as_json(STATUS)) == {
        "healthy": False,
        "faults": [
            "there is no snapshot of rates yet",
            "no recent price of BBB (last 2026-02-27T12:00:00Z): sums in USD and health that need it are null",
        ],
        "at": "2026-03-01T12:00:00Z",
        "simulated": True,
        "version": "1.2.3",
        "sources": [{"name": "simulated:1", "simulated": True}],
        "store": {
            "reachable": True,
            "schema_current": True,
            "error": "",
            "disk": {"free_bytes": 3 * 2**30, "total_bytes": 4 * 2**30},
        },
        "snapshots": [
            {
                "dataset": "prices",
                "newest": "2026-03-01T12:00:00Z",
                "age_seconds": 0,
                "fresh": True,
                "interval_seconds": 60,
                "complete_until": None,
                "gaps_last_day": 2,
                "last_error_at": "2026-03-01T12:00:00Z",
                "last_error": "The source is away.",
            },
            {
                "dataset": "rates",
                "newest": None,
                "age_seconds": None,
                "fresh": False,
                "interval_seconds": 60,
                "complete_until": None,
                "gaps_last_day": None,
                "last_error_at": None,
                "last_error": "",
            },
        ],
        "lost_prices": [
            {"asset_id": "native;b", "symbol": "BBB", "newest": "2026-02-27T12:00:00Z", "age_seconds": 172_800}
        ],
        "anomalies_last_day": 11,
        "schedulers": [
            {"name": "host:1", "alive": True, "heard_seconds_ago": 30},
            {"name": "host:0", "alive": False, "heard_seconds_ago": 900},
        ],
        "corrections": [
            {
                "what": "remove",
                "dataset": "prices",
                "began": "2026-03-01T12:00:00Z",
                "command": "analytics-service remove price",
            }
        ],
    }
