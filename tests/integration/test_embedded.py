"""The embedded ClickHouse: private to its owner, restarted after a crash, stopped with its command."""

import http.client
import json
import os
import resource
import signal
import socket
import stat
import struct
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import polars as pl
import pytest
import urllib3
from clickhouse_connect.driver.exceptions import DatabaseError

from analytics_service.clickhouse.connection import Store
from analytics_service.clickhouse.running import (
    PASSWORD,
    RESEARCHER_PASSWORD,
    native_port,
    read_password,
    read_running,
)
from analytics_service.config.settings import Settings
from analytics_service.embedded.clickhouse import attach, clickhouse, serve_clickhouse
from analytics_service.embedded.configuration import configured_port
from analytics_service.embedded.folder import DataFolder
from analytics_service.embedded.server import EmbeddedServer, read_lost_writes
from analytics_service.errors import DiskFull, ProcessError, SettingError, StoreUnavailable
from analytics_service.store.ledger import Origin
from analytics_service.store.migrations import migrate
from analytics_service.store.ownership import Owner, read_owner, simulated_spec, take_ownership
from tests.clickhouse import client, hello
from tests.processes import alive, free_port, until
from tests.recorder import Recorder

_ASKS = """
import os
from analytics_service.config.settings import Settings
from analytics_service.clickhouse.connection import Store
print(Store(Settings.from_environment(os.environ)).server_version())
"""


@pytest.fixture
def own(tmp_path: Path) -> Settings:
    """Settings with a data folder that no other test uses."""
    return Settings(data_dir=tmp_path / "data")


@contextmanager
def served(data_dir: Path) -> Iterator[None]:
    """A server of its own."""
    folder = DataFolder(data_dir)
    folder.create()
    lock = folder.lock("pytest")
    assert lock is not None
    try:
        with serve_clickhouse(folder, lock, Settings()):
            yield
    finally:
        os.close(lock)


def url_of(data_dir: Path) -> str:
    """Where the server that is announced in a data folder answers."""
    announced = read_running(data_dir)
    assert announced is not None
    return announced.url


def configured(data_dir: Path) -> int | None:
    """The port on which the server of a data folder is going to answer HTTP; None while that is being written."""
    return configured_port(data_dir / "clickhouse")


def asked(url: str, sql: str, user: str, password: str, path: str = "/") -> tuple[int, str]:
    """Send a query over HTTP; status and body of the answer."""
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(str(parts.hostname), parts.port, timeout=10)
    try:
        who = {"X-ClickHouse-User": user, "X-ClickHouse-Key": password}
        connection.request("POST", path, sql, headers=who)
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
    """The process id that the server wrote into its own data; 0 while one that was restarted writes it anew."""
    first, *_ = [*(data_dir / "clickhouse" / "data" / "status").read_text("utf-8").splitlines(), "PID: 0"]
    return int(first.removeprefix("PID: "))


def test_a_folder_that_others_may_read_becomes_private(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Kubernetes, too, lets a volume's group write to all folders there. Others may go on reading the root."""
    folder = DataFolder(tmp_path / "data")
    folder.create()
    folder.root.chmod(0o2775)
    folder.server.chmod(0o755)
    folder.create()
    assert [stat.S_IMODE(one.stat().st_mode) for one in (folder.root, folder.server)] == [0o2755, 0o700]
    assert f"Changed the mode of {folder.server} from 0755 to 0700." in caplog.text


def test_a_folder_that_others_may_write_or_that_is_anothers_is_refused_with_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = DataFolder(tmp_path / "data")
    folder.create()
    for path in (folder.server, folder.root):
        path.chmod(0o707)
        with pytest.raises(SettingError, match=rf"{path} must belong to this user.* its mode 0707\..*`chmod 700`"):
            folder.create()
        path.chmod(0o700)
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    with pytest.raises(SettingError, match=rf"its owner is user {os.getuid()}, .* --data-dir"):
        folder.create()


def test_root_attaches_in_a_users_folder_and_starts_nothing_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = DataFolder(tmp_path / "data")
    folder.create()
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    if os.getuid() == 0:
        os.chown(folder.root, 12345, -1)
        os.chown(folder.server, 12345, -1)
    with pytest.raises(SettingError, match=rf"{folder.server} must belong to .*`runuser -u USER -- \.\.\.`"):
        folder.create()
    lock = folder.lock("pytest")
    assert lock is not None
    try:
        folder.create()
    finally:
        os.close(lock)


def test_a_lock_that_leads_elsewhere_is_refused(tmp_path: Path) -> None:
    folder, other = DataFolder(tmp_path / "data"), tmp_path / "other"
    folder.create()
    other.write_text("kept", "utf-8")
    (folder.root / "lock").symlink_to(other)
    for ask in (lambda: folder.lock("pytest"), folder.locked):
        with pytest.raises(ProcessError, match="cannot be used"):
            ask()
    assert other.read_text("utf-8") == "kept"


def test_nobody_gets_in_without_the_password(server: Settings) -> None:
    """700: the one session of `default` is the server's own. 516: authentication failed."""
    for user, password, code in (
        ("default", "", 700),
        ("analytics", "", 516),
        ("analytics", "wrong", 516),
        ("researcher", "", 516),
    ):
        status, body = asked(str(server.clickhouse_url), "SELECT 1", user, password)
        assert status >= 400
        assert body.startswith(f"Code: {code}."), (user, body)


def http_answer(port: int, user: str) -> bytes:
    """The body of the answer to a query without a password. Empty when the server is killed while it refuses."""
    url, sql = f"http://127.0.0.1:{port}", "SELECT line FROM file('/etc/passwd', 'LineAsString')"
    status, body = asked(url, sql, user, "")
    return f"{status} {body}".encode() if body or status != http.client.INTERNAL_SERVER_ERROR else b""


def native_answer(port: int, user: str) -> bytes:
    """The beginning of the answer in ClickHouse's own protocol, without a password."""
    return hello(native_port(port), user)


# How refusals begin. 700: the one session of `default` is the server's own. 516: authentication failed.
# In the native protocol, 2 is the kind of a packet with an error, whose code follows.
REFUSALS = (b"500 Code: 700.", b"403 Code: 516.", b"\2" + struct.pack("<i", 700), b"\2" + struct.pack("<i", 516))


class Stranger(threading.Thread):
    """Asks the server in a data folder without a password, again and again."""

    def __init__(self, data_dir: Path, ask: Callable[[int, str], bytes], user: str) -> None:
        super().__init__(daemon=True)
        self.refused = 0
        self.answers: list[bytes] = []
        self.stopped = threading.Event()
        self._data_dir = data_dir
        self._ask = ask
        self._user = user

    def run(self) -> None:
        """Ask wherever the server is going to listen, until stopped."""
        while not self.stopped.is_set():
            try:
                port = configured(self._data_dir)
                answer = self._ask(port, self._user) if port else b""
            except (ConnectionRefusedError, FileNotFoundError):
                # Nothing listens. Asking all the time would take the processor from the server that is to start.
                self.stopped.wait(0.001)
                continue
            except (OSError, http.client.HTTPException):
                continue
            if answer.startswith(REFUSALS):
                self.refused += 1
                self.stopped.wait(0.002)
            # A packet that breaks off comes from a server that is killed.
            elif answer and not any(refusal.startswith(answer) for refusal in REFUSALS):
                self.answers.append(answer)


def test_a_stranger_is_refused_while_the_server_starts_runs_crashes_and_stops(own: Settings) -> None:
    kinds = [(ask, user) for ask in (http_answer, native_answer) for user in ("default", "analytics")]
    strangers = [Stranger(own.data_dir, ask, user) for ask, user in kinds]
    for stranger in strangers:
        stranger.start()
    with clickhouse(own, "pytest") as running_server:
        until(lambda: all(one.refused > 5 for one in strangers))
        os.kill(server_pid(own.data_dir), signal.SIGKILL)
        until(lambda: answers(running_server))
    for stranger in strangers:
        stranger.stopped.set()
        stranger.join()
    assert [stranger.answers for stranger in strangers] == [[]] * 4


@pytest.fixture(scope="module")
def database(server: Settings) -> Iterator[str]:
    """The service's database, with a table."""
    with closing(Store(server)) as store:
        store.execute("CREATE DATABASE analytics", in_database=False)
        store.execute("CREATE TABLE analytics.shown ENGINE = MergeTree ORDER BY a AS SELECT 7 AS a", in_database=False)
        yield "analytics"
        store.execute("DROP DATABASE analytics", in_database=False)


_OUTSIDE = [
    "SELECT * FROM file('/etc/passwd', 'LineAsString')",
    "INSERT INTO FUNCTION file('/tmp/written', 'LineAsString') VALUES ('x')",
    "SELECT * FROM url('http://127.0.0.1:1/', 'LineAsString')",
    "SELECT * FROM remote('127.0.0.1:1', system, one)",
    "SELECT * FROM mysql('127.0.0.1:1', 'database', 'table', 'user', 'password')",
    "SELECT * FROM executable('id', 'LineAsString', 'line String')",
    "CREATE TABLE {database}.x (line String) ENGINE = URL('http://127.0.0.1:1/', 'LineAsString')",
    "CREATE TABLE {database}.x (line String) ENGINE = Distributed('default', 'system', 'one')",
    "CREATE DATABASE x ENGINE = Filesystem('/')",
    "CREATE DICTIONARY {database}.x (id UInt64) PRIMARY KEY id LAYOUT(FLAT()) LIFETIME(0) "
    "SOURCE(EXECUTABLE(COMMAND 'id' FORMAT 'CSV'))",
    "CREATE FUNCTION x AS (a) -> a",
    "CREATE NAMED COLLECTION x AS a = 1",
    "CREATE USER x",
    "GRANT SELECT ON *.* TO default",
    "BACKUP DATABASE {database} TO File('/tmp/written.tar')",
    "SYSTEM STOP LISTEN HTTP",
    "DROP DATABASE system",
    "DROP TABLE system.one",
]
_FILES = [
    # This pipe has no end.
    ("SELECT file('/proc/self/fd/0')", 42),
    ("SELECT arrayMap(file, ['users.xml'])", 42),
    ("SELECT file('server.log', NULL)", 42),
    ("SELECT * FROM default.`users.xml`", 497),
    ("SELECT 1 AS a FORMAT Template SETTINGS format_template_row = 'users.xml'", 452),
    ("SELECT 1 AS a FORMAT Template SETTINGS format_template_resultset = 'users.xml'", 452),
    ("SELECT 1 AS a FORMAT Protobuf SETTINGS format_schema = 'users.xml:a'", 452),
    ("SELECT 1 AS a FORMAT Protobuf SETTINGS output_format_schema = 'users.xml'", 452),
    ("SELECT 1 AS a FORMAT AvroConfluent SETTINGS format_avro_schema_registry_url = 'http://127.0.0.1:1'", 452),
    ("SELECT 1 SETTINGS input_format_record_errors_file_path = 'users.xml'", 452),
]
_WRITES = [
    "CREATE DATABASE research",
    "CREATE TABLE {database}.x (a UInt8) ENGINE = MergeTree ORDER BY a",
    "CREATE TABLE {database}.x (a UInt8) ENGINE = Memory",
    "CREATE TEMPORARY TABLE x (a UInt8)",
    "CREATE TEMPORARY TABLE x (a UInt8) ENGINE = MergeTree ORDER BY a",
    "CREATE VIEW {database}.x AS SELECT 1",
    "CREATE TEMPORARY VIEW x AS SELECT 1",
    "CREATE MATERIALIZED VIEW {database}.x ENGINE = MergeTree ORDER BY a SQL SECURITY DEFINER "
    "DEFINER = CURRENT_USER AS SELECT throwIf(1) AS a FROM {database}.shown",
    "CREATE DICTIONARY {database}.x (a UInt8) PRIMARY KEY a SOURCE(NULL()) LAYOUT(FLAT()) LIFETIME(1)",
    "INSERT INTO {database}.shown VALUES (1)",
    "INSERT INTO FUNCTION null('a UInt8') VALUES (1)",
    "ALTER TABLE {database}.shown UPDATE b = sleepEachRow(3) WHERE 1",
    "DELETE FROM {database}.shown WHERE 1",
    "OPTIMIZE TABLE {database}.shown FINAL",
    "TRUNCATE TABLE {database}.shown",
    "DROP DATABASE {database}",
    "BACKUP DATABASE {database} TO Disk('backups', 'mine.tar')",
    "CREATE USER x",
    "SYSTEM FLUSH LOGS",
]
# Settings that reach beyond a query, or lift limits.
_LIMITS = [
    "priority = 1",
    "low_priority_query_wait_time_ms = 0",
    "os_thread_priority = -20",
    "os_threads_nice_value_query = -20",
    "max_threads = 1000",
    "max_execution_time = 0",
    "max_concurrent_queries_for_user = 1000",
    "max_memory_usage_for_user = 0",
    "max_temporary_data_on_disk_size_for_user = 0",
    "max_result_bytes = 0",
    "max_bytes_before_external_sort = 1",
    "max_bytes_ratio_before_external_sort = 0.1",
    "max_bytes_before_external_join = 1",
    "max_bytes_ratio_before_external_join = 0.1",
    "join_algorithm = 'grace_hash'",
    "query_cache_max_size_in_bytes = 0",
    "memory_overcommit_ratio_denominator = 1",
    "memory_overcommit_ratio_denominator_for_user = 1",
    "max_network_bandwidth_for_user = 1",
    "max_network_bandwidth_for_all_users = 1",
    "cancel_http_readonly_queries_on_client_close = 0",
    "log_queries_min_query_duration_ms = 0",
    "log_queries_cut_to_length = 1000000",
    "log_query_settings = 1",
    # Another profile lifts nothing.
    "profile = 'default', priority = 1",
    # Only the size of what is analysed bounds time and memory of the analysis.
    *(f"{name} = 1000000000" for name in ("max_expanded_ast_elements", "max_ast_elements", "max_query_size")),
]
_ELSEWHERE = (
    "CREATE TABLE {database}.x (a UInt8) ENGINE = MergeTree ORDER BY a SETTINGS "
    "disk = disk(type = {kind}, endpoint = 'http://127.0.0.1:1/bucket/path/', skip_access_check = 1)"
)
REFUSED = [
    *(("analytics", sql, 497) for sql in _OUTSIDE),
    *(("analytics", _ELSEWHERE.replace("{kind}", kind), 452) for kind in ("web", "s3")),
    *((user, sql, code) for user in ("analytics", "researcher") for sql, code in _FILES),
    *(("researcher", sql, 497) for sql in _WRITES),
    *(("researcher", f"SELECT 1 SETTINGS {setting}", 452) for setting in _LIMITS),
    ("researcher", "SET readonly = 0", 164),
    # Reading these writes the memory's map into /tmp, under a name that anybody can guess.
    *(("researcher", f"SELECT 1 FROM system.jemalloc_{name}", 497) for name in ("profile_text", "sampled_allocations")),
]


def test_users_get_to_nothing_outside_and_researchers_write_nothing_and_keep_to_their_limits(
    server: Settings, database: str
) -> None:
    """42: the function takes no argument. 164: who only reads cannot change that. 452: the setting may not be changed,
    or not to that. 497: access denied."""
    answered = []
    for user, sql, code in REFUSED:
        password = read_password(server.data_dir / (PASSWORD if user == "analytics" else RESEARCHER_PASSWORD))
        _, body = asked(str(server.clickhouse_url), sql.replace("{database}", database), user, password)
        if not body.startswith(f"Code: {code}."):
            answered.append((user, sql, body))
    assert answered == []


def test_no_browser_opens_a_client_within_the_server(server: Settings) -> None:
    with closing(http.client.HTTPConnection(urlsplit(str(server.clickhouse_url)).netloc, timeout=10)) as connection:
        connection.request("GET", "/webterminal")
        assert connection.getresponse().status == http.client.FORBIDDEN


def test_a_query_of_sqlite_makes_no_file(server: Settings) -> None:
    """One among the definitions would keep the server from starting again."""
    for shown in ("SELECT * FROM", "DESCRIBE", "EXPLAIN SELECT * FROM"):
        status, _ = researched(server, f"{shown} sqlite('data/metadata/evil.sql', 't')")
        assert status >= http.client.BAD_REQUEST
    assert not (server.data_dir / "clickhouse" / "data" / "metadata" / "evil.sql").exists()


# Arguments with which each table function that reaches outside of the server gets as far as the grant.
_REACHING = (
    "'{file}'",
    "'{file}', 'a'",
    "'{file}', 'LineAsString', 'line String'",
    "'http://{host}/a/b', 'LineAsString', 'line String'",
    "'http://{host}/a', 'b', 'c'",
    "'http://{host}/', '//path', 'token', 'a String'",
    "'{host}', 'system', 'one'",
    "'{host}', 'a', 'a String, b String'",
    "'{host}', 'a', 'b', 'user', 'password'",
    "'mongodb://u:p@{host}/a', 'b', 'a String'",
    "'hdfs://{host}/a', 'CSV', 'a String'",
    "'project', 'a', 'b'",
    "'a', 'system', 'one'",
    "DSN, 'a', 'b'",
    "id, LineAsString, 'line String'",
)
# Table functions that read nothing but their arguments, what the user may read, or settings and parts of such tables.
_INSIDE = {
    *("SQLStandardValues", "values", "null", "numbers", "numbers_mt", "zeros", "zeros_mt", "primes", "generateSeries"),
    *("generate_series", "generateRandom", "format", "fuzzJSON", "fuzzQuery", "eval", "view", "viewIfPermitted"),
    *("viewExplain", "input", "loop", "merge", "dictionary", "mergeTreeAnalyzeIndexes", "mergeTreeAnalyzeIndexesUUID"),
    *("mergeTreeCodecBlockCounts", "mergeTreeIndex", "mergeTreeProjection", "mergeTreeTextIndex", "prometheusQuery"),
    *("prometheusQueryRange", "timeSeriesData", "timeSeriesMetricFamilies", "timeSeriesMetrics", "timeSeriesSamples"),
    *("timeSeriesSelector", "timeSeriesTags"),
}
# 446: switched off by a setting that is constant. 47: nothing is registered. 481: no file can be opened.
_OTHERWISE = {"python": 446, "arrowstream": 47, "sqlite": 481}


@pytest.mark.usefixtures("database")
def test_no_table_function_reads_a_file_opens_a_connection_or_runs_a_program(server: Settings, tmp_path: Path) -> None:
    """497: access denied. 701: there is no such cluster, and a user can make none."""
    file = tmp_path / "secret"
    file.write_text("not to be read")
    functions = researched(server, "SELECT name FROM system.table_functions")[1].split()
    answers: dict[str, set[str]] = {name: set() for name in functions}
    with socket.create_server(("127.0.0.1", 0)) as outside:
        host = f"127.0.0.1:{outside.getsockname()[1]}"
        for name in functions:
            for arguments in _REACHING:
                call = f"SELECT * FROM {name}({arguments.format(file=file, host=host)}) LIMIT 1"
                status, body = researched(server, call)
                assert "not to be read" not in body, call
                answers[name].add("answered" if status == http.client.OK else body.partition(".")[0])
                if "Code: 497" in answers[name]:
                    # Other arguments need the same grant.
                    break
        outside.setblocking(False)
        with pytest.raises(BlockingIOError):
            outside.accept()
    reaching = {name: codes for name, codes in answers.items() if name not in _INSIDE}
    allowed = {
        name: codes
        for name, codes in reaching.items()
        if f"Code: {_OTHERWISE.get(name, 701 if 'luster' in name else 497)}" not in codes or "answered" in codes
    }
    assert allowed == {}
    assert {"file", "url", "s3", "remote", "executable", "mysql", "postgresql", "mongodb", "hdfs"} <= reaching.keys()


# Engines of tables that are in the server itself.
_OWN_ENGINES = {"AggregatingMergeTree", "Memory", "MergeTree", "ReplacingMergeTree", "SummingMergeTree"}


def test_the_service_may_use_engines_within_the_server_and_researchers_none(server: Settings, database: str) -> None:
    url = str(server.clickhouse_url)
    for user, file in (("analytics", PASSWORD), ("researcher", RESEARCHER_PASSWORD)):
        password = read_password(server.data_dir / file)
        for create, listed, own in (
            (f"CREATE TABLE {database}.tried (a UInt8)", "table_engines", _OWN_ENGINES),
            ("CREATE TEMPORARY TABLE x (a UInt8)", "table_engines", _OWN_ENGINES),
            ("CREATE DATABASE x", "database_engines", {"Memory"}),
        ):
            engines = asked(url, f"SELECT name FROM system.{listed}", user, password)[1].split()
            answers = {engine: asked(url, f"{create} ENGINE = {engine}", user, password)[1] for engine in engines}
            # 497: access denied.
            allowed = {engine for engine, body in answers.items() if not body.startswith("Code: 497.")}
            assert allowed == (own if user == "analytics" else set()), create
    assert asked(url, "DROP DATABASE x", "analytics", server.clickhouse_password) == (200, "")


def researched(server: Settings, sql: str) -> tuple[int, str]:
    """Send a query as a researcher; status and body of the answer."""
    password = read_password(server.data_dir / RESEARCHER_PASSWORD)
    return asked(str(server.clickhouse_url), sql, "researcher", password)


def test_researchers_read_everything_and_bring_data_along(server: Settings, database: str) -> None:
    assert researched(server, "SELECT currentDatabase(), getSetting('priority')") == (200, "analytics\t2\n")
    assert researched(server, f"SELECT a + b FROM {database}.shown, values('b UInt8', 1) AS mine") == (200, "8\n")
    assert researched(server, "SELECT count() > 0 FROM system.processes") == (200, "1\n")
    path, content = "/?query=SELECT+sum(a)+FROM+mine&mine_structure=a+UInt8", {"mine": ("mine", "1\n2\n")}
    password = read_password(server.data_dir / RESEARCHER_PASSWORD)
    headers = {"X-ClickHouse-User": "researcher", "X-ClickHouse-Key": password}
    assert urllib3.request("POST", f"{server.clickhouse_url}{path}", fields=content, headers=headers).data == b"3\n"


@pytest.mark.usefixtures("database")
def test_researchers_set_what_their_clients_set_within_the_limits(server: Settings) -> None:
    rows = "values('a UInt8', 1) AS mine LEFT JOIN values('b UInt8', 2) AS other ON b = a"
    sql = f"SELECT b, getSetting('max_execution_time') FROM {rows}"
    assert researched(server, sql) == (200, "\\N\t60\n")
    taken = "log_comment = 'mine', max_execution_time = 1, max_threads = 1, join_use_nulls = 0, readonly = 2"
    assert researched(server, f"{sql} SETTINGS {taken}") == (200, "0\t1\n")
    _, body = researched(server, "SELECT 1 SETTINGS max_execution_time = 0")
    assert "Setting max_execution_time shouldn't be less than 1." in body


@pytest.mark.usefixtures("database")
def test_researchers_groups_have_a_bound_on_disk(server: Settings) -> None:
    """The bound is tens of times lower than what these temporary files would take."""
    groups = "SELECT number FROM numbers(3000000) GROUP BY number"
    limits = "max_bytes_before_external_group_by = 1000000, max_temporary_data_on_disk_size_for_query = 1000000"
    status, body = researched(server, f"SELECT count() FROM ({groups}) SETTINGS {limits}")
    # 396: the limit for temporary files is exceeded.
    assert (status, body[:10]) == (500, "Code: 396."), body


@pytest.mark.usefixtures("database")
def test_what_a_session_keeps_goes_after_ten_seconds(server: Settings) -> None:
    password = read_password(server.data_dir / RESEARCHER_PASSWORD)
    url = str(server.clickhouse_url)
    longest, longer = (
        asked(url, "SELECT 1", "researcher", password, f"/?session_id=mine&session_timeout={seconds}")
        for seconds in (10, 11)
    )
    assert longest == (200, "1\n")
    # 374: the time is longer than allowed.
    assert longer[1].startswith("Code: 374."), longer


@pytest.mark.usefixtures("database")
def test_researchers_have_four_queries_at_a_time_and_the_service_is_answered(server: Settings) -> None:
    with ThreadPoolExecutor(12) as pool:
        answers = list(pool.map(lambda _: researched(server, "SELECT sleep(2)"), range(12)))
        status, _ = asked(str(server.clickhouse_url), "SELECT 1", "analytics", server.clickhouse_password)
    assert status == 200
    # 202: too many at the same time.
    refused = [body for status, body in answers if status != 200]
    assert len(refused) == 8
    assert all(body.startswith("Code: 202.") for body in refused), refused


@pytest.mark.usefixtures("database")
def test_queries_whose_clients_have_gone_leave_room_for_others(server: Settings) -> None:
    """A query whose client stays may take ten times as long as this waits."""
    url, password = urlsplit(str(server.clickhouse_url)), read_password(server.data_dir / RESEARCHER_PASSWORD)
    headers = {"X-ClickHouse-User": "researcher", "X-ClickHouse-Key": password}
    endless = "SELECT count() FROM numbers(1000000000000) WHERE NOT ignore(sipHash64(number))"
    with ExitStack() as clients:

        def no_room_after_one_more() -> bool:
            connection = clients.enter_context(closing(http.client.HTTPConnection(url.netloc, timeout=10)))
            connection.request("POST", "/?query=SELECT+1", headers=headers)
            connection.getresponse().read()
            connection.request("POST", f"/?query={quote(endless)}", headers=headers)
            return researched(server, "SELECT 1")[1].startswith("Code: 202.")

        # Four are allowed; one is refused if a query before it has not quite ended.
        until(no_room_after_one_more, seconds=30, every=0.5)
    until(lambda: researched(server, "SELECT 1") == (200, "1\n"), seconds=30)


@pytest.mark.usefixtures("database")
def test_a_researchers_query_does_not_wait_for_the_one_that_keeps_the_listeners_open(server: Settings) -> None:
    """It would wait a second at each of these hundred blocks."""
    sql = "SELECT count() FROM numbers(100000) WHERE NOT ignore(number) SETTINGS max_block_size = 1000"
    assert researched(server, f"{sql}, max_execution_time = 10") == (200, "100000\n")


_NASTY = (
    "SELECT * FROM python('x') SETTINGS allow_python_table_function = 1",
    "SELECT " + "(" * 50_000 + "1" + ")" * 50_000,
    "SELECT 1" + " UNION ALL SELECT 1" * 5_000,
    "SELECT CAST([] AS " + "Array(" * 500 + "Int8" + ")" * 500 + ")",
    "SELECT match(repeat('a', 1000), '(((a{1,1000}){1,1000}){1,1000})')",
    "WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r) SELECT max(n) FROM r",
    "SELECT repeat(repeat('x', 1000000), 1000000)",
    "SELECT arrayResize([1], 1000000000000)",
    "SELECT groupArray(repeat('x', 100000)) FROM numbers(10000000)",
    "SELECT finalizeAggregation(CAST(unhex('FFFFFFFFFFFFFFFFFF7F') AS AggregateFunction(groupArray, String)))",
    "SELECT 1 SETTINGS max_block_size = 18446744073709551615",
    "SELECT count() FROM numbers(10000) GROUP BY number SETTINGS memory_tracker_fault_probability = 0.5",
    "SELECT addressToLine(18446744073709551615)",
    "SELECT 1 FORMAT DataFrame",
    "SYSTEM SHUTDOWN",
    "SYSTEM KILL",
    "KILL QUERY WHERE 1 ASYNC",
    "EXECUTE AS default SELECT 1",
    "SET profile = 'supervisor'",
    "SELECT 1\0\1\xff",
)


@pytest.mark.usefixtures("database")
def test_nothing_that_a_researcher_sends_ends_the_server(server: Settings) -> None:
    """It has all functions of ClickHouse and some of chdb's, which reach into Python."""
    pid = server_pid(server.data_dir)
    password = read_password(server.data_dir / RESEARCHER_PASSWORD)
    headers = {"X-ClickHouse-User": "researcher", "X-ClickHouse-Key": password}
    with closing(http.client.HTTPConnection(urlsplit(str(server.clickhouse_url)).netloc, timeout=60)) as connection:
        for sql in _NASTY:
            # The answer breaks off where the server ends.
            connection.request("POST", "/?max_execution_time=1&wait_end_of_query=1", sql.encode("latin-1"), headers)
            connection.getresponse().read()
    assert server_pid(server.data_dir) == pid
    assert asked(str(server.clickhouse_url), "SELECT 1", "analytics", server.clickhouse_password) == (200, "1\n")


def test_a_query_that_needs_more_memory_than_it_may_have_goes_on_in_temporary_files(server: Settings) -> None:
    limits = "max_bytes_before_external_sort = 1000000, max_bytes_ratio_before_external_sort = 0"
    rows = "SELECT toString(number) AS s FROM numbers(1000000) ORDER BY s LIMIT 999999"
    sql = f"SELECT max(s) FROM ({rows}) SETTINGS {limits}"
    assert asked(str(server.clickhouse_url), sql, "analytics", server.clickhouse_password) == (200, "999998\n")


def test_pages_of_other_origins_may_not_ask_the_server(server: Settings) -> None:
    """Not even one that knows the password, unless it asks as the server's own page does, which cannot do otherwise."""
    parts = urlsplit(str(server.clickhouse_url))
    known = {"X-ClickHouse-User": "analytics", "X-ClickHouse-Key": server.clickhouse_password}
    for path, login in (("/", known), ("/play", {}), ("/?query=SELECT+1&add_http_cors_header=1", {})):
        headers = {"Origin": "http://elsewhere.example", "Access-Control-Request-Method": "POST", **login}
        for method in ("GET", "POST", "OPTIONS"):
            with closing(http.client.HTTPConnection(str(parts.hostname), parts.port, timeout=10)) as connection:
                connection.request(method, path, headers=headers)
                answer = connection.getresponse()
                answer.read()
            assert not [name for name in answer.headers if name.lower().startswith("access-control-allow")], path


def test_the_server_listens_on_loopback_only(server: Settings) -> None:
    port = urlsplit(str(server.clickhouse_url)).port
    with socket.create_connection(("127.0.0.1", port or 0), timeout=5):
        pass
    # Every other address of this machine, loopback ones too, is refused.
    with pytest.raises(OSError), socket.create_connection(("127.0.0.2", port or 0), timeout=5):
        pass


def ask(settings: Settings, sql: str) -> list[tuple[Any, ...]]:
    """The rows of a query; none if it is refused. The server's log has it when the answer is there."""
    with client(replace(settings, clickhouse_database="default")) as own:
        try:
            return [tuple(row) for row in own.query(sql).result_rows]
        except DatabaseError:
            return []
        finally:
            own.command("SYSTEM FLUSH LOGS")


def test_the_log_of_queries_is_bounded(server: Settings) -> None:
    ask(server, "SELECT 1")
    sql = "SELECT create_table_query FROM system.tables WHERE database = 'system' AND name = 'query_log'"
    ((statement,),) = ask(server, sql)
    assert "TTL event_time + toIntervalHour(1) SETTINGS ttl_only_drop_parts = 1" in statement


def test_acknowledged_rows_survive_kills_and_the_server_comes_back_at_the_same_place(own: Settings) -> None:
    """What is left of writes during which it was restarted, nobody knows."""
    acknowledged: list[int] = []
    killed: list[int] = []
    with clickhouse(own, "pytest") as settings, closing(Store(settings)) as store:
        store.execute("CREATE DATABASE analytics", in_database=False)
        store.execute("CREATE TABLE load (n UInt64) ENGINE = ReplacingMergeTree ORDER BY n")
        for number in range(50):
            if number == 25:
                killed.append(server_pid(own.data_dir))
                # From another thread a moment later, so that it hits an insert in progress.
                threading.Timer(0.003, os.kill, (killed[-1], signal.SIGKILL)).start()
            try:
                store.insert("load", pl.DataFrame({"n": [number]}, schema={"n": pl.UInt64}))
                acknowledged.append(number)
            except StoreUnavailable:
                until(lambda: answers(settings))
        until(lambda: server_pid(own.data_dir) not in killed and answers(settings))
        with pytest.raises(StoreUnavailable, match=r"ClickHouse was restarted \(a run\)"), store.together("a run"):
            store.execute("CREATE DATABASE other", in_database=False)
            killed.append(server_pid(own.data_dir))
            os.kill(killed[-1], signal.SIGKILL)
            until(lambda: server_pid(own.data_dir) not in killed and answers(settings))
            # Its connection to the first one is broken.
            with suppress(StoreUnavailable):
                store.server_version()
        sql = "SELECT n FROM analytics.load FINAL ORDER BY n"
        status, body = asked(url_of(own.data_dir), sql, "analytics", read_password(own.data_dir / PASSWORD))
    assert status == 200
    assert len(acknowledged) >= 35
    assert set(acknowledged) <= {int(line) for line in body.split()}


def test_another_command_attaches_to_the_running_server_or_is_refused_in_plain_words(own: Settings) -> None:
    with clickhouse(own, "analytics-service up --bind 127.0.0.1:9999") as first:
        with clickhouse(own, "second") as second:
            assert second == first
        assert attach(own) == first
        assert answers(first)
        with pytest.raises(ProcessError) as refused, clickhouse(own, "another", attach=False):
            pass
    assert attach(own) is None
    message = str(refused.value)
    assert str(own.data_dir) in message
    assert f"process {os.getpid()} (`analytics-service up --bind 127.0.0.1:9999`)" in message
    assert "--data-dir" in message


def test_settings_with_a_url_are_left_alone(tmp_path: Path) -> None:
    named = Settings(clickhouse_url="http://127.0.0.1:1", data_dir=tmp_path / "none")
    with clickhouse(named, "pytest") as settings:
        assert settings is named
    assert not named.data_dir.exists()


def test_the_server_is_gone_after_the_block_even_when_that_fails_and_what_it_left_is_ignored(
    own: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that was killed leaves an announcement and temporary files behind. Its data and its environment are for the
    owner only."""
    announcement, left = own.data_dir / "running.json", own.data_dir / "clickhouse" / "tmp" / "left"
    monkeypatch.setenv("ANALYTICS_CLICKHOUSE_PASSWORD", "not to be told")
    with pytest.raises(KeyError), clickhouse(own, "pytest"):
        pid, announced = server_pid(own.data_dir), announcement.read_text("utf-8")
        environ = Path(f"/proc/{pid}/environ").read_text("utf-8")
        modes = {
            name: stat.S_IMODE((own.data_dir / name).stat().st_mode)
            for name in (".", "clickhouse", "password", "running.json", "lock")
        }
        left.write_text("half a sort", "utf-8")
        raise KeyError
    assert modes == {".": 0o700, "clickhouse": 0o700, "password": 0o600, "running.json": 0o600, "lock": 0o600}
    assert read_password(own.data_dir / PASSWORD) not in (own.data_dir / "clickhouse" / "users.xml").read_text("utf-8")
    assert "PATH=" in environ
    assert "not to be told" not in environ
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    announcement.write_text(announced, "utf-8")
    assert json.loads(announced)["pid"] == os.getpid()
    assert attach(own) is None
    brief = "analytics-service import price prices.csv"
    with clickhouse(own, brief) as settings:
        assert answers(settings)
        assert not left.exists()
        # The server of a command that does not go on ends with it.
        with pytest.raises(ProcessError, match=f"`{brief}`"), clickhouse(own, "another"):
            pass


def threads_of(pid: int) -> list[Path]:
    """The files that tell the state of each thread of a process (proc(5))."""
    return [thread / "stat" for thread in Path(f"/proc/{pid}/task").iterdir()]


def test_a_server_that_is_stopped_answers_no_ping_and_is_killed_and_restarted(
    own: Settings, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(EmbeddedServer, "silent_seconds", 3)
    with served(own.data_dir):
        port, stopped = configured(own.data_dir), server_pid(own.data_dir)
        assert port
        password = read_password(own.data_dir / PASSWORD)
        assert read_lost_writes(port, password) == 0
        assert read_lost_writes(port, "wrong") is None
        with pytest.raises(ConnectionRefusedError):
            read_lost_writes(free_port(), password)
        os.kill(stopped, signal.SIGSTOP)
        # It takes a moment until all of its threads have stopped.
        until(lambda: all(one.read_text().rpartition(")")[2].split()[0] == "T" for one in threads_of(stopped)))
        with pytest.raises(StoreUnavailable):
            read_lost_writes(port, password, 0.1)
        until(lambda: not alive(stopped))
        until(lambda: answers(own))
    assert "The embedded ClickHouse has not answered for 3 s." in caplog.text


def test_what_was_lost_on_a_full_disk_is_an_error_and_a_restart_goes_back_to_what_is_whole(
    own: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    """chdb itself takes a write that fails for done."""
    with clickhouse(own, "pytest") as settings, closing(Store(settings)) as store:
        migrate(store)
        store.execute("INSERT INTO market_price (asset_id, observed_at, price, version) VALUES ('a', 100, 7, 1)")
        full = server_pid(own.data_dir)
        resource.prlimit(full, resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))
        with pytest.raises(DiskFull):
            take_ownership(store, Owner(), Origin("simulated:1", simulated=True))
        until(lambda: server_pid(own.data_dir) != full and answers(settings))
        assert "The embedded ClickHouse could not write to its disk: free space on it." in caplog.text
        with client(settings) as asking:
            assert asking.query("SELECT asset_id, price FROM market_price").result_rows == [("a", 7)]
        take_ownership(store, read_owner(store), Origin("simulated:2", simulated=True))
        assert simulated_spec(read_owner(store).name) == "simulated:2"


@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, who can be another user")
def test_another_user_who_takes_the_port_of_a_killed_server_is_sent_nothing(own: Settings) -> None:
    """All who work with the server follow it to another port, those in other processes too."""
    with clickhouse(own, "pytest") as settings, closing(Store(settings)) as store:
        store.server_version()
        first = url_of(own.data_dir)
        os.kill(server_pid(own.data_dir), signal.SIGKILL)
        recorder = Recorder(urlsplit(first).port or 0)
        recorder.start()
        refusals = 0
        try:
            # The store connects to the recorder as long as nothing else is announced.
            while url_of(own.data_dir) == first:
                try:
                    store.server_version()
                except StoreUnavailable:
                    refusals += 1
                else:
                    # The server was announced between the look at its address and the question.
                    assert url_of(own.data_dir) != first
            until(lambda: answers(settings))
            assert store.server_version()
            environ = {**settings.to_environment(os.environ), "PYTHONPATH": os.pathsep.join(sys.path)}
            assert read_password(own.data_dir / PASSWORD) not in environ.values()
            other = subprocess.run([sys.executable, "-c", _ASKS], env=environ, check=True, capture_output=True)
            assert other.stdout.decode().strip() == store.server_version()
        finally:
            recorder.stop()
    assert refusals >= 2
    assert recorder.accepted >= refusals
    assert recorder.received == b""


def test_another_version_of_chdb_is_refused_in_plain_words(
    own: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tmp_path / "site" / "chdb_core-25.1.0.dist-info"
    other.mkdir(parents=True)
    (other / "METADATA").write_text("Metadata-Version: 2.1\nName: chdb-core\nVersion: 25.1.0\n", "utf-8")
    monkeypatch.setenv("PYTHONPATH", str(other.parent))
    with pytest.raises(ProcessError) as refused, clickhouse(own, "pytest"):
        pass
    message = str(refused.value)
    assert "chdb-core has version 25.1.0" in message
    assert "pip install 'analytics-service[embedded]'" in message
    assert "ANALYTICS_CLICKHOUSE_URL" in message


def test_a_folder_that_cannot_be_written_is_an_error_that_names_it_and_stays_free(tmp_path: Path) -> None:
    folder = DataFolder(tmp_path)
    folder.create()
    obstacle = tmp_path / "running.json"
    obstacle.mkdir()
    with pytest.raises(ProcessError, match="cannot be used"):
        folder.lock("pytest")
    assert not folder.locked()
    obstacle.rmdir()
    lock = folder.lock("pytest")
    assert lock is not None
    os.close(lock)
