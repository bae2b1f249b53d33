"""How people get to SQL: the addresses that are printed, and the user for them on a ClickHouse of one's own."""

import os
import re
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any
from urllib.parse import urlsplit

import clickhouse_connect
import pytest
import urllib3

from analytics_service.clickhouse.connection import Store
from analytics_service.clickhouse.running import RESEARCHER_PASSWORD, read_password, read_running
from analytics_service.config.settings import Settings
from analytics_service.embedded.folder import DataFolder
from analytics_service.embedded.server import EmbeddedServer
from analytics_service.errors import StoreFailure
from analytics_service.server.up import sql_addresses
from analytics_service.store.migrations import migrate
from analytics_service.store.researcher import fixed_settings, make_researcher, researcher_grants, researcher_script
from analytics_service.supervisor import Supervisor, run_children
from tests.clickhouse import hello
from tests.dictionary import DICTIONARY

_SECRET = "secret"
# Users as an operator's server has them: one who may do everything, and one with the grants of a researcher.
_USERS = """
        <admin>
            <password>{secret}</password>
            <access_management>1</access_management>
        </admin>
        <alice>
            <password>{secret}</password>
            <grants>{grants}</grants>
        </alice>
    </users>"""


@pytest.fixture(scope="module")
def server_of_ones_own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Settings]:
    """Settings with which an operator reaches a server that they run. It keeps no users but those of its file."""
    folder = DataFolder(tmp_path_factory.mktemp("own"))
    folder.create()
    lock = folder.lock("pytest")
    assert lock is not None
    server = EmbeddedServer(folder, lock, Settings())
    users = folder.server / "users.xml"
    grants = "".join(f"<query>{grant}</query>" for grant in researcher_grants("analytics.*"))
    users.write_text(
        users.read_text("utf-8").replace("    </users>", _USERS.format(secret=_SECRET, grants=grants)), "utf-8"
    )
    try:
        with run_children([Supervisor(server)]):
            announced = read_running(folder.root)
            assert announced
            own = Settings(
                data_dir=folder.root, clickhouse_url=announced.url, clickhouse_user="admin", clickhouse_password=_SECRET
            )
            with closing(Store(own)) as store:
                migrate(store)
                for sql in (
                    "INSERT INTO analytics.observation (history, observed_at, value) VALUES ('tvl', 1772323200, 1.5)",
                    "CREATE TABLE analytics.stored (a UInt8) ENGINE = MergeTree ORDER BY a",
                    "INSERT INTO analytics.stored VALUES (7)",
                    "CREATE VIEW analytics.shown AS SELECT a FROM analytics.stored",
                    "CREATE DATABASE hidden",
                    "CREATE TABLE hidden.stored (a UInt8) ENGINE = Memory",
                ):
                    store.execute(sql, in_database=False)
            yield own
    finally:
        os.close(lock)


def asked(server: Settings, user: str, sql: str) -> str:
    """The answer to a query of a user, or the error."""
    headers = {"X-ClickHouse-User": user, "X-ClickHouse-Key": _SECRET}
    return urllib3.request("POST", f"{server.clickhouse_url}/", body=sql, headers=headers).data.decode()


def test_a_researcher_reads_the_services_database(server_of_ones_own: Settings) -> None:
    for sql, answer in (
        ("SELECT a FROM analytics.shown", "7\n"),
        ("SELECT sum(number) FROM numbers(4)", "6\n"),
        ("SELECT DISTINCT database FROM system.tables WHERE database IN ('analytics', 'hidden')", "analytics\n"),
        ("SELECT count() > 0 FROM system.processes WHERE user = 'alice'", "1\n"),
    ):
        assert asked(server_of_ones_own, "alice", sql) == answer, sql


@pytest.mark.parametrize(
    "sql",
    [
        "INSERT INTO analytics.stored VALUES (1)",
        "ALTER TABLE analytics.stored DELETE WHERE 1",
        "CREATE TABLE research_a.x (a UInt8) ENGINE = MergeTree ORDER BY a",
        "CREATE TEMPORARY TABLE x (a UInt8)",
        "SELECT * FROM hidden.stored",
        "SELECT * FROM system.users",
        "SELECT * FROM system.grants",
        "SELECT * FROM url('http://127.0.0.1:1/', 'LineAsString')",
    ],
)
def test_a_researcher_may_do_nothing_else(server_of_ones_own: Settings, sql: str) -> None:
    answer = asked(server_of_ones_own, "alice", sql)
    assert answer.startswith("Code: 497."), answer


def test_clickhouse_understands_every_statement_that_makes_a_researcher(server_of_ones_own: Settings) -> None:
    """This server cannot store users, which it finds out last."""
    filled = {"user": "`bob`", "database": "`analytics`", "readable": "`analytics`.*", "hash": "0" * 64}
    fixed = ", ".join(
        f"{name}{'' if value is None else f' = {value}'} READONLY" for name, value in fixed_settings(10**9).items()
    )
    statements = researcher_script(**filled, threads="2", fixed=fixed, on_cluster="")
    assert len(statements) == 6
    for sql in statements:
        answer = asked(server_of_ones_own, "admin", sql)
        # No profile of that name, no user or role of that name, no place for another one.
        assert answer[:9] in ("Code: 180", "Code: 511", "Code: 514"), (sql, answer)


def test_a_researcher_who_cannot_be_made_is_an_error_that_says_why(server_of_ones_own: Settings) -> None:
    with closing(Store(server_of_ones_own)) as store:
        with pytest.raises(StoreFailure, match=r"bob could not be created\. .* no writeable access storage"):
            make_researcher(store, "bob")
        with pytest.raises(StoreFailure, match=r"has a user alice .* Choose another name"):
            make_researcher(store, "alice")


def test_printed_addresses_are_those_that_clients_take(server_of_ones_own: Settings) -> None:
    embedded = replace(server_of_ones_own, clickhouse_url=None)
    page, over_http, native, password = sql_addresses(embedded)
    file = embedded.data_dir / RESEARCHER_PASSWORD
    assert password == f"(the password is in {file})"
    dsn = over_http.removesuffix(" over HTTP")
    client = clickhouse_connect.get_client(dsn=dsn, password=read_password(file))
    try:
        row = client.query("SELECT currentUser(), currentDatabase()").first_row
    finally:
        client.close_connections()
        client.close()
    assert list(row) == ["researcher", "analytics"]
    parts = urlsplit(native.partition(" ")[0])
    assert (parts.scheme, parts.username, parts.path) == ("clickhouse", "researcher", "/analytics")
    # The server greets whom it lets in: the kind of its first packet is 0.
    assert hello(parts.port or 0, "researcher", read_password(file), "analytics")[:1] == b"\0"
    # The page takes both from its address.
    assert page.endswith("/play?user=researcher&database=analytics")
    script = urllib3.request("GET", page).data.decode()
    for name in ("user", "database"):
        assert f"searchParams.get('{name}')" in script


def test_the_lines_of_python_for_researchers_run_as_they_are(server_of_ones_own: Settings) -> None:
    folder = server_of_ones_own.data_dir
    (code,) = re.findall(
        r"^```python\n(.*?)^```$", DICTIONARY.with_name("README.md").read_text("utf-8"), re.MULTILINE | re.DOTALL
    )
    code = code.replace("DATA", str(folder)).replace("PORT", str(urlsplit(str(server_of_ones_own.clickhouse_url)).port))
    names: dict[str, Any] = {}
    exec(code, names)  # noqa: S102 - our own
    names["client"].close_connections()
    at, usd = datetime(2026, 3, 1, tzinfo=UTC), Decimal("1.5")
    assert names["polars_frame"].rows() == [(at, usd)]
    assert names["pandas_frame"].values.tolist() == [[at, usd]]
    assert names["highest"] == [(usd,)]


def test_a_server_of_ones_own_has_addresses_without_a_user() -> None:
    own = Settings(clickhouse_url="https://clickhouse.example:8443")
    page, over_http, user = sql_addresses(own)
    assert page == "https://clickhouse.example:8443/play?database=analytics"
    assert over_http == "https://clickhouse.example:8443/analytics over HTTP"
    assert "migrate --researcher NAME" in user
