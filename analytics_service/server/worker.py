"""A gunicorn worker in which no client, however slow or silent, occupies a thread.

All threads wait for events of all connections. The thread that wakes reads what has arrived, and goes on only with a
complete request. No thread blocks on a socket: bytes that a client does not take at once are sent when it is ready.
"""

import errno
import os
import resource
import select
import socket
import threading
import time
from typing import Any

from gunicorn.http.errors import LimitRequestHeaders, LimitRequestLine, NoMoreData, ParseException
from gunicorn.workers.gthread import ThreadWorker

from analytics_service.http.errors import malformed
from analytics_service.http.requests import new_request_id
from analytics_service.logs import REQUEST_ID
from analytics_service.server.connection import Connection
from analytics_service.store.retries import ANY_FAILURE

# Seconds within which a request's head must arrive, and within which a client must read some of its answer.
_PATIENCE = 10.0
# Seconds that a connection stays open after its last answer, so that the client reads it.
_LINGER = 2.0
# Seconds that clients have to read their answers when the worker stops.
_STOP_PATIENCE = 4.0
# Connections of a worker. At this limit, the connection with the nearest deadline is closed to make room.
_MAX_CONNECTIONS = 8192
# Bytes that the kernel may hold of an answer, half of them overhead. By default it takes up to 4 MiB, and keeps them
# after the connection is closed.
_SEND_BUFFER = 2**18
# Bytes of answers that clients have not read, here and in the kernel. Beyond this limit, the clients that made least
# progress are cut off.
_MAX_UNSENT = 256 * 2**20
# Allowance for open files other than clients' connections.
_OTHER_FILES = 512
# Exceptions of gunicorn's parser, and the kind of error to answer.
_MALFORMED = (
    (LimitRequestLine, "uri_too_long"),
    (LimitRequestHeaders, "headers_too_large"),
    (ParseException, "request_malformed"),
)
_READ = select.EPOLLIN | select.EPOLLONESHOT
_WRITE = select.EPOLLOUT | select.EPOLLONESHOT


class Worker(ThreadWorker):  # type: ignore[misc]
    """A worker whose threads share one epoll. Each event is delivered to one thread, which then owns the connection."""

    def run(self) -> None:
        """Serve until told to stop. This thread only checks deadlines, so it is always free to notify gunicorn."""
        if self.cfg.is_ssl:
            # TLS cannot be read in pieces like this; gunicorn's own worker does it.
            super().run()
            return
        self._lock = threading.Lock()
        self._connections: dict[int, Connection] = {}
        self._accepting = 0
        # By file descriptor, each with its address, which a closed socket no longer knows. These are plain sockets
        # instead of gunicorn's wrappers: accepting from a closed plain socket raises an OSError.
        self._listeners = {listener.fileno(): (listener.sock, listener.getsockname()) for listener in self.sockets}
        self._max_connections = _allowed_connections()
        self._epoll = select.epoll()
        self._ended = os.eventfd(0, os.EFD_NONBLOCK)
        self._epoll.register(self._ended, select.EPOLLIN)
        for listener in self.sockets:
            listener.setblocking(False)
            # Connections inherit these options. The time-out holds for answers that are with the kernel alone.
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SEND_BUFFER // 2)
            if listener.sock.family != socket.AF_UNIX:
                listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(1000 * _PATIENCE))
            self._epoll.register(listener, _READ)
        threads = [threading.Thread(target=self._serve, daemon=True) for _ in range(self.cfg.threads)]
        for thread in threads:
            thread.start()
        while self.alive and self.is_parent_alive():
            self._check_deadlines()
        self._stop()

    def handle_exit(self, sig: int, frame: object) -> None:
        """SIGTERM: stop. The main thread wakes, because gunicorn writes each signal to a pipe that it waits for."""
        self.alive = False

    def _check_deadlines(self) -> None:
        """Tell gunicorn that the worker is alive, and close late connections; about once a second."""
        self.notify()
        if select.select([self.PIPE[0]], [], [], 1.0)[0]:
            os.read(self.PIPE[0], 4096)
        self._close_late(time.monotonic())

    def _stop(self) -> None:
        with self._lock:
            self._listeners.clear()
        for listener in self.sockets:
            self._epoll.unregister(listener)
            listener.close()
        begun = time.monotonic()
        # A connection that a thread is accepting right now is not in `_connections` yet.
        while (self._connections or self._accepting) and time.monotonic() < begun + self.cfg.graceful_timeout:
            with self._lock:
                for connection in self._connections.values():
                    connection.deadline = min(connection.deadline, _last_moment(connection, begun))
            self._close_late(time.monotonic())
            self.notify()
            time.sleep(0.05)
        os.eventfd_write(self._ended, 1)

    def _close_late(self, now: float) -> None:
        with self._lock:
            idle = (connection for connection in self._connections.values() if not connection.busy)
            late = [connection for connection in idle if connection.deadline <= now]
            for connection in late:
                connection.busy = True
        for connection in late:
            self._close(connection)

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
            listener = self._listeners.get(number)
            self._accepting += listener is not None
        if listener is not None:
            try:
                self._accept(number, *listener)
            finally:
                with self._lock:
                    self._accepting -= 1
        elif (connection := self._claim(number)) is not None:
            self._go_on(connection)

    def _claim(self, number: int) -> Connection | None:
        """The connection of an event, unless it is being closed."""
        with self._lock:
            connection = self._connections.get(number)
            if connection is None or connection.busy:
                return None
            connection.busy = True
            return connection

    def _accept(self, number: int, listener: socket.socket, server: object) -> None:
        try:
            accepted, client = self._accepted(listener)
        finally:
            with self._lock:
                # Another thread may accept the next connection.
                if number in self._listeners:
                    self._epoll.modify(number, _READ)
        if accepted is not None:
            self._begin(Connection(accepted, client, server, self.cfg))

    def _accepted(self, listener: socket.socket) -> tuple[socket.socket | None, object]:
        try:
            return listener.accept()
        except OSError as error:
            # Another worker was faster, the client has gone, this worker stops, or this machine has no more files.
            if error.errno in (errno.EMFILE, errno.ENFILE):
                self.log.warning("No connection can be accepted: %s", error)
                time.sleep(0.1)
            return None, None

    def _begin(self, connection: Connection) -> None:
        connection.deadline = time.monotonic() + self.cfg.keepalive
        self._make_room()
        with self._lock:
            self._connections[connection.fileno()] = connection
        # EPOLLONESHOT even without events: otherwise a connection that breaks off would wake all threads repeatedly.
        self._epoll.register(connection, select.EPOLLONESHOT)
        self._go_on(connection)

    def _make_room(self) -> None:
        """If there are too many connections, close the idle connection with the nearest deadline."""
        with self._lock:
            if len(self._connections) < self._max_connections:
                return
            idle = (connection for connection in self._connections.values() if not connection.busy)
            first = min(idle, key=_deadline, default=None)
            if first is None:
                return
            first.busy = True
        self._close(first)

    def _go_on(self, connection: Connection) -> None:
        """Send, receive and answer what is possible now; then wait for the connection's next event, or close it."""
        try:
            goes_on = self._is_open_after(connection)
        except OSError:
            goes_on = False
        except Exception:
            self.log.exception("A connection failed")
            goes_on = False
        if goes_on:
            unsent = connection.unsent
            # Whoever sends many requests at once can be written to, so its next turn comes after all that wait now.
            events = _WRITE if unsent or connection.is_ahead else _READ
            with self._lock:
                connection.busy = False
                self._epoll.modify(connection, events)
            if unsent:
                self._bound_unsent()
        else:
            self._close(connection)

    def _is_open_after(self, connection: Connection) -> bool:
        """Send and receive what is possible now, and answer a request if one is complete. False at the end."""
        if connection.unsent:
            connection.flush(_PATIENCE)
        elif not (connection.is_ahead or connection.receive(_PATIENCE)):
            return False
        if not (connection.unsent or connection.ends_after_answer):
            connection.is_ahead = self._answer_next(connection)
            connection.flush(_PATIENCE)
        if connection.ends_after_answer and not connection.unsent and not connection.is_draining:
            connection.drain(_LINGER)
        return True

    def _answer_next(self, connection: Connection) -> bool:
        """Answer the next request if its head is complete. Whether its client has sent more, and stays."""
        stays = False
        try:
            if not connection.has_request():
                return False
            request = next(connection.parser)
            if _has_body(request):
                request.force_close()
            stays = self.handle_request(request, connection)
        except (NoMoreData, StopIteration):
            pass
        except ANY_FAILURE as error:
            self.handle_error(None, connection, connection.client, error)
        connection.requests += 1
        # A client that sends many requests at once waits for itself.
        connection.waited = 0.0
        connection.ends_after_answer = not stays
        connection.deadline = time.monotonic() + max(self.cfg.keepalive, _PATIENCE)
        return stays and connection.has_more()

    def handle_error(self, req: Any, client: Connection, addr: object, exc: BaseException) -> None:
        """Answer a request that gunicorn cannot parse, or that failed outside of the application."""
        kind = next((kind for raised, kind in _MALFORMED if isinstance(exc, raised)), "internal")
        # Other applications have no instruments.
        if (instruments := getattr(self.wsgi, "instruments", None)) is not None:
            instruments.unreadable(kind)
        request_id = new_request_id()
        if kind == "internal":
            token = REQUEST_ID.set(request_id)
            self.log.error("A request failed", exc_info=exc)
            REQUEST_ID.reset(token)
        client.sendall(malformed(kind, request_id, any_origin=getattr(self.wsgi, "any_origin", False)))

    def _bound_unsent(self) -> None:
        """Cut off the clients that make least progress, if unread answers take too much memory."""
        with self._lock:
            slow = [connection for connection in self._connections.values() if connection.unsent]
            waiting = sorted(slow, key=_deadline)
            excess = sum(connection.unsent + _SEND_BUFFER for connection in waiting) - _MAX_UNSENT
            cut_off = []
            for connection in waiting:
                if excess > 0 and not connection.busy:
                    excess -= connection.unsent + _SEND_BUFFER
                    connection.busy = True
                    cut_off.append(connection)
        for connection in cut_off:
            self._close(connection)

    def _close(self, connection: Connection) -> None:
        with self._lock:
            del self._connections[connection.fileno()]
        # This also removes it from the epoll.
        connection.end()


def _last_moment(connection: Connection, stop: float) -> float:
    """When a connection is closed at the latest if the worker was told to stop at the monotonic second `stop`."""
    if connection.unsent or connection.is_draining:
        return stop + _STOP_PATIENCE
    # A client that has just connected, or just received an answer, may be sending a request. Connections without a
    # request count from when they were opened, because browsers open connections in advance.
    return (stop if connection.requests else connection.opened) + _LINGER


def _deadline(connection: Connection) -> float:
    return connection.deadline


def _has_body(request: Any) -> bool:
    """Whether a body follows. No path takes a body, so it is not read, and the answer closes the connection."""
    return any(
        name == "TRANSFER-ENCODING" or (name == "CONTENT-LENGTH" and value != "0") for name, value in request.headers
    )


def _allowed_connections() -> int:
    """Raise the limit of open files as far as allowed. Returns how many connections the worker may have."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = _MAX_CONNECTIONS + _OTHER_FILES
    allowed = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
    if soft != resource.RLIM_INFINITY and soft < allowed:
        resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))
    return max(allowed - _OTHER_FILES, 1)
