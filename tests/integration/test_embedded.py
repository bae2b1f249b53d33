"""The embedded ClickHouse: private to its owner, restarted after a crash, stopped with its command."""

import http.client
import json
import os
import re
import signal
import socket
import stat
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import polars as pl
import pytest
from clickhouse_connect.driver.exceptions import DatabaseError

from analytics_service.config import Settings
from analytics_service.embedded.clickhouse import attached, clickhouse, serving
from analytics_service.embedded.folder import DataFolder
from analytics_service.embedded.server import EmbeddedServer
from analytics_service.errors import EmbeddedServerError, StoreUnavailable
from analytics_service.processes.restarts import Restarts
from analytics_service.processes.supervisor import Supervisor
from analytics_service.processes.watch import running
from analytics_service.store.connection import Store
from tests.clickhouse import client
from tests.processes import PATIENCE, alive, until

_SUPERVISOR = """
import sys
from pathlib import Path
from analytics_service.config import Settings
from analytics_service.embedded.clickhouse import clickhouse
with clickhouse(Settings(data_dir=Path(sys.argv[1])), "supervisor") as settings:
    print(settings.clickhouse_url, flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def own(tmp_path: Path) -> Settings:
    """Settings with a data folder that no other test uses."""
    return Settings(data_dir=tmp_path / "data")


@contextmanager
def served(data_dir: Path, on_failure: Callable[[], None], restarts: Restarts) -> Iterator[None]:
    """A server with the test's own restart delays."""
    folder = DataFolder(data_dir)
    folder.create()
    lock = folder.lock("pytest")
    assert lock is not None
    try:
        with serving(folder, lock, on_failure, restarts):
            yield
    finally:
        os.close(lock)


def asked(url: str, sql: str, user: str, password: str) -> tuple[int, str]:
    """Send a query over HTTP; status and body of the answer."""
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(str(parts.hostname), parts.port, timeout=10)
    try:
        who = {"X-ClickHouse-User": user, "X-ClickHouse-Key": password}
        connection.request("GET", f"/?query={quote(sql)}", headers=who)
        response = connection.getresponse()
        return response.status, response.read().decode()
    finally:
        connection.close()


def answers(settings: Settings) -> bool:
    """Whether ClickHouse answers the service's user now."""
    with closing(Store(settings)) as store:
        try:
            store.server_version()
        except StoreUnavailable:
            return False
    return True


def server_pid(data_dir: Path) -> int:
    """The process id that the server wrote into its own data."""
    first = (data_dir / "clickhouse" / "data" / "status").read_text("utf-8").splitlines()[0]
    return int(first.removeprefix("PID: "))


def test_the_data_folder_is_for_its_owner_only(own: Settings) -> None:
    with clickhouse(own, "pytest") as settings:
        modes = {
            name: stat.S_IMODE((own.data_dir / name).stat().st_mode)
            for name in (".", "clickhouse", "password", "running.json", "lock")
        }
        users = (own.data_dir / "clickhouse" / "users.xml").read_text("utf-8")
    assert modes == {".": 0o700, "clickhouse": 0o700, "password": 0o600, "running.json": 0o600, "lock": 0o600}
    assert len(settings.clickhouse_password) >= 32
    assert settings.clickhouse_password not in users


def test_the_password_outlives_the_server(own: Settings) -> None:
    with clickhouse(own, "pytest") as first:
        pass
    with clickhouse(own, "pytest") as second:
        assert second.clickhouse_password == first.clickhouse_password
        assert answers(second)


@pytest.mark.parametrize(("user", "password"), [("default", ""), ("analytics", ""), ("analytics", "wrong")])
def test_nobody_gets_in_without_the_password(server: Settings, user: str, password: str) -> None:
    status, body = asked(str(server.clickhouse_url), "SELECT 1", user, password)
    assert status >= 400
    # 700: the one session of `default` is the server's own. 516: authentication failed.
    assert body.startswith("Code: 700." if user == "default" else "Code: 516.")


class Stranger(threading.Thread):
    """Asks the server in a data folder for a file, without credentials, again and again."""

    def __init__(self, data_dir: Path) -> None:
        super().__init__(daemon=True)
        self.refused = 0
        self.answers: list[str] = []
        self.stopped = threading.Event()
        self._configuration = data_dir / "clickhouse" / "config.xml"

    def run(self) -> None:
        """Ask wherever the server is going to listen, until stopped."""
        while not self.stopped.is_set():
            with suppress(OSError, http.client.HTTPException):
                found = re.search("<http_port>([0-9]+)<", self._configuration.read_text("utf-8"))
                if found is None:
                    continue
                url, sql = f"http://127.0.0.1:{found[1]}", "SELECT line FROM file('/etc/passwd', 'LineAsString')"
                status, body = asked(url, sql, "default", "")
                # A server that is killed while it refuses sends no reason any more.
                if status == http.client.INTERNAL_SERVER_ERROR and (not body or body.startswith("Code: 700.")):
                    self.refused += 1
                else:
                    self.answers.append(body)


def test_a_stranger_is_refused_while_the_server_starts_runs_crashes_and_stops(own: Settings) -> None:
    strangers = [Stranger(own.data_dir) for _ in range(3)]
    for stranger in strangers:
        stranger.start()
    for _ in range(3):
        refused = sum(stranger.refused for stranger in strangers)
        with clickhouse(own, "pytest") as running_server:
            until(lambda: sum(one.refused for one in strangers) > refused + 50)  # noqa: B023 - called at once
            os.kill(server_pid(own.data_dir), signal.SIGKILL)
            until(lambda: answers(running_server))
    for stranger in strangers:
        stranger.stopped.set()
        stranger.join()
    assert [stranger.answers for stranger in strangers] == [[], [], []]


def test_the_server_listens_on_loopback_only(server: Settings) -> None:
    port = urlsplit(str(server.clickhouse_url)).port
    with socket.create_connection(("127.0.0.1", port or 0), timeout=5):
        pass
    # Every other address of this machine, loopback ones too, is refused.
    with pytest.raises(OSError), socket.create_connection(("127.0.0.2", port or 0), timeout=5):
        pass


_LOGGED = "SELECT query, error_code FROM service_log.query_log WHERE query LIKE '%4711%' AND name = '' ORDER BY query"


def ask(settings: Settings, sql: str) -> list[tuple[Any, ...]]:
    """The rows of a query; none if it is refused. The server's log has it when the answer is there."""
    with client(replace(settings, clickhouse_database="default")) as own:
        try:
            return [tuple(row) for row in own.query(sql).result_rows]
        except DatabaseError:
            return []
        finally:
            own.command("SYSTEM FLUSH LOGS")


def test_queries_that_failed_or_were_slow_are_logged_for_a_week_and_outlive_the_server(own: Settings) -> None:
    """A fast one is only in the server's own log, which begins anew. Older rows go when their part is merged."""
    known = [("SELECT 4711 FROM nothing", 60), ("SELECT sleep(0.2), 4711", 0)]
    with clickhouse(own, "pytest") as settings:
        for sql in ("SELECT 4711", "SELECT sleep(0.2), 4711", "SELECT 4711 FROM nothing"):
            ask(settings, sql)
        found = [(query.removesuffix("\n FORMAT Native"), code) for query, code in ask(settings, _LOGGED)]
        assert found == known
        with client(replace(settings, clickhouse_database="service_log")) as own_client:
            own_client.command("INSERT INTO query_log (ended_at, query) VALUES (now() - INTERVAL 8 DAY, 'old')")
    with clickhouse(own, "pytest") as settings:
        assert len(ask(settings, _LOGGED)) == len(known)
        ask(settings, "SELECT sleep(0.2), 4711 AS again")
        assert len(ask(settings, _LOGGED)) == len(known) + 1
        with client(replace(settings, clickhouse_database="service_log")) as own_client:
            own_client.command("OPTIMIZE TABLE query_log FINAL")
        assert ask(settings, "SELECT count() FROM service_log.query_log WHERE query = 'old'") == [(0,)]


def test_the_log_of_queries_is_bounded(server: Settings) -> None:
    """Of all queries that are logged together twenty are kept; the server's own log ends after an hour."""
    with client(replace(server, clickhouse_database="default")) as own:
        own.command("SYSTEM FLUSH LOGS")
        for number in range(25):
            with pytest.raises(DatabaseError):
                own.command(f"SELECT {number} FROM bounded")
    ask(server, "SELECT 1")
    kept = "SELECT count() FROM service_log.query_log WHERE query LIKE '%FROM bounded%' GROUP BY _part"
    counts = [count for (count,) in ask(server, kept)]
    assert counts
    # The log may have been written by itself in between.
    assert sum(counts) <= 20 * len(counts)
    sql = "SELECT create_table_query FROM system.tables WHERE database = 'system' AND name = 'query_log'"
    ((statement,),) = ask(server, sql)
    assert "TTL event_time + toIntervalHour(1) SETTINGS ttl_only_drop_parts = 1" in statement


def test_a_backup_can_be_written_and_restored(server: Settings, store: Store) -> None:
    store.insert("asset", pl.DataFrame({"id": ["token;0x1"]}))
    store.execute(f"BACKUP TABLE asset TO File('{store.database}.tar')")
    store.execute("TRUNCATE TABLE asset")
    store.execute(f"RESTORE TABLE asset FROM File('{store.database}.tar') SETTINGS allow_non_empty_tables = 1")
    sql = f"SELECT id FROM {store.database}.asset"
    assert asked(str(server.clickhouse_url), sql, "analytics", server.clickhouse_password) == (200, "token;0x1\n")
    assert (server.data_dir / "clickhouse" / "data" / "backups" / f"{store.database}.tar").is_file()


def test_acknowledged_rows_survive_kills_and_the_server_comes_back_at_the_same_place(own: Settings) -> None:
    acknowledged: list[int] = []
    killed: list[int] = []
    with clickhouse(own, "pytest") as settings, closing(Store(settings)) as store:
        store.execute_outside_database("CREATE DATABASE analytics")
        store.execute("CREATE TABLE load (n UInt64) ENGINE = ReplacingMergeTree ORDER BY n")
        for number in range(150):
            if number % 50 == 25:
                killed.append(server_pid(own.data_dir))
                # From another thread a moment later, so that it hits an insert in progress.
                threading.Timer(0.003, os.kill, (killed[-1], signal.SIGKILL)).start()
            try:
                store.insert("load", pl.DataFrame({"n": [number]}, schema={"n": pl.UInt64}))
                acknowledged.append(number)
            except StoreUnavailable:
                until(lambda: answers(settings))
        until(lambda: server_pid(own.data_dir) not in killed and answers(settings))
        sql = "SELECT n FROM analytics.load FINAL ORDER BY n"
        status, body = asked(str(settings.clickhouse_url), sql, "analytics", settings.clickhouse_password)
    assert status == 200
    assert len(set(killed)) == 3
    assert len(acknowledged) >= 100
    assert set(acknowledged) <= {int(line) for line in body.split()}


def test_another_command_attaches_to_the_running_server(own: Settings) -> None:
    with clickhouse(own, "first") as first:
        with clickhouse(own, "second") as second:
            assert second == first
        assert attached(own) == first
        assert answers(first)
    assert attached(own) is None


def test_a_second_server_on_the_same_folder_is_refused_in_plain_words(own: Settings) -> None:
    with (
        clickhouse(own, "analytics-service up --bind 127.0.0.1:9999"),
        pytest.raises(EmbeddedServerError) as refused,
        clickhouse(own, "another", attach=False),
    ):
        pass
    message = str(refused.value)
    assert str(own.data_dir) in message
    assert f"process {os.getpid()} (`analytics-service up --bind 127.0.0.1:9999`)" in message
    assert "--data-dir" in message


def test_settings_with_a_url_are_left_alone(tmp_path: Path) -> None:
    named = Settings(clickhouse_url="http://127.0.0.1:1", data_dir=tmp_path / "none")
    with clickhouse(named, "pytest") as settings:
        assert settings is named
    assert not named.data_dir.exists()


def test_the_server_is_gone_after_the_block_even_when_that_fails(own: Settings) -> None:
    with pytest.raises(KeyError), clickhouse(own, "pytest"):
        pid = server_pid(own.data_dir)
        raise KeyError
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_the_server_is_gone_when_its_supervisor_is_killed(own: Settings) -> None:
    command = [sys.executable, "-c", _SUPERVISOR, str(own.data_dir)]
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environ) as supervisor:
        assert supervisor.stdout is not None
        url = supervisor.stdout.readline().decode().strip()
        pid = server_pid(own.data_dir)
        supervisor.kill()
        supervisor.wait()
        until(lambda: not alive(pid))
    with pytest.raises(OSError):
        asked(url, "SELECT 1", "analytics", "")
    with clickhouse(own, "pytest", attach=False) as settings:
        assert answers(settings)


def test_a_server_that_does_not_come_back_is_given_up_and_reported(tmp_path: Path) -> None:
    told = threading.Event()
    with (
        pytest.raises(EmbeddedServerError) as failure,
        served(tmp_path / "data", told.set, Restarts(delays=(0.0, 0.0))),
    ):
        (tmp_path / "data" / "clickhouse" / "users.xml").unlink()
        os.kill(server_pid(tmp_path / "data"), signal.SIGKILL)
        assert told.wait(PATIENCE)
    assert "giving up" in str(failure.value)
    assert str(tmp_path / "data" / "clickhouse") in str(failure.value)


def test_a_server_whose_port_was_taken_in_between_starts_on_another_one(tmp_path: Path) -> None:
    folder = DataFolder(tmp_path / "data")
    folder.create()
    lock = folder.lock("pytest")
    assert lock is not None
    server = EmbeddedServer(folder, lock)
    first = server.url
    try:
        with (
            socket.create_server(("127.0.0.1", urlsplit(first).port or 0)),
            running([Supervisor(server, Restarts())], lambda: None),
        ):
            assert server.url != first
            assert asked(server.url, "SELECT 1", "analytics", folder.password()) == (200, "1\n")
    finally:
        os.close(lock)


def test_another_version_of_chdb_is_refused_in_plain_words(
    own: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tmp_path / "site" / "chdb_core-25.1.0.dist-info"
    other.mkdir(parents=True)
    (other / "METADATA").write_text("Metadata-Version: 2.1\nName: chdb-core\nVersion: 25.1.0\n", "utf-8")
    monkeypatch.setenv("PYTHONPATH", str(other.parent))
    with pytest.raises(EmbeddedServerError) as refused, clickhouse(own, "pytest"):
        pass
    message = str(refused.value)
    assert "chdb-core is 25.1.0" in message
    assert "pip install 'analytics-service[embedded]'" in message
    assert "ANALYTICS_CLICKHOUSE_URL" in message


def test_a_data_folder_that_cannot_be_made_is_an_error_that_names_it(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder", "utf-8")
    inside = Settings(data_dir=tmp_path / "file" / "data")
    with pytest.raises(EmbeddedServerError, match=r"file.*--data-dir"), clickhouse(inside, "pytest"):
        pass


def test_a_command_does_not_attach_to_what_a_killed_one_left_behind(own: Settings) -> None:
    with clickhouse(own, "pytest"):
        left = (own.data_dir / "running.json").read_text("utf-8")
    (own.data_dir / "running.json").write_text(left, "utf-8")
    assert json.loads(left)["pid"] == os.getpid()
    assert attached(own) is None
    with clickhouse(own, "pytest") as settings:
        assert answers(settings)
