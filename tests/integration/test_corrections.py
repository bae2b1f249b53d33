"""The queue of corrections, and what the view of them tells."""

import threading
from contextlib import closing
from pathlib import Path

import pytest

from analytics_service.clickhouse.connection import Store
from analytics_service.config.settings import Settings
from analytics_service.errors import DiskFull
from analytics_service.store.ledger import new_version
from analytics_service.store.rewrite import staging
from tests.integration.databases import make_views
from tests.integration.imports import IDS, NOW, prices_file, query, run

LAST = int(NOW.timestamp())
VIEW = "SELECT what, family, outcome, rows, expected, command FROM corrections ORDER BY began"


def test_a_correction_waits_for_the_one_before_and_says_so_once(
    store: Store, settings: Settings, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    make_views(store)
    rows = [(IDS[0], LAST - number, "1") for number in range(3)]
    with closing(Store(settings, author="analytics-service import price a.csv")) as second:
        waiting = threading.Thread(target=lambda: run(second, prices_file(tmp_path, rows)))
        with staging(store, "rates", new_version(store), what="recompute", expected=7):
            waiting.start()
            waiting.join(2.5)
            assert waiting.is_alive()
            assert query(settings, VIEW) == [
                ("recompute", "rates", "staging", 0, 7, ""),
                ("import", "prices", "waiting", 0, 3, "analytics-service import price a.csv"),
            ]
        waiting.join()
    told = [message for message in caplog.messages if message.startswith("Waiting")]
    assert told == ["Waiting for another correction: recompute of rates ()."]
    assert query(settings, VIEW)[1] == ("import", "prices", "done", 3, 3, "analytics-service import price a.csv")
    spans = "SELECT toUnixTimestamp(first_at), toUnixTimestamp(last_at), ended >= began FROM corrections WHERE rows = 3"
    assert query(settings, spans) == [(LAST - 2, LAST, 1)]


def test_one_that_has_died_holds_up_nobody_and_counts_as_stopped(
    store: Store, settings: Settings, tmp_path: Path
) -> None:
    make_views(store)
    store.execute(
        "INSERT INTO correction_progress (began_ns, family, version, what, stage, heard_at) "
        "VALUES (1, 'rates', 7, 'remove', 'staging', now64(3) - 4), (2, 'loans', 8, 'remove', 'waiting', now64(3) - 9)"
    )
    run(store, prices_file(tmp_path, [(IDS[0], LAST, "1")]))
    outcomes = query(settings, "SELECT family, outcome FROM corrections ORDER BY began")
    assert outcomes == [("rates", "stopped"), ("prices", "done")]


def test_a_correction_that_fails_is_stopped_at_once(store: Store, settings: Settings) -> None:
    make_views(store)
    with pytest.raises(ZeroDivisionError), staging(store, "rates", new_version(store), what="recompute"):
        raise ZeroDivisionError
    assert query(settings, "SELECT outcome FROM corrections") == [("stopped",)]


def test_without_room_for_its_rows_nothing_is_staged(server: Settings, store: Store, settings: Settings) -> None:
    """Only the embedded server's disk is this machine's."""
    own = Store(Settings(data_dir=server.data_dir, clickhouse_database=settings.clickhouse_database))
    refused = pytest.raises(DiskFull, match=r"MiB are free, \d[0-9,]+ MiB are needed")
    with closing(own), refused, staging(own, "rates", new_version(own), what="recompute", expected=10**15):
        raise AssertionError
