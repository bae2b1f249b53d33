"""`serve`: gunicorn as a supervised child process on sockets of this process."""

import logging
import os
import signal
import socket
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, closing, suppress
from queue import Empty, SimpleQueue
from typing import NoReturn

from analytics_service.clickhouse.connection import Store
from analytics_service.config.settings import Settings
from analytics_service.embedded.clickhouse import FOUND, clickhouse, runs_here
from analytics_service.errors import AnalyticsError
from analytics_service.http.api_keys import require_keys
from analytics_service.server.address import SOCKETS, connect_to, is_bound, release_socket
from analytics_service.store.migrations import migrate
from analytics_service.supervisor import Child, Program, Supervisor, run_children, start_python

log = logging.getLogger(__name__)

# Signal numbers in the order of their arrival.
Orders = SimpleQueue[int]

_ARGUMENTS = ("-m", "gunicorn", "-c", "python:analytics_service.server.gunicorn_conf", "analytics_service.wsgi:app")
# glibc and Polars' jemalloc return most freed memory. By default each thread has a heap of its own, which keeps as much
# as the largest page that it ever freed. A little is kept: allocating all of a page anew takes as long as encoding it.
_MEMORY = {
    "MALLOC_ARENA_MAX": "1",
    "MALLOC_MMAP_THRESHOLD_": "1048576",
    "MALLOC_TRIM_THRESHOLD_": "4194304",
    "_RJEM_MALLOC_CONF": "narenas:1,muzzy_decay_ms:0",
}
_LONGEST_WAIT = 1.0
_PROBE_SECONDS = 0.5


def serve(settings: Settings, command: str, orders: Orders) -> None:
    """Run gunicorn until this process is stopped. Start an embedded ClickHouse unless one already runs. If that is
    another command's, answers are 503 while it is away."""
    require_keys(settings)
    with ExitStack() as stack:
        sockets = stack.enter_context(is_bound(settings))
        reached = stack.enter_context(clickhouse(settings, command))
        if runs_here(reached):
            with closing(Store(reached)) as store:
                migrate(store, is_alone=True)
        service = HttpService(reached, sockets)
        stack.enter_context(run_children([service]))
        service.follow(orders)


def next_order(orders: Orders) -> int:
    """Wait for the next order. Each wait is short, because a signal that arrives just before it does not end it."""
    while True:
        with suppress(Empty):
            return orders.get(timeout=_LONGEST_WAIT)


class HttpService(Supervisor):
    """Runs gunicorn, and replaces it on HUP. New connections then wait in the sockets' queues.

    `variables` are added to gunicorn's environment.
    """

    def __init__(
        self, settings: Settings, sockets: Sequence[socket.socket], variables: Mapping[str, str] | None = None
    ) -> None:
        self._settings = settings
        self._sockets = sockets
        super().__init__(_Gunicorn(settings, [listener.fileno() for listener in sockets], variables or {}))

    def follow(self, orders: Orders) -> NoReturn:
        """Follow orders until an exception stops this process."""
        while True:
            number = next_order(orders)
            if number == signal.SIGHUP:
                self._reload()
            elif number in (signal.SIGUSR1, signal.SIGUSR2):
                log.warning("%s does nothing; HUP starts a new gunicorn.", signal.Signals(number).name)
            else:
                self.signal(number)

    def _reload(self) -> None:
        """Replace gunicorn, unless its file of API keys cannot be used."""
        try:
            require_keys(self._settings)
        except AnalyticsError as error:
            log.error("%s The running gunicorn continues.", error)
            return
        log.info("A new gunicorn starts; the old one finishes its requests.")
        self.replace()

    def stop(self) -> None:
        """Close the sockets before gunicorn, so that no new connection waits on them."""
        for listener, bind in zip(self._sockets, self._settings.binds, strict=True):
            release_socket(listener, bind)
        super().stop()


class _Gunicorn(Program):
    """A gunicorn that is ready when one of its workers answers."""

    name = "HTTP service"
    # Workers take seconds to import, longer if there are more workers than processors.
    ready_seconds = 120.0

    def __init__(self, settings: Settings, inherited: Sequence[int], variables: Mapping[str, str]) -> None:
        # gunicorn ends after its workers.
        self.grace = settings.graceful_timeout + 5
        self._bind = settings.bind
        self._inherited = inherited
        own = {FOUND: "true", SOCKETS: " ".join(map(str, inherited))}
        self._environ = {**_MEMORY, **settings.to_environment(os.environ), **variables, **own}

    def launch(self) -> Child:
        return start_python(_ARGUMENTS, self._environ, pass_fds=self._inherited)

    def answers(self) -> bool:
        """Whether a worker accepts a connection, and answers or closes it."""
        try:
            with connect_to(self._bind, _PROBE_SECONDS) as client:
                client.sendall(b"GET /healthz HTTP/1.0\r\n\r\n")
                client.recv(1)
        except OSError:
            return False
        return True
