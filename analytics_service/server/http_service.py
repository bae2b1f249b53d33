"""gunicorn as a supervised child, on listening sockets of this process."""

import logging
import os
import signal
import socket
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from queue import Empty, SimpleQueue

from analytics_service.config.settings import Settings
from analytics_service.errors import AnalyticsError
from analytics_service.http.api_keys import require_keys
from analytics_service.server.address import SOCKETS, connected, listen, release
from analytics_service.supervisor import Child, Program, Supervisor, start_python

log = logging.getLogger(__name__)

# Numbers of signals in the order in which the operator sent them; None when a part of the service has failed.
Orders = SimpleQueue[int | None]

_ARGUMENTS = ("-m", "gunicorn", "-c", "python:analytics_service.server.gunicorn_conf", "analytics_service.wsgi:app")
_LONGEST_WAIT = 1.0
_PROBE_SECONDS = 0.5


def next_order(orders: Orders) -> int | None:
    """Wait for the next order. A signal that arrives just before a wait does not end it, so each wait is short."""
    while True:
        with suppress(Empty):
            return orders.get(timeout=_LONGEST_WAIT)


class HttpService(Supervisor):
    """gunicorn, replaced on HUP. Connections that arrive meanwhile wait in the sockets' queues.

    `variables` are added to its environment.
    """

    def __init__(self, settings: Settings, variables: Mapping[str, str] | None = None) -> None:
        self._settings = settings
        self._sockets = [listen(bind, settings) for bind in settings.binds]
        super().__init__(_Gunicorn(self._sockets, settings, variables or {}))

    def follow(self, orders: Orders) -> None:
        """Follow orders until a part of the service has failed."""
        for number in iter(partial(next_order, orders), None):
            if number == signal.SIGHUP:
                self._reload()
            elif number == signal.SIGUSR2:
                log.warning("USR2 does nothing; HUP starts a new gunicorn.")
            else:
                self.signal(number)

    def _reload(self) -> None:
        """Replace gunicorn, unless the new one could not start for its keys."""
        try:
            require_keys(self._settings)
        except AnalyticsError as error:
            log.error("%s The running gunicorn goes on.", error)
            return
        log.info("A new gunicorn starts, and the running one finishes its requests.")
        self.replace()

    def stop(self) -> None:
        """Close the sockets before gunicorn is stopped, so that no connection waits on them afterwards."""
        for listener in self._sockets:
            release(listener)
        super().stop()


class _Gunicorn(Program):
    """A gunicorn that is ready when one of its workers answers."""

    name = "HTTP service"
    # The workers' imports take seconds, more if there are more workers than processors.
    ready_seconds = 120.0

    def __init__(self, sockets: Sequence[socket.socket], settings: Settings, variables: Mapping[str, str]) -> None:
        # gunicorn ends after its workers.
        self.grace = settings.graceful_timeout + 5
        self._bind = settings.bind
        self._inherited = [listener.fileno() for listener in sockets]
        inherited = {SOCKETS: " ".join(map(str, self._inherited))}
        self._environ = {**settings.to_environment(os.environ), **variables, **inherited}

    def launch(self) -> Child:
        return start_python(_ARGUMENTS, self._environ, pass_fds=self._inherited)

    def is_ready(self) -> bool:
        """Whether anybody takes a connection, and answers or closes it."""
        try:
            with connected(self._bind, _PROBE_SECONDS) as client:
                client.sendall(b"GET /healthz HTTP/1.0\r\n\r\n")
                client.recv(1)
        except OSError:
            return False
        return True
