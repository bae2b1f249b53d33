"""The embedded ClickHouse as a supervised program: its ports, readiness, pings and reasons for ending."""

import logging
import os
import random
import socket
from concurrent.futures import Future
from contextlib import closing
from functools import partial
from http import HTTPStatus
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import quote

from analytics_service.clickhouse.running import LOST_WRITES, PASSWORD, RESEARCHER_PASSWORD, Running, native_port
from analytics_service.clickhouse.sockets import require_user
from analytics_service.concurrency import in_thread
from analytics_service.config.settings import Settings
from analytics_service.embedded.child import UNUSABLE
from analytics_service.embedded.configuration import USER, Access, configured_port, write_configuration
from analytics_service.embedded.folder import DataFolder
from analytics_service.errors import AnalyticsError, ProcessError, SettingError
from analytics_service.supervisor import Child, Program, end_child, start_python

log = logging.getLogger(__name__)

# Seconds in which a ping must be answered.
_PING_SECONDS = 20.0
# HTTP has an even port, the native protocol the next one. They are below the range of outgoing connections, which could
# take a port while the server restarts; a client could even connect to itself.
_PORTS = range(20_000, 32_000, 2)
_PORT_TAKEN = "Address already in use"
# Beginnings of lines that the server prints at every start.
_STARTUP_LINES = ("Logging ", "Initializing subsystem")
# Environment variables that the child process needs.
_ENVIRONMENT = frozenset({"PATH", "HOME", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "PYTHONHOME", "PYTHONPATH"})


def read_lost_writes(port: int, password: str, seconds: float = _PING_SECONDS) -> int | None:
    """The number of writes that this user's server on a local port has lost; None if it answers with an error.

    OSError, HTTPException or StoreUnavailable if it does not answer.
    """
    with closing(HTTPConnection("127.0.0.1", port, timeout=seconds)) as connection:
        connection.connect()
        # No other user may get the password (rule 9.1, verified listener).
        require_user(connection.sock, os.geteuid(), seconds)
        headers = {"X-ClickHouse-User": USER, "X-ClickHouse-Key": password}
        connection.request("GET", f"/?log_queries=0&query={quote(LOST_WRITES)}", headers=headers)
        answer = connection.getresponse()
        body = answer.read()
        return int(body) if answer.status == HTTPStatus.OK else None


class EmbeddedServer(Program):
    """A ClickHouse on two ports of 127.0.0.1: from the settings, else its last ports if they are free, else others."""

    name = "embedded ClickHouse"
    grace = 60.0
    # Opening many tables after a crash takes time.
    ready_seconds = 120.0
    silent_seconds = _PING_SECONDS

    def __init__(self, folder: DataFolder, lock: int, settings: Settings) -> None:
        self.where_logged = f"Its logs are in {folder.server}."
        self._folder = folder
        self._lock = lock
        passwords = folder.password(PASSWORD), folder.password(RESEARCHER_PASSWORD)
        self._access = Access(*passwords, settings.clickhouse_database)
        self._sql_port = settings.sql_port
        self._pid = 0
        self._ping: Future[int | None] | None = None
        # Writes that the running server had lost when it became ready (None: it is not), and has lost by now.
        self._lost_at_start: int | None = None
        self._lost = 0
        self._choose_port(SettingError)

    def launch(self) -> Child:
        """Start the server. Its standard output and error go to start.log."""
        # Nobody may take its answers for the previous server's.
        self._folder.announce(None)
        self._ping = self._lost_at_start = None
        with self._output.open("wb") as output:
            child = start_python(
                ["-m", "analytics_service.embedded.child", str(self._folder.server)],
                # SQL can read the environment, which may hold secrets.
                {name: value for name, value in os.environ.items() if name in _ENVIRONMENT},
                output=output.fileno(),
                # The folder stays locked until the server is gone, even if this process is killed first.
                pass_fds=(self._lock,),
            )
        self._pid = child.pid
        return child

    def answers(self) -> bool:
        """Whether the server has answered since the last call. At first, also whether it was announced to other
        processes, which a full disk prevents."""
        last = self._ping
        if last is not None and not last.done():
            return False
        self._ping = in_thread(partial(read_lost_writes, self._port, self._access.password))
        if last is None or last.exception() is not None:
            return False
        lost = last.result()
        if lost is None:
            return self._lost_at_start is not None
        self._lost = lost
        if self._lost_at_start is None:
            try:
                self._folder.announce(Running(os.getpid(), self._pid, self._port, USER))
            except OSError:
                return False
            self._lost_at_start = lost
        return True

    def fault(self) -> str:
        """A fault if the server has lost writes since it was ready. Merged parts of tables may then be broken; at a
        start, ClickHouse detects that and uses the parts before the merge, kept for eight minutes (rule 9.5, lost
        writes)."""
        has_lost = self._lost_at_start is not None and self._lost > self._lost_at_start
        return "could not write to its disk: free space on it" if has_lost else ""

    def adapt(self) -> bool:
        """Choose other ports if another process took a port meanwhile. ProcessError if the settings name it."""
        if _PORT_TAKEN not in self._printed():
            return False
        self._choose_port()
        return True

    def ask_to_stop(self, child: Child) -> None:
        child.end_input()

    def explain(self, code: int) -> str:
        """How the server ended, with the last line that it printed."""
        printed = self._printed()
        if code == UNUSABLE:
            return f"The embedded ClickHouse cannot be started: {printed}"
        lines = [line for line in printed.splitlines() if not line.startswith(_STARTUP_LINES)]
        last = f"It printed {lines[-1][:500]!r}. " if lines else ""
        return f"The {self.name} {end_child(code)}. {last}{self.where_logged}"

    def _choose_port(self, refused: type[AnalyticsError] = ProcessError) -> None:
        last = configured_port(self._folder.server)
        if self._sql_port is not None:
            self._port = _require_free(self._sql_port, refused)
        elif last is not None and _taken(last) is None:
            self._port = last
        else:
            self._port = _free_port()
        try:
            write_configuration(self._folder.server, self._port, self._access)
        except OSError as error:
            raise self._folder.unusable(error) from error

    @property
    def _output(self) -> Path:
        return self._folder.server / "start.log"

    def _printed(self) -> str:
        return self._output.read_text("utf-8", "replace").strip()


def _taken(port: int) -> int | None:
    """The first of a server's two ports that is taken; None if both are free."""
    for either in (port, native_port(port)):
        try:
            socket.create_server(("127.0.0.1", either)).close()
        except OSError:
            return either
    return None


def _require_free(port: int, refused: type[AnalyticsError]) -> int:
    if (taken := _taken(port)) is not None:
        raise refused(
            f"ANALYTICS_SQL_PORT={port} is not usable, because port {taken} of 127.0.0.1 is taken. "
            f"Stop what uses it, or name another port; ClickHouse also needs the next port."
        )
    return port


def _free_port() -> int:
    for port in random.SystemRandom().sample(_PORTS, k=len(_PORTS)):
        if _taken(port) is None:
            return port
    raise ProcessError(f"No two ports from {_PORTS.start} to {_PORTS.stop - 1} are free on 127.0.0.1.")
