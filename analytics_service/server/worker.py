"""A gunicorn worker in which no slow or silent client occupies a thread.

All threads wait for events of all connections. The thread that wakes reads what has arrived, and continues only with a
complete request. No thread blocks on a socket: unsent bytes wait until the client is ready.
"""

import errno
import os
import resource
import select
import socket
import struct
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from operator import attrgetter
from typing import Any

from gunicorn.http import get_parser
from gunicorn.http.errors import LimitRequestHeaders, LimitRequestLine, NoMoreData, ParseException
from gunicorn.sock import UnixSocket
from gunicorn.workers.gthread import ThreadWorker

from analytics_service.clickhouse.errors import ANY_FAILURE
from analytics_service.http.errors import malformed_request, new_request_id
from analytics_service.logs import REQUEST_ID

# Seconds within which a request's head must arrive, and a client must read some of its answer.
_PATIENCE = 10.0
# Seconds that a connection stays open after its last answer, so that the client can read it.
_LINGER = 2.0
# Seconds that clients have to read their answers when the worker stops.
_STOP_PATIENCE = 4.0
# At this limit, the connection with the nearest deadline is closed to make room. _OTHER_FILES are kept for other uses.
_MAX_CONNECTIONS, _OTHER_FILES = 8192, 512
# Bytes of an answer that the kernel may buffer, half of them overhead. By default it takes up to 4 MiB, and keeps them
# after the connection is closed.
_SEND_BUFFER = 2**18
# Bytes of unread answers, here and in the kernel. Above this limit, the slowest clients are cut off.
_MAX_UNSENT = 256 * 2**20
# Bytes of a request line with its headers, and of one read.
_LARGEST_HEAD = _READ_SIZE = 2**16
# A C `struct linger`: on, 0 seconds.
_DROP = struct.pack("ii", 1, 0)
_BODY_HEADERS = {"TRANSFER-ENCODING", "CONTENT-LENGTH"}
# Exceptions of gunicorn's parser, with the kind of error to answer.
_MALFORMED = (
    (LimitRequestLine, "uri_too_long"),
    (LimitRequestHeaders, "headers_too_large"),
    (ParseException, "request_malformed"),
)
_DEADLINE = attrgetter("deadline")
_READ = select.EPOLLIN | select.EPOLLONESHOT
_WRITE = select.EPOLLOUT | select.EPOLLONESHOT


class ClientConnection:
    """A client's non-blocking connection, with its received and unsent bytes. One thread at a time uses it.

    The connection is closed at `deadline` (monotonic seconds) unless it makes progress. gunicorn uses it like a socket,
    and knows `sock`, `client` and `server`.
    """

    def __init__(self, client_socket: socket.socket, client: object, cfg: Any) -> None:
        client_socket.setblocking(False)
        self.socket = client_socket
        self.fileno, self.getsockname = client_socket.fileno, client_socket.getsockname
        self.sock = self
        self.client = client
        self.server: object = client_socket.getsockname()
        self.busy = False
        self.deadline: float = time.monotonic() + cfg.keepalive
        self.ends_after_answer = self.is_ahead = self.is_draining = False
        self.parser = get_parser(cfg, self, client)
        # Bytes that the client has not taken yet.
        self.unsent = 0
        self._received = b""
        self._waiting: deque[memoryview] = deque()

    def recv(self, size: int) -> bytes:
        """The received bytes. Empty, which means the end, if gunicorn's parser asks for more after a malformed head."""
        received, self._received = self._received, b""
        return received

    def sendall(self, data: bytes) -> None:
        """Queue data for `flush`."""
        self._waiting.append(memoryview(data))
        self.unsent += len(data)

    def _ignore(self, *arguments: object) -> None:
        """Ignores gunicorn's interim answer 100, because the final answer follows at once (RFC 9110, 10.1.1), and its
        shutdown after a broken answer, because the worker first sends queued data."""

    send = shutdown = settimeout = close = _ignore

    def receive(self) -> bool:
        """Read received bytes; False if the client has closed the connection. The first bytes of a request's head set
        the deadline for the rest."""
        try:
            received = self.socket.recv(_READ_SIZE)
        except BlockingIOError:
            return True
        if received and not self.is_draining:
            if not self._received:
                self.deadline = time.monotonic() + _PATIENCE
            self._received += received
        return bool(received)

    def has_more(self) -> bool:
        """Whether bytes were received after the last request."""
        self._received = self.parser.unreader.take_buffered() + self._received
        return bool(self._received)

    def has_request(self) -> bool:
        """Whether a request's complete head was received. LimitRequestHeaders if it is too long."""
        if b"\r\n\r\n" in self._received:
            return True
        if len(self._received) > _LARGEST_HEAD:
            raise LimitRequestHeaders("the request's head is too long")
        return False

    def flush(self) -> None:
        """Send as much as the client takes now. Each byte taken renews the deadline."""
        while self._waiting:
            try:
                sent = self.socket.sendmsg(self._waiting)
            except BlockingIOError:
                return
            self.unsent -= sent
            self.deadline = time.monotonic() + _PATIENCE
            while self._waiting and sent >= len(self._waiting[0]):
                sent -= len(self._waiting.popleft())
            if sent:
                self._waiting[0] = self._waiting[0][sent:]

    def drain(self) -> None:
        """Close the sending side, and ignore further input. Closing both sides while the client still sends would reset
        the connection, and the client might lose the answer."""
        self.is_draining = True
        self.deadline = time.monotonic() + _LINGER
        self.socket.shutdown(socket.SHUT_WR)

    def end(self) -> None:
        """Close the socket. Drops the bytes that a client has not read: otherwise the kernel would keep them."""
        if self.unsent or self.is_ahead:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _DROP)
        self.socket.close()


class Worker(ThreadWorker):  # type: ignore[misc]
    """A worker whose threads share one epoll. Each event is delivered to one thread, which then owns the connection."""

    def run(self) -> None:
        """Serve until stopped. This thread only checks deadlines, so it is always free to notify gunicorn."""
        self._lock = threading.RLock()
        self._connections: dict[int, ClientConnection] = {}
        self._listeners = {listener.fileno(): listener for listener in self.sockets}
        # Raise the limit of open files as far as needed and allowed.
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        files = min(max(soft, _MAX_CONNECTIONS + _OTHER_FILES), hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (files, hard))
        self._max_connections = min(max(files - _OTHER_FILES, 1), _MAX_CONNECTIONS)
        self._epoll = select.epoll()
        self._ended = os.eventfd(0, os.EFD_NONBLOCK)
        self._epoll.register(self._ended, select.EPOLLIN)
        for listener in self.sockets:
            listener.setblocking(False)
            # Connections inherit these options. The time-out covers answers that only the kernel still holds.
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SEND_BUFFER // 2)
            if not isinstance(listener, UnixSocket):
                listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(1000 * _PATIENCE))
            self._epoll.register(listener, _READ)
        for _ in range(self.cfg.threads):
            threading.Thread(target=self._serve, daemon=True).start()
        while self.alive and self.is_parent_alive():
            self.notify()
            # gunicorn writes each signal to this pipe.
            if select.select([self.PIPE[0]], [], [], 1.0)[0]:
                os.read(self.PIPE[0], 4096)
            self._close_late()
        self._stop()

    def handle_exit(self, sig: int, frame: object) -> None:
        """SIGTERM: stop when the main thread wakes."""
        self.alive = False

    def handle_error(self, req: Any, client: ClientConnection, addr: object, exc: BaseException) -> None:
        """Answer a request that gunicorn cannot parse, or that failed outside the application."""
        kind = next((kind for raised, kind in _MALFORMED if isinstance(exc, raised)), "internal")
        # Other applications have no instruments.
        if (instruments := getattr(self.wsgi, "instruments", None)) is not None:
            instruments.unreadable(kind)
        request_id = new_request_id()
        if kind == "internal":
            token = REQUEST_ID.set(request_id)
            self.log.error("A request failed", exc_info=exc)
            REQUEST_ID.reset(token)
        client.sendall(malformed_request(kind, request_id, any_origin=getattr(self.wsgi, "any_origin", False)))

    def _stop(self) -> None:
        """Close the listeners, then wait for the connections: a client that has just connected or received an answer
        may be sending a request."""
        with self._lock:
            for number, listener in self._listeners.items():
                self._epoll.unregister(number)
                listener.close()
            self._listeners.clear()
        started = time.monotonic()
        while self._connections and time.monotonic() < started + self.cfg.graceful_timeout:
            with self._lock:
                for connection in self._connections.values():
                    is_answered = connection.unsent or connection.is_draining
                    last = started + (_STOP_PATIENCE if is_answered else _LINGER)
                    connection.deadline = min(connection.deadline, last)
            self._close_late()
            self.notify()
            time.sleep(0.05)
        os.eventfd_write(self._ended, 1)

    def _serve(self) -> None:
        while True:
            for number, _ in self._epoll.poll(maxevents=1):
                if number == self._ended:
                    return
                try:
                    self._act(number)
                except Exception:
                    self.log.exception("A thread failed")

    def _act(self, number: int) -> None:
        with self._lock:
            is_new = number in self._listeners
            connection = self._accepted(number) if is_new else self._connections.get(number)
            if connection is None or connection.busy:
                # Another worker was faster, or the connection is being closed.
                return
            connection.busy = True
        self._process(connection)

    def _accepted(self, number: int) -> ClientConnection | None:
        """A new connection of a listener, or None."""
        listener = self._listeners[number]
        try:
            accepted, client = listener.accept()
        except OSError as error:
            # The client has gone, or this process may open no more files.
            accepted, is_full = None, error.errno in (errno.EMFILE, errno.ENFILE)
        else:
            is_full = len(self._connections) >= self._max_connections
        if is_full:
            self._close_idle(lambda idle: sorted(idle, key=_DEADLINE)[:1])
        # Another thread may accept the next connection.
        self._epoll.modify(number, _READ)
        if accepted is None:
            return None
        connection = ClientConnection(accepted, client, self.cfg)
        self._connections[connection.fileno()] = connection
        # EPOLLONESHOT even without events: otherwise a broken connection would wake all threads repeatedly.
        self._epoll.register(connection, select.EPOLLONESHOT)
        return connection

    def _process(self, connection: ClientConnection) -> None:
        """Send, receive and answer what is possible now; then wait for the connection's next event, or close it."""
        stays_open = False
        try:
            stays_open = self._advance(connection)
        except OSError:
            pass
        except Exception:
            self.log.exception("A connection failed")
        if not stays_open:
            self._close(connection)
            return
        unsent = connection.unsent
        # A client with more requests waits for "writable", which is immediate, so it queues behind the other clients.
        events = _WRITE if unsent or connection.is_ahead else _READ
        with self._lock:
            connection.busy = False
            self._epoll.modify(connection, events)
        if unsent:
            self._close_idle(_excess)

    def _advance(self, connection: ClientConnection) -> bool:
        """Send and receive what is possible now, and answer a complete request. False if the connection has ended."""
        if connection.unsent:
            connection.flush()
        elif not (connection.is_ahead or connection.receive()):
            return False
        if not (connection.unsent or connection.ends_after_answer):
            connection.is_ahead = self._answer_next(connection)
            connection.flush()
        if connection.ends_after_answer and not connection.unsent and not connection.is_draining:
            connection.drain()
        return True

    def _answer_next(self, connection: ClientConnection) -> bool:
        """Answer the next request if its head is complete. True if the client stays and has sent more."""
        stays = False
        try:
            if not connection.has_request():
                return False
            request = next(connection.parser)
            if _BODY_HEADERS & {name for name, value in request.headers if value != "0"}:
                # No path takes a body, so the body is not read and the answer closes the connection.
                request.force_close()
            stays = self.handle_request(request, connection)
        except (NoMoreData, StopIteration):
            pass
        except ANY_FAILURE as error:
            self.handle_error(None, connection, connection.client, error)
        connection.ends_after_answer = not stays
        connection.deadline = time.monotonic() + max(self.cfg.keepalive, _PATIENCE)
        return stays and connection.has_more()

    def _close_late(self) -> None:
        now = time.monotonic()
        self._close_idle(lambda idle: [connection for connection in idle if connection.deadline <= now])

    def _close_idle(self, choose: Callable[[list[ClientConnection]], Iterable[ClientConnection]]) -> None:
        """Close the connections that `choose` selects from those that no thread uses."""
        with self._lock:
            for connection in choose([connection for connection in self._connections.values() if not connection.busy]):
                self._close(connection)

    def _close(self, connection: ClientConnection) -> None:
        with self._lock:
            del self._connections[connection.fileno()]
            # Closing also removes the connection from the epoll.
            connection.end()


def _excess(idle: list[ClientConnection]) -> Iterable[ClientConnection]:
    """The slowest clients, if unread answers take too much memory."""
    slow = sorted((connection for connection in idle if connection.unsent), key=_DEADLINE)
    excess = sum(connection.unsent + _SEND_BUFFER for connection in slow) - _MAX_UNSENT
    for connection in slow:
        if excess <= 0:
            return
        excess -= connection.unsent + _SEND_BUFFER
        yield connection
