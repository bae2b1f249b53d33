"""What `status` makes of what it finds."""

import json
import os
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pytest
from click import unstyle
from polars.exceptions import PanicException

from analytics_service.cli.report import collect_status, expected_address
from analytics_service.cli.report_forms import as_json, as_text
from analytics_service.config.settings import Settings
from analytics_service.embedded.folder import DataFolder
from analytics_service.errors import SettingError
from analytics_service.market.doubts import Doubt, Doubtful
from analytics_service.state.figures import AssetPrice
from analytics_service.state.health import Family, Http, Imported, LastRun, Rewriting, Status, Table, Worker
from analytics_service.store.disk import Disk
from analytics_service.store.job_runs import ScheduledRun, Scheduler
from analytics_service.store.ledger import Origin
from analytics_service.store.shards import Replica

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("analytics-service up --workers 3", ("127.0.0.1:8001", True)),
        ("analytics-service serve", ("127.0.0.1:8001", True)),
        ("analytics-service jobs run", ("127.0.0.1:8000", False)),
    ],
)
def test_the_http_service_is_expected_where_the_holder_of_the_folder_serves(
    tmp_path: Path, command: str, expected: tuple[str, bool]
) -> None:
    folder = DataFolder(tmp_path)
    folder.create()
    settings = Settings(data_dir=tmp_path)
    assert expected_address(settings, None) == ("127.0.0.1:8000", False)
    lock = folder.lock(command, "127.0.0.1:8001")
    assert lock is not None
    try:
        assert expected_address(settings, None) == expected
        assert expected_address(settings, "127.0.0.1:9") == ("127.0.0.1:9", True)
    finally:
        os.close(lock)


def test_a_folder_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    """A folder in the place of the lock is refused whoever asks, also root."""
    (tmp_path / "lock").mkdir()
    for ask in (lambda: DataFolder(tmp_path).lock("pytest"), lambda: collect_status(Settings(data_dir=tmp_path), NOON)):
        with pytest.raises(SettingError, match=f"The data folder {tmp_path} cannot be used"):
            ask()


def test_a_failure_of_polars_itself_is_not_taken_for_an_empty_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*given: object) -> None:
        raise PanicException("no Exception")

    monkeypatch.setattr("analytics_service.cli.report.read_store", fail)
    with pytest.raises(PanicException, match="no Exception"):
        collect_status(Settings(data_dir=tmp_path, clickhouse_url="http://127.0.0.1:9"), NOON)


STATUS = Status(
    NOON,
    database="analytics",
    url="http://127.0.0.1:8123",
    reachable=True,
    read_at=NOON,
    replicas=[Replica(1, "a:9000", True), Replica(2, "b:9000", False)],
    clickhouse="26.9.2.1",
    memory=3 * 2**20,
    http=Http("127.0.0.1:8000", alive=True, ready=False, expected=True),
    schedulers=[Scheduler("host:1", 30, alive=True), Scheduler("host:0", 900, alive=False)],
    schema_current=True,
    schema_pending=[],
    schema_missing=[],
    origins=[Origin("simulated:1", simulated=True)],
    families=[
        Family(
            "prices",
            NOON,
            0,
            True,
            60,
            rows=1000,
            scheduled=ScheduledRun("prices", int(NOON.timestamp()), 13, 0.5, missing=2),
            next_run=NOON + timedelta(minutes=1),
            failed_at=NOON,
            error="The source is away.",
            last_run=LastRun(NOON, "done", 210, 13),
        ),
        Family("rates", None, None, False, 60),
    ],
    prices=[
        AssetPrice("native;a", "AAA", NOON - timedelta(seconds=301), known=True, age_seconds=301),
        AssetPrice("native;b", "BBB", NOON - timedelta(days=2), known=False, age_seconds=172_800),
        AssetPrice("native;c", "CCC", NOON - timedelta(seconds=300), known=True, age_seconds=300),
    ],
    doubts=[Doubt("price", "native;a", NOON, Doubtful.ZERO, Decimal(0), symbol="AAA")] * 11,
    imports=[Imported("prices", "import", NOON, 1, 48, NOON - timedelta(days=2), NOON, "prices.csv.gz")],
    corrections=[Rewriting("remove", "prices", "staging", NOON, 1200, 5000, "analytics-service remove price")],
    tables=[Table("price", 1000, 2048)],
    disk=Disk(3 * 2**30, 4 * 2**30),
    workers=[Worker(7, NOON - timedelta(hours=1), 12, 4096, 512, None)],
    service="1.2.3",
)


def test_the_table_shows_families_tables_and_problems() -> None:
    lines = as_text(STATUS).splitlines()
    assert lines[0] == "ClickHouse  26.9.2.1 at http://127.0.0.1:8123, database analytics, 3.0 MiB of memory"
    assert lines[1] == "Cluster     2 shards; 1 of 2 servers answer"
    assert "Schema      up to date" in lines
    assert "Scheduler   host:1, last heard from 30 s ago" in lines
    assert not any("host:0" in line for line in lines)
    assert "Source      simulated:1, which is simulated" in lines
    at = lines.index("Correction  remove of prices since 2026-03-01T12:00:00Z: staging, 1,200 of 5,000 rows")
    assert lines[at + 1] == "            analytics-service remove price"
    rows = [line.split() for line in lines]
    prices = (
        "prices 2026-03-01T12:00:00Z 0 min 0 s 1,000 2 2026-03-01T12:01:00Z 2026-03-01T12:00:00Z: The source is away."
    )
    assert prices.split() in rows
    assert ["rates", "-", "-", "!", "0", "-", "-", "-"] in rows
    assert ["price", "1,000", "2.0", "KiB"] in rows
    assert "Problem     there is no snapshot of rates yet" in lines[-1]


def test_up_to_when_events_are_complete_is_shown() -> None:
    told = replace(STATUS, families=[Family("loans", NOON, 0, True, 60, complete_until=NOON - timedelta(hours=2))])
    assert "Events of loans are complete until 2026-03-01T10:00:00Z, as their source says\n" in as_text(told)
    assert json.loads(as_json(told))["families"][0]["complete_until"] == "2026-03-01T10:00:00Z"


def test_late_prices_are_shown_or_else_the_oldest_and_the_newest_doubts() -> None:
    """Prices come every minute, so they are late from 301 s on."""

    def oldest(status: Status) -> list[list[str]]:
        rows = [line.split() for line in unstyle(as_text(status)).splitlines()]
        return [row for row in rows if row and row[0] in ("AAA", "BBB", "CCC")]

    late = [
        ["BBB", "2026-02-27T12:00:00Z", "2", "d", "0", "h", "unknown:", "too", "old"],
        ["AAA", "2026-03-01T11:54:59Z", "5", "min", "1", "s"],
    ]
    assert oldest(STATUS) == late
    assert [row[0] for row in oldest(replace(STATUS, prices=STATUS.prices[2:]))] == ["CCC"]
    # Without a schedule nothing is late.
    unscheduled = [replace(STATUS.families[0], interval=None)]
    assert oldest(replace(STATUS, families=unscheduled)) == late[:1]
    lines = as_text(STATUS).splitlines()
    at = lines.index("In doubt    11 of the last day; `SELECT * FROM anomalies` shows all")
    assert lines[at + 1 : at + 11] == ["            price of AAA at 2026-03-01T12:00:00Z is 0"] * 10
    assert len(json.loads(as_json(STATUS))["doubts"]) == 10
    assert "In doubt" not in as_text(replace(STATUS, doubts=[]))


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (2 * 86_400 + 3_599, "2 d 0 h"),
        (86_399, "23 h 59 min"),
        (61, "1 min 1 s"),
        (-1, "0 min 1 s in the future"),
        (-(3_600 + 58 * 60), "1 h 58 min in the future"),
        (-(86_400 + 7_200), "1 d 2 h in the future"),
    ],
)
def test_ages_are_shown_as_people_say_them_also_where_a_clock_was_ahead(seconds: int, shown: str) -> None:
    prices = replace(STATUS.families[0], newest=NOON - timedelta(seconds=seconds), age_seconds=seconds)
    (line,) = [line for line in as_text(replace(STATUS, families=[prices])).splitlines() if line.startswith("prices")]
    assert line.split("Z", 1)[1].split("  1,000")[0].strip() == shown


def test_the_document_has_the_same_facts_under_names_that_stay() -> None:
    document = json.loads(as_json(STATUS))
    assert document["healthy"] is False
    assert document["faults"] == [
        "shard 2 does not answer: what needs its rows is refused",
        "there is no snapshot of rates yet",
    ]
    assert document["clickhouse"] == {
        "alive": True,
        "read_at": "2026-03-01T12:00:00Z",
        "url": "http://127.0.0.1:8123",
        "database": "analytics",
        "version": "26.9.2.1",
        "memory_bytes": 3 * 2**20,
        "disk_bytes": 2048,
        "disk": {"free_bytes": 3 * 2**30, "total_bytes": 4 * 2**30},
        "replicas": [
            {"shard": 1, "address": "a:9000", "up": True},
            {"shard": 2, "address": "b:9000", "up": False},
        ],
    }
    assert document["http"] == {"bind": "127.0.0.1:8000", "alive": True, "ready": False, "expected": True}
    assert document["schedulers"][0] == {"name": "host:1", "alive": True, "heard_seconds_ago": 30}
    assert document["families"][0] == {
        "family": "prices",
        "newest": "2026-03-01T12:00:00Z",
        "age_seconds": 0,
        "fresh": True,
        "rows": 1000,
        "interval_seconds": 60,
        "complete_until": None,
        "gaps_last_day": 2,
        "next_run": "2026-03-01T12:01:00Z",
        "last_run": {"at": "2026-03-01T12:00:00Z", "outcome": "done", "ms": 210, "rows": 13},
        "last_error_at": "2026-03-01T12:00:00Z",
        "last_error": "The source is away.",
    }
    assert document["families"][1]["last_run"] is None
    assert document["corrections"] == [
        {
            "what": "remove",
            "family": "prices",
            "stage": "staging",
            "began": "2026-03-01T12:00:00Z",
            "rows": 1200,
            "expected": 5000,
            "command": "analytics-service remove price",
        }
    ]
    assert document["imports"] == [
        {
            "family": "prices",
            "kind": "import",
            "began": "2026-03-01T12:00:00Z",
            "snapshots": 1,
            "rows": 48,
            "first": "2026-02-27T12:00:00Z",
            "last": "2026-03-01T12:00:00Z",
            "source": "prices.csv.gz",
        }
    ]
    assert document["workers"] == [
        {
            "pid": 7,
            "began": "2026-03-01T11:00:00Z",
            "requests": 12,
            "history_bytes": 4096,
            "answers_bytes": 512,
            "resident_bytes": None,
        }
    ]
    assert document["simulated"] is True
    assert document["tables"] == [{"table": "price", "rows": 1000, "bytes": 2048}]
    assert document["schema"] == {"pending": [], "missing": []}
    assert document["service"] == {"version": "1.2.3"}
    assert document["sources"] == [{"name": "simulated:1", "simulated": True}]


def test_a_schema_that_could_not_be_read_is_unknown_and_not_up_to_date() -> None:
    unread = replace(STATUS, schema_current=False, schema_pending=None, schema_missing=None)
    assert json.loads(as_json(unread))["schema"] == {"pending": None, "missing": None}
    assert "Schema" not in as_text(unread)


def test_where_sql_can_be_used_is_shown_for_people_only() -> None:
    shown = replace(STATUS, sql=["http://127.0.0.1:8123/play", "(the password is in a file)"])
    assert "SQL         http://127.0.0.1:8123/play\n            (the password is in a file)\n" in as_text(shown)
    assert as_json(shown) == as_json(STATUS)
    assert "SQL" not in as_text(replace(shown, reachable=False))
