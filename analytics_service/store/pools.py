"""Connections to ClickHouse: made here only, and cut all at once when it hangs."""

import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from weakref import WeakSet

from clickhouse_connect.driver.httputil import get_pool_manager
from urllib3 import HTTPConnectionPool, HTTPSConnectionPool, PoolManager
from urllib3.connection import HTTPConnection, HTTPSConnection

from analytics_service.config import Settings
from analytics_service.store.peer import connection_to


class Connections:
    """All connections of a process to ClickHouse, apart from those that only ask whether it answers.

    `before` is called before each is opened; what it raises keeps the connection from being opened.
    """

    def __init__(self, before: Callable[[], None]) -> None:
        self._before = before
        self._lock = threading.Lock()
        self._open: WeakSet[HTTPConnection] = WeakSet()

    def add(self, connection: HTTPConnection) -> None:
        """Called when a connection is about to be opened."""
        self._before()
        with self._lock:
            self._open.add(connection)

    def cut(self) -> None:
        """Have every thread that waits for an answer fail now. Later statements open connections of their own."""
        with self._lock:
            connections = list(self._open)
        for connection in connections:
            if isinstance(connection.sock, socket.socket):
                with suppress(OSError):
                    # A TLS socket's own method would wait for the other side.
                    socket.socket.shutdown(connection.sock, socket.SHUT_RDWR)


def pool_manager(settings: Settings, most: int, connections: Connections | None = None) -> PoolManager:
    """Pools that keep at most so many connections open for later statements. New ones are added to `connections`."""
    manager: PoolManager = get_pool_manager(
        ca_cert=settings.clickhouse_ca_cert, verify=settings.clickhouse_verify, maxsize=most, retries=False
    )
    embedded = settings.clickhouse_url is None
    plain = connection_to(settings.data_dir.absolute()) if embedded else HTTPConnection
    manager.pool_classes_by_scheme = {
        "http": _pool(HTTPConnectionPool, plain, connections),
        "https": _pool(HTTPSConnectionPool, HTTPSConnection, connections),
    }
    return manager


def _pool(
    pool: type[HTTPConnectionPool], connection: type[HTTPConnection], connections: Connections | None
) -> type[HTTPConnectionPool]:
    """A class of pools whose connections are told to `connections`."""

    class Told(connection):  # type: ignore[valid-type, misc]
        def connect(self) -> None:
            if connections is not None:
                connections.add(self)
            super().connect()

    return type("Pool", (pool,), {"ConnectionCls": Told})
