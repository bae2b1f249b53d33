"""gunicorn under supervision. On the operator's order it is replaced instead of restarted."""

import logging
import os
import signal
import socket
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from io import FileIO
from queue import Empty, SimpleQueue

from analytics_service.config.settings import Settings
from analytics_service.server import handover
from analytics_service.server.address import listen, release
from analytics_service.supervisor import Child, Program, Replaceable, Restarts, Supervisor, start_python

log = logging.getLogger(__name__)

# Numbers of signals in the order in which the operator sent them; None when a part of the service has failed.
Orders = SimpleQueue[int | None]

_ARGUMENTS = ("-m", "gunicorn", "-c", "python:analytics_service.server.gunicorn_conf", "analytics_service.wsgi:app")
_LONGEST_WAIT = 1.0
_REPLACE = frozenset({signal.SIGHUP, signal.SIGUSR2})


def next_order(orders: Orders) -> int | None:
    """Wait for the next order. A signal that arrives just before a wait does not end it, so each wait is short."""
    while True:
        with suppress(Empty):
            return orders.get(timeout=_LONGEST_WAIT)


class HttpService(Replaceable):
    """gunicorn on sockets of this process, so that all its instances accept from the same queues of connections.

    Connections that one instance has not accepted when it ends are accepted by the next, so no client notices.
    `variables` are added to the instances' environment.
    """

    def __init__(self, settings: Settings, variables: Mapping[str, str] | None = None) -> None:
        self._sockets = [listen(bind, settings) for bind in settings.binds]
        environ = {**settings.to_environment(os.environ), **(variables or {})}
        # gunicorn ends after its workers.
        grace = settings.graceful_timeout + 5
        super().__init__(lambda: Supervisor(_Gunicorn(self._sockets, environ, grace), Restarts()))

    def follow(self, orders: Orders) -> None:
        """Follow orders until a part of the service has failed."""
        for number in iter(partial(next_order, orders), None):
            if number in _REPLACE:
                log.info("A new HTTP service takes over from the running one")
                self.replace()
            else:
                self.signal(number)

    def stop(self) -> None:
        """Close the sockets before gunicorn is stopped, so that no connection waits on them afterwards."""
        for listener in self._sockets:
            release(listener)
        super().stop()


class _Gunicorn(Program):
    """A gunicorn that is ready when each of its first workers is."""

    name = "HTTP service"
    # The workers' imports take seconds, more if there are more workers than processors.
    ready_seconds = 120.0

    def __init__(self, sockets: Sequence[socket.socket], environ: Mapping[str, str], grace: float) -> None:
        self.grace = grace
        self._sockets = sockets
        self._environ = environ
        self._reports: FileIO | None = None
        self._reported = b""

    def launch(self) -> Child:
        self._end_reports()
        ours, theirs = os.pipe()
        os.set_blocking(ours, False)
        self._reports, self._reported = FileIO(ours), b""
        listening = [listener.fileno() for listener in self._sockets]
        environ = {**self._environ, **handover.variables(listening, theirs)}
        try:
            return start_python(_ARGUMENTS, environ, pass_fds=(*listening, theirs))
        finally:
            os.close(theirs)

    def is_ready(self) -> bool:
        """Whether all first workers take requests."""
        if self._reports is not None:
            self._reported += self._reports.read(4096) or b""
        if not handover.all_ready(self._reported):
            return False
        self._end_reports()
        return True

    def obstacle(self) -> str:
        """Why a worker cannot answer from the store, so that this gunicorn must not take over; empty if all can."""
        return handover.obstacle(self._reported)

    def _end_reports(self) -> None:
        if self._reports is not None:
            self._reports.close()
            self._reports = None
