"""The write lock, which lets one correction work at a time, and what the view of corrections tells."""

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest

from analytics_service.clickhouse.connection import Store
from analytics_service.config.settings import Settings
from analytics_service.errors import CorrectionInProgress, DiskFull, WriteLockLost
from analytics_service.store.ledger import new_version, read_ledger
from analytics_service.store.rewrite import complete_interrupted, correction, staging
from analytics_service.store.write_lock import write_lock
from jobs.registry import JOBS
from jobs.runner import take_snapshot
from tests.doubles import Statement, WatchedStore
from tests.integration.imports import IDS, NOW, observations, prices_file, query, run
from tests.integration.lending import Lending

LAST = int(NOW.timestamp())
VIEW = "SELECT operation, dataset, outcome, rows, command FROM corrections ORDER BY began"


@pytest.mark.usefixtures("views")
def test_a_second_correction_is_refused_in_a_line_that_names_the_command_of_the_first(
    store: Store, settings: Settings, tmp_path: Path
) -> None:
    """So is a job that would rewrite history, which its scheduler logs. The next run of the job does it."""
    file = prices_file(tmp_path, [(IDS[0], LAST - number, "1") for number in range(3)])
    job, source, late = JOBS["prices"], Lending(LAST), NOW - timedelta(days=2)
    take_snapshot(job, source, store, NOW)
    with closing(Store(settings, author="analytics-service jobs recompute")) as first, ThreadPoolExecutor(2) as pool:
        with staging(first, "rates", new_version(store), what="recompute"):
            # Both are patient for seconds.
            imported, taken = pool.submit(run, store, file), pool.submit(take_snapshot, job, source, store, late)
            refusals = [str(imported.exception()), str(taken.exception())]
            assert {type(waited.exception()) for waited in (imported, taken)} == {CorrectionInProgress}
            working = ("recompute", "rates", "staging", 0, "analytics-service jobs recompute")
            assert query(settings, VIEW) == [working]
        run(first, file)
    for told in refusals:
        assert told.startswith("Another command has held the write lock since 20")
        assert "Z: recompute of rates by `analytics-service jobs recompute`. Try" in told
        assert "\n" not in told
    assert query(settings, VIEW) == [("import", "prices", "done", 3, "analytics-service jobs recompute")]
    spans = "SELECT toUnixTimestamp(first_at), toUnixTimestamp(last_at), ended >= began - 1 FROM corrections"
    assert query(settings, spans) == [(LAST - 2, LAST, 1)]
    assert take_snapshot(job, source, store, late)


@pytest.mark.usefixtures("views")
def test_a_correction_is_one_row_from_its_beginning_until_its_lock_is_released(
    store: Store, settings: Settings
) -> None:
    """Who asks for the lock meanwhile has none."""
    with write_lock(store, "prices", "import"):
        store.execute(
            "INSERT INTO write_lock (holder, operation, dataset, requested_at) "
            "SELECT 'b', 'remove', 'rates', now64(3) + 1"
        )
        assert query(settings, VIEW) == [("import", "prices", "staging", 0, "")]
        store.execute("INSERT INTO rewrite (dataset, version, operation, finished) SELECT 'prices', 7, 'import', 1")
        assert query(settings, VIEW) == [("import", "prices", "done", 0, "")]


def test_of_several_that_ask_at_once_one_works(store: Store, settings: Settings) -> None:
    """Each has a connection of its own. The one that works holds the lock until the others were refused, which are told
    of it."""
    start, refused, worked = threading.Barrier(4), threading.Semaphore(0), list[str]()

    def ask(number: int) -> str:
        with closing(Store(settings, author=f"writer {number}")) as own:
            start.wait()
            try:
                with write_lock(own, "prices", "import"):
                    worked.append(own.author)
                    assert all(refused.acquire(timeout=20) for _ in range(3))
            except CorrectionInProgress as error:
                refused.release()
                return str(error).split("`")[1]
            return own.author

    with ThreadPoolExecutor(4) as pool:
        told = {*pool.map(ask, range(4))}
    assert told == {*worked}
    assert len(worked) == 1


@pytest.mark.parametrize("lost", ["1 AS released", "now64(3) + 3600 AS heartbeat_at"])
def test_nothing_is_announced_once_the_lock_is_lost(store: Store, settings: Settings, lost: str) -> None:
    """Others do not count a heartbeat from the future, so its sender must not, either."""
    with write_lock(store, "prices", "import") as lock:
        store.execute(f"INSERT INTO write_lock SELECT * REPLACE ({lost}) FROM write_lock FINAL")
        with pytest.raises(WriteLockLost):
            lock.announce("prices", 7, 1, (LAST, LAST))
    assert query(settings, "SELECT count() FROM rewrite") == [(0,)]


def test_nothing_is_listed_once_the_lock_is_lost(store: Store, settings: Settings, tmp_path: Path) -> None:
    """Whoever takes it next lists what was announced."""

    def lose(statement: Statement) -> None:
        if "ATTACH PARTITION" in statement.name:
            store.execute("INSERT INTO write_lock SELECT * REPLACE (1 AS released) FROM write_lock FINAL")

    with closing(WatchedStore(settings, before=lose)) as watched, pytest.raises(WriteLockLost):
        run(watched, prices_file(tmp_path, [(IDS[0], LAST, "1")]))
    assert query(settings, "SELECT count() FROM snapshot") == [(0,)]
    complete_interrupted(store)
    assert query(settings, "SELECT count() FROM snapshot") == [(1,)]
    assert observations(settings) == {(IDS[0], LAST): 1}


def test_one_that_has_died_holds_up_nobody(store: Store, settings: Settings, tmp_path: Path) -> None:
    """Nor does one whose last heartbeat came while the clock was ahead."""
    store.execute(
        "INSERT INTO write_lock (holder, operation, heartbeat_at) "
        "VALUES ('a', 'remove', now64(3) - 16), ('b', 'remove', now64(3) + 3600)"
    )
    run(store, prices_file(tmp_path, [(IDS[0], LAST, "1")]))
    assert observations(settings) == {(IDS[0], LAST): 1}


@pytest.mark.usefixtures("views")
def test_an_interrupted_rewrite_is_left_to_whoever_holds_the_lock(store: Store, settings: Settings) -> None:
    store.execute("INSERT INTO rewrite (dataset, version, operation) SELECT 'prices', 7, 'import'")
    assert query(settings, "SELECT outcome FROM corrections") == [("interrupted",)]
    with write_lock(store, "rates", "remove"):
        assert complete_interrupted(store) == ""
        assert read_ledger(store).open == {"prices": [7]}
    complete_interrupted(store)
    assert read_ledger(store).open == {}
    assert query(settings, "SELECT outcome FROM corrections") == [("done",)]


def test_a_correction_that_fails_leaves_the_lock(store: Store) -> None:
    with pytest.raises(ZeroDivisionError), staging(store, "rates", None, what="recompute"):
        raise ZeroDivisionError
    with correction(store, "rates", "recompute", patience=0):
        pass


def test_without_room_for_its_rows_nothing_is_staged(server: Settings, store: Store, settings: Settings) -> None:
    """Only the embedded server's disk is this machine's."""
    own = Store(Settings(data_dir=server.data_dir, clickhouse_database=settings.clickhouse_database))
    refused = pytest.raises(DiskFull, match=r"MiB are free, \d[0-9,]+ MiB are needed")
    with closing(own), refused, staging(own, "rates", new_version(own), what="recompute", expected=10**15):
        raise AssertionError
