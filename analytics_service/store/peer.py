"""HTTP connections to the embedded ClickHouse. Nothing is sent before the listening process is verified (rule 9.1)."""

import socket
from pathlib import Path

from urllib3.connection import HTTPConnection

from analytics_service.errors import StoreUnavailable
from analytics_service.store.server import RUNNING, require_running
from analytics_service.store.sockets import other_end

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


def connection_to(folder: Path) -> type[HTTPConnection]:
    """Connections to the server that is announced in a data folder, whatever address they are given.

    Each new connection looks the server up again, so it finds a server that was restarted on another port.
    StoreUnavailable when there is none, or when another process listens there.
    """

    class Announced(HTTPConnection):
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
