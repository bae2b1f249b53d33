"""A liveness check of the embedded ClickHouse. Nothing here waits for the answer."""

import os
import socket
from contextlib import suppress
from urllib.parse import quote

from analytics_service.embedded.configuration import USER
from analytics_service.store.server import LOST_WRITES
from analytics_service.store.sockets import other_end

_CHUNK = 4096


class Ping:
    """Asks the server `pid`, a child of this process that listens on a port of this machine, how many of its writes
    were lost: `lost_writes`, 0 until that is known."""

    def __init__(self, port: int, pid: int, password: str) -> None:
        self.lost_writes = 0
        self._pid = pid
        request = f"GET /?log_queries=0&query={quote(LOST_WRITES)} HTTP/1.0"
        self._unsent = f"{request}\r\nX-ClickHouse-User: {USER}\r\nX-ClickHouse-Key: {password}\r\n\r\n".encode()
        self._received = b""
        self._socket = socket.socket()
        self._socket.setblocking(False)
        with suppress(OSError):
            self._socket.connect(("127.0.0.1", port))

    def answered(self) -> bool | None:
        """Whether the request was answered, be it with an error; None while that is undecided."""
        try:
            if self._unsent:
                # The password is for nobody else (rule 9.1).
                end = other_end(self._socket, 0)
                if end.uid != os.geteuid() or not end.is_open_in(self._pid):
                    return False
                self._socket.sendall(self._unsent)
                self._unsent = b""
            while chunk := self._socket.recv(_CHUNK):
                self._received += chunk
        except (BlockingIOError, TimeoutError):
            return None
        except OSError:
            return False
        head, _, body = self._received.partition(b"\r\n\r\n")
        self.lost_writes = int(body) if b" 200 " in head.partition(b"\r\n")[0] else 0
        return head.startswith(b"HTTP/1.")

    def close(self) -> None:
        """Close the connection."""
        self._socket.close()
