"""Connections to ClickHouse. Before anything is sent to the embedded server, Linux's /proc must show that the listening
process belongs to the right user (rule 9.1, verified listener)."""

import http.client
import io
import select
import socket
import sys
import time
from math import inf
from pathlib import Path
from typing import Any

from urllib3.connection import HTTPConnection, HTTPSConnection

from analytics_service.clickhouse.running import RUNNING, require_running
from analytics_service.concurrency import cap_timeout
from analytics_service.errors import StoreUnavailable

_TCP_SOCKETS = Path("/proc/net/tcp")
# Pauses between looks at the table: accepting takes less than the first, and a hanging server may take long.
_PAUSES_MS = (1, 64)
# A time-out of 0 would make a socket non-blocking.
_LEAST_SECONDS = 0.001
# Seconds for accepting a connection that has no time-out of its own.
_SECONDS = 5.0
# Seconds for sending each part of a body.
_SENDING_SECONDS = 60.0


def accepting_user(connection: socket.socket, seconds: float) -> int:
    """The user id of the process that has accepted an IPv4 connection on this machine. OSError if the connection is
    closed, or receives anything, before that; TimeoutError if it is not accepted in time."""
    ends = f" {_written(*connection.getpeername())} {_written(*connection.getsockname())} "
    deadline = time.monotonic() + seconds
    events = select.poll()
    events.register(connection, select.POLLIN)
    pause, longest = _PAUSES_MS
    while True:
        if events.poll(pause):
            raise ConnectionResetError("the connection was closed before it was accepted")
        for line in _TCP_SOCKETS.read_text("ascii").splitlines():
            if ends in line:
                _, _, _, _, _, _, _, uid, _, inode, *_ = line.split()
                # Before a connection is accepted, it has no inode, and its user id means nothing.
                if int(inode):
                    return int(uid)
        if time.monotonic() > deadline:
            raise TimeoutError("the connection was not accepted")
        pause = min(2 * pause, longest)


def _written(host: str, port: int) -> str:
    """An IPv4 address and a port in the notation of /proc/net/tcp."""
    return f"{int.from_bytes(socket.inet_aton(host), sys.byteorder):08X}:{port:04X}"


def require_user(connection: socket.socket, uid: int, seconds: float) -> None:
    """StoreUnavailable unless a process of the user `uid` has accepted a connection on this machine."""
    try:
        accepting = accepting_user(connection, seconds)
    except OSError as error:
        raise StoreUnavailable(f"The embedded ClickHouse did not accept a connection ({error}).") from error
    if accepting != uid:
        raise StoreUnavailable(
            "A process of another user listens on the port of the embedded ClickHouse. Nothing was sent to it."
        )


class _Reads(io.RawIOBase):
    """Bounds all reads of a connection by its time-out; a socket's time-out bounds each read by itself."""

    def __init__(self, reads: io.RawIOBase, connection: socket.socket) -> None:
        self._reads, self._connection = reads, connection
        self._ends_at = time.monotonic() + (connection.gettimeout() or inf)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        self._connection.settimeout(max(self._ends_at - time.monotonic(), _LEAST_SECONDS))
        return self._reads.readinto(buffer)

    def close(self) -> None:
        self._reads.close()
        super().close()


class _Response(http.client.HTTPResponse):
    """A response that must end within its connection's time-out, however slowly bytes arrive."""

    def __init__(self, sock: socket.socket, *arguments: Any, **options: Any) -> None:
        super().__init__(sock, *arguments, **options)
        self.fp = io.BufferedReader(_Reads(self.fp.detach(), sock))


class Connection(HTTPConnection):
    """A connection with a longer time-out for sending than for connecting: a busy server takes rows slowly."""

    response_class = _Response

    def request(self, *arguments: Any, **options: Any) -> None:
        if self.is_closed:
            self.connect()
        self.timeout = cap_timeout(_SENDING_SECONDS)
        super().request(*arguments, **options)


class TlsConnection(Connection, HTTPSConnection):
    """A connection with TLS."""


def connection_to(folder: Path) -> type[Connection]:
    """Connections to the server that is announced in a data folder, whatever address they are given. Each connection
    looks the server up, so it finds a server that was restarted on another port. StoreUnavailable if there is none, or
    if a process of another user listens there."""

    class Announced(Connection):
        def connect(self) -> None:
            running = require_running(folder)
            self.host, self.port = "127.0.0.1", running.port
            super().connect()
            try:
                # Only the folder's owner can write there.
                uid = (folder / RUNNING).stat().st_uid
                require_user(self.sock, uid, self.timeout or _SECONDS)
            except BaseException:
                # An open connection might be reused later without this check.
                self.close()
                raise

    return Announced
