"""A liveness check of the embedded ClickHouse. Nothing here waits for the answer."""

import socket
from contextlib import suppress

_REQUEST = b"GET /ping HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n"
_ANSWER = b"HTTP/1.1 200"


class Ping:
    """A request without credentials, to a port of this machine on which a child of this process listens."""

    def __init__(self, port: int) -> None:
        self._socket = socket.socket()
        self._socket.setblocking(False)
        self._unsent = _REQUEST
        with suppress(OSError):
            self._socket.connect(("127.0.0.1", port))

    def answered(self) -> bool | None:
        """Whether the request was answered; None while that is undecided."""
        try:
            if self._unsent:
                self._socket.sendall(self._unsent)
                self._unsent = b""
            return self._socket.recv(len(_ANSWER)) == _ANSWER
        except BlockingIOError:
            return None
        except OSError:
            return False

    def close(self) -> None:
        """Close the connection."""
        self._socket.close()
