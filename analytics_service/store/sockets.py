"""Connections, and the processes at their other ends.

Finds the process at the other end of a local TCP connection in Linux's /proc.

Nothing is sent to the embedded ClickHouse before the listening process is verified (rule 9.1).
"""

import http.client
import io
import os
import select
import socket
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from math import inf
from pathlib import Path
from typing import Any

from urllib3.connection import HTTPConnection, HTTPSConnection

from analytics_service.errors import StoreUnavailable
from analytics_service.market.share import remaining
from analytics_service.store.server import RUNNING, require_running

_PROC = Path("/proc")
_PAUSE_MS = 1
# A socket takes a time-out of 0 for none at all.
_LEAST_SECONDS = 0.001


@dataclass(frozen=True, slots=True)
class End:
    """One end of a connection: its owner's user id, and the inode of its socket."""

    uid: int
    inode: int

    def is_open_in(self, pid: int) -> bool:
        """Whether the process has the socket open. False for a process that this user may not inspect."""
        name = f"socket:[{self.inode}]"
        try:
            with os.scandir(_PROC / str(pid) / "fd") as files:
                return any(_target(file.path) == name for file in files)
        except OSError:
            return False


def other_end(connection: socket.socket, seconds: float) -> End:
    """The other end of an IPv4 connection on this machine, once it has been accepted.

    OSError when it is closed, or sends anything, before that; TimeoutError when it is not accepted in time.
    """
    local, remote = (_written(*connection.getsockname()), _written(*connection.getpeername()))
    deadline = time.monotonic() + seconds
    events = select.poll()
    events.register(connection, select.POLLIN)
    while True:
        # Reading the table takes some milliseconds; accepting takes less.
        if events.poll(_PAUSE_MS):
            raise ConnectionResetError("the connection was closed before it was accepted")
        for end in _ends(f" {remote} {local} "):
            # Before it is accepted, a connection has no inode, and its user id means nothing.
            if end.inode:
                return end
        if time.monotonic() > deadline:
            raise TimeoutError("the connection was not accepted")


def _ends(part: str) -> Iterator[End]:
    """The ends of connections whose rows in the table of TCP sockets contain `part`."""
    for line in (_PROC / "net" / "tcp").read_text("ascii").splitlines()[1:]:
        if part in line:
            _, _, _, _, _, _, _, uid, _, inode, *_ = line.split()
            yield End(int(uid), int(inode))


def _written(host: str, port: int) -> str:
    """An IPv4 address and a port in the notation of /proc/net/tcp."""
    return f"{int.from_bytes(socket.inet_aton(host), sys.byteorder):08X}:{port:04X}"


def _target(link: str) -> str:
    try:
        return str(Path(link).readlink())
    # Closed just now.
    except FileNotFoundError:
        return ""


# Seconds in which a server must accept a connection that has no time-out of its own.
_SECONDS = 5.0


def require_peer(connection: socket.socket, pid: int, uid: int, seconds: float) -> None:
    """StoreUnavailable unless the process `pid` of the user `uid` has accepted a connection on this machine."""
    try:
        end = other_end(connection, seconds)
    except OSError as error:
        raise StoreUnavailable(f"The embedded ClickHouse did not accept a connection ({error}).") from error
    if end.uid != uid or not end.is_open_in(pid):
        if not Path("/proc", str(pid)).exists():
            raise StoreUnavailable("The embedded ClickHouse has ended, and is restarted.")
        raise StoreUnavailable("Another process listens where the embedded ClickHouse did. It was sent nothing.")


class _Reads(io.RawIOBase):
    """What a connection receives until its time-out is over: a time-out of a socket holds for each read."""

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
    """An answer that ends when the time-out of its connection is over, however slowly its bytes come."""

    def __init__(self, sock: socket.socket, *arguments: Any, **options: Any) -> None:
        super().__init__(sock, *arguments, **options)
        self.fp = io.BufferedReader(_Reads(self.fp.detach(), sock))


class Connection(HTTPConnection):
    """A connection that has so many seconds to send each part of a body. By default it has those of connecting."""

    sending_seconds = 30.0
    response_class = _Response

    def request(self, *arguments: Any, **options: Any) -> None:
        """Send a request."""
        if self.is_closed:
            self.connect()
        self.timeout = remaining(self.sending_seconds)
        super().request(*arguments, **options)


class TlsConnection(Connection, HTTPSConnection):
    """The same with TLS."""


def connection_to(folder: Path) -> type[Connection]:
    """Connections to the server that is announced in a data folder, whatever address they are given.

    Each new connection looks the server up again, so it finds a server that was restarted on another port.
    StoreUnavailable when there is none, or when another process listens there.
    """

    class Announced(Connection):
        def connect(self) -> None:
            running = require_running(folder)
            self.host, self.port = "127.0.0.1", running.port
            super().connect()
            try:
                # Only the folder's owner can write there.
                uid = (folder / RUNNING).stat().st_uid
                require_peer(self.sock, running.server, uid, self.timeout or _SECONDS)
            except BaseException:
                # An open connection might be reused later without this check.
                self.close()
                raise

    return Announced
