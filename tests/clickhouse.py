"""Access to the tables that is independent of the service's own code."""

import socket
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

import clickhouse_connect
from clickhouse_connect.driver.client import Client

from analytics_service.clickhouse.running import Server, server_of
from analytics_service.config.settings import Settings

# Clients that nobody uses at the moment. Making one takes as long as ten queries, since it reads the server's settings.
_IDLE: dict[Server, list[Client]] = defaultdict(list)


def by_url(settings: Settings) -> Settings:
    """Settings that name the embedded ClickHouse of a data folder as they would any other: by URL and credentials."""
    server = server_of(settings)
    return replace(
        settings,
        clickhouse_url=server.url,
        clickhouse_user=server.user,
        clickhouse_password=server.password,
    )


@contextmanager
def client(settings: Settings) -> Iterator[Client]:
    """ClickHouse's own client, on the database that the settings name."""
    server = server_of(settings)
    idle = _IDLE[server]
    try:
        own = idle.pop()
    except IndexError:
        own = _connect(server)
    own.database = settings.clickhouse_database
    try:
        yield own
    finally:
        # The driver's shared pool would keep the connections open, and the server would wait for them when it stops.
        own.close_connections()
        idle.append(own)


def contents(own: Client) -> dict[str, Sequence[Sequence[object]]]:
    """Every row of every table of a client's database."""
    tables = own.query(
        "SELECT name, total_rows > 0 FROM system.tables WHERE database = currentDatabase() AND engine LIKE '%Tree'"
    )
    return {
        str(name): own.query(f"SELECT * FROM {name} FINAL ORDER BY ALL").result_rows if filled else []
        for name, filled in tables.result_rows
    }


def hello(port: int, user: str, password: str = "", database: str = "") -> bytes:
    """The beginning of the answer to the first packet of ClickHouse's own protocol. The packet's kind comes first."""

    def text(value: str) -> bytes:
        return bytes([len(value)]) + value.encode()

    # The packet's kind is 0. Its three numbers are the client's version, the last one of the protocol: 54058.
    client = b"\0" + text("pytest") + b"\1\1\xaa\xa6\x03"
    with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
        connection.sendall(client + text(database) + text(user) + text(password))
        return connection.recv(5, socket.MSG_WAITALL)


def _connect(server: Server) -> Client:
    return clickhouse_connect.get_client(
        dsn=server.url,
        username=server.user,
        password=server.password,
        database="default",
        # Whoever uses it next has nothing to do with temporary tables and settings of the one before.
        autogenerate_session_id=False,
        # Statements of benchmarks fill tables with millions of rows.
        send_receive_timeout=600,
        tz_mode="aware",
    )
