"""A client's connection that never blocks: buffers of received and of unsent bytes."""

import socket
import struct
import sys
import time
from collections import deque
from typing import Any

from gunicorn.http import get_parser
from gunicorn.http.errors import LimitRequestHeaders

_END_OF_HEAD = b"\r\n\r\n"
# Bytes of a request line with its headers.
_LARGEST_HEAD = 2**16
# Bytes of its answer that a client must take to renew the deadline.
_PROGRESS = 2**14
_READ_SIZE = 2**16
# Where the milliseconds since data last arrived are in a C struct tcp_info.
_LAST_DATA_RECEIVED = 52
# A C struct linger: on, with 0 seconds.
_DROP = struct.pack("ii", 1, 0)


class Connection:
    """A connection, used by one thread at a time.

    `deadline` is the monotonic second at which it is closed unless it makes progress. `sock`, `client` and `server` are
    gunicorn's names; gunicorn reads and writes the connection as if it were a socket.
    """

    def __init__(self, client_socket: socket.socket, client: object, server: object, cfg: Any) -> None:
        client_socket.setblocking(False)
        self.socket = client_socket
        self._number = client_socket.fileno()
        self.client = client
        self.server = server
        self.busy = True
        self.opened = time.monotonic()
        self.deadline = 0.0
        self.requests = 0
        self.ends_after_answer = False
        self.is_ahead = False
        self.is_draining = False
        self.waited = 0.0
        """Seconds for which what was received last had waited for a thread."""
        self.parser = get_parser(cfg, self, client)
        self.unsent = 0
        """Bytes that the client has not taken yet."""
        self._received = b""
        self._waiting: deque[memoryview] = deque()
        self._taken = 0

    @property
    def sock(self) -> "Connection":
        """Itself, in place of the socket."""
        return self

    def fileno(self) -> int:
        """The socket's file descriptor, which identifies the connection. It stays known after the socket is closed."""
        return self._number

    def getsockname(self) -> object:
        """The address of the listener that accepted the connection."""
        return self.server

    def recv(self, size: int) -> bytes:
        """The bytes that were received and not read yet. If a malformed head makes gunicorn's parser ask for more, they
        are empty, which means the end."""
        received, self._received = self._received, b""
        return received

    def sendall(self, data: bytes) -> None:
        """Queue data, which `flush` sends."""
        self._waiting.append(memoryview(data))
        self.unsent += len(data)

    def send(self, data: bytes) -> None:
        """Ignore gunicorn's interim answer 100: no request body is read, and the final answer follows at once (RFC
        9110, 10.1.1)."""

    def shutdown(self, how: int) -> None:
        """Ignore gunicorn, which does this when an answer breaks off: the worker first sends what is queued."""

    def settimeout(self, seconds: float) -> None:
        """Ignore gunicorn, for the same reason."""

    def close(self) -> None:
        """Ignore gunicorn, for the same reason."""

    def receive(self, patience: float) -> bool:
        """Read what the client has sent. Its first bytes set the deadline for the rest of a request's head. False when
        the client has closed the connection."""
        try:
            received = self.socket.recv(_READ_SIZE)
        except BlockingIOError:
            return True
        if not self.is_draining:
            self.waited = self._seconds_since_arrival()
            if received and not self._received:
                self.deadline = time.monotonic() + patience
            self._received += received
        return bool(received)

    def _seconds_since_arrival(self) -> float:
        """How long ago bytes last arrived, as Linux knows; 0 at a Unix socket, of which it does not."""
        if self.socket.family == socket.AF_UNIX or sys.platform != "linux":
            return 0.0
        facts = self.socket.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _LAST_DATA_RECEIVED + 4)
        (milliseconds,) = struct.unpack_from("I", facts, _LAST_DATA_RECEIVED)
        return float(milliseconds) / 1000

    def has_more(self) -> bool:
        """Whether anything was received after the last request."""
        self._received = self.parser.unreader.take_buffered() + self._received
        return bool(self._received)

    def has_request(self) -> bool:
        """Whether a complete head was received. LimitRequestHeaders if it is too long."""
        if _END_OF_HEAD in self._received:
            return True
        if len(self._received) > _LARGEST_HEAD:
            raise LimitRequestHeaders("the request's head is too long")
        return False

    def flush(self, patience: float) -> None:
        """Send as much as the client takes now. Each 16 KiB that it takes renew the deadline."""
        while self._waiting:
            try:
                sent = self.socket.sendmsg(self._waiting)
            except BlockingIOError:
                return
            self.unsent -= sent
            self._taken += sent
            if self._taken >= _PROGRESS:
                self._taken, self.deadline = 0, time.monotonic() + patience
            while self._waiting and sent >= len(self._waiting[0]):
                sent -= len(self._waiting.popleft())
            if sent:
                self._waiting[0] = self._waiting[0][sent:]

    def drain(self, patience: float) -> None:
        """Close the sending side, and ignore further input. Closing the connection while the client still sends would
        reset it, and the client might lose the answer."""
        self.is_draining = True
        self.deadline = time.monotonic() + patience
        self.socket.shutdown(socket.SHUT_WR)

    def end(self) -> None:
        """Close the socket. What a client that is cut off has not taken is dropped: the kernel would keep its part,
        even a whole answer if the next request waits for that to be taken."""
        if self.unsent or self.is_ahead:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _DROP)
        self.socket.close()
