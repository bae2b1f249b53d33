"""The embedded ClickHouse as a program for a supervisor: its ports, readiness, liveness and reasons for ending."""

import logging
import os
import random
import socket
from contextlib import suppress
from pathlib import Path
from urllib.parse import quote

from analytics_service.clickhouse.running import LOST_WRITES, PASSWORD, RESEARCHER_PASSWORD, Running, native_port
from analytics_service.clickhouse.sockets import accepting_user
from analytics_service.config.settings import Settings
from analytics_service.embedded.child import UNUSABLE
from analytics_service.embedded.configuration import USER, Access, configured_port, write_configuration
from analytics_service.embedded.folder import DataFolder
from analytics_service.errors import AnalyticsError, EmbeddedServerError, SettingError
from analytics_service.supervisor import Child, Program, end_child, start_python

log = logging.getLogger(__name__)

_CHUNK = 4096
# HTTP has an even port, and the native protocol the next one. They are below the range that systems use for outgoing
# connections: a port of that range could be taken while the server restarts, even by a client that connects to itself.
_PORTS = range(20_000, 32_000, 2)
_PORT_TAKEN = "Address already in use"
# Beginnings of lines that the server prints at every start.
_STARTUP_LINES = ("Logging ", "Initializing subsystem")
# Environment variables that its Python needs.
_ENVIRONMENT = frozenset({"PATH", "HOME", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "PYTHONHOME", "PYTHONPATH"})


class Ping:
    """Asks a server of this user on a port of this machine how many of its writes were lost: `lost_writes`, None until
    it says so."""

    def __init__(self, port: int, password: str) -> None:
        self.lost_writes: int | None = None
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
                if accepting_user(self._socket, 0) != os.geteuid():
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
        if b" 200 " in head.partition(b"\r\n")[0] and body.strip().isdigit():
            self.lost_writes = int(body)
        return head.startswith(b"HTTP/1.")

    def close(self) -> None:
        """Close the connection."""
        self._socket.close()


class EmbeddedServer(Program):
    """A ClickHouse on two ports of 127.0.0.1: those of the settings, or those it had last if they are free."""

    name = "embedded ClickHouse"
    grace = 60.0
    # Opening many tables after a crash takes time.
    ready_seconds = 120.0
    silent_seconds = 20
    error = EmbeddedServerError

    def __init__(self, folder: DataFolder, lock: int, settings: Settings) -> None:
        self.where_logged = f"Its logs are in {folder.server}."
        self._folder = folder
        self._lock = lock
        passwords = folder.password(PASSWORD), folder.password(RESEARCHER_PASSWORD)
        self._access = Access(*passwords, settings.clickhouse_database)
        self._sql_port = settings.sql_port
        self._pid = 0
        self._ping: Ping | None = None
        # Writes that the running server has lost: until it was ready, and until now, once it has said so.
        self._lost_at_start = 0
        self._lost: int | None = None
        self._choose_port(SettingError)

    def launch(self) -> Child:
        """Start the server. Its standard output and error go to start.log."""
        # Its answers must not be taken for those of the one before.
        self._folder.announce(None)
        self._remove_cut_definitions()
        self._lost_at_start, self._lost = 0, None
        with self._output.open("wb") as output:
            child = start_python(
                ["-m", "analytics_service.embedded.child", str(self._folder.server)],
                # The environment can be read with SQL, and may hold secrets.
                {name: value for name, value in os.environ.items() if name in _ENVIRONMENT},
                output=output.fileno(),
                # The folder stays locked until the server is gone, even if this process is killed first.
                pass_fds=(self._lock,),
            )
        self._pid = child.pid
        return child

    def is_ready(self) -> bool:
        """Whether the server answers a query, and its address was announced to other processes. Not while the disk is
        full."""
        self.is_answering()
        if self._lost is None:
            return False
        self._lost_at_start = self._lost
        try:
            self._folder.announce(Running(os.getpid(), self._pid, self._port, USER))
        except OSError:
            return False
        return True

    def is_answering(self) -> bool:
        """Whether the server has answered a ping since the last call."""
        answered = self._ping.answered() if self._ping else True
        if answered is not None:
            if self._ping and self._ping.lost_writes is not None:
                self._lost = self._ping.lost_writes
            self.release()
            self._ping = Ping(self._port, self._access.password)
        return bool(answered)

    def fault(self) -> str:
        """Whether the server has lost writes since it was ready. Merged parts of tables may be broken then; at a start
        it sees that, and goes back to the parts that they were merged from, kept for eight minutes (rule 9.5)."""
        has_lost = self._lost is not None and self._lost > self._lost_at_start
        return "could not write to its disk: free space on it" if has_lost else ""

    def adapt(self) -> bool:
        """Choose other ports if another process took a port after it was found free. EmbeddedServerError if it took one
        of the settings."""
        if _PORT_TAKEN not in self._printed():
            return False
        self._choose_port()
        return True

    def ask_to_stop(self, child: Child) -> None:
        """Close the server's standard input, which makes it stop."""
        child.end_input()

    def release(self) -> None:
        """Close the current ping, if any."""
        if self._ping is not None:
            self._ping.close()
        self._ping = None

    def explain(self, code: int) -> str:
        """The way in which the server ended, and the last line that it printed."""
        printed = self._printed()
        if code == UNUSABLE:
            return f"The embedded ClickHouse cannot be started: {printed}"
        lines = [line for line in printed.splitlines() if not line.startswith(_STARTUP_LINES)]
        last = f"It printed {lines[-1][:500]!r}. " if lines else ""
        return f"The {self.name} {end_child(code)}. {last}{self.where_logged}"

    def _remove_cut_definitions(self) -> None:
        """Remove definitions without the line break at their end, with which the server would not start: a disk was
        full when they were made (rule 9.5). Nothing was written to what they define, and the next one who needs it
        makes it again."""
        data = self._folder.server / "data"
        for path in (*data.glob("metadata/*.sql"), *data.glob("store/*/*/*.sql")):
            if not path.read_bytes().endswith(b"\n"):
                log.warning("The definition %s was cut short on a full disk, and is removed.", path)
                path.unlink()
                # Of a database.
                path.with_suffix("").unlink(missing_ok=True)

    def _choose_port(self, refused: type[AnalyticsError] = EmbeddedServerError) -> None:
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
    """The one of a server's two ports on which nothing more can listen; None if both are free."""
    for either in (port, native_port(port)):
        try:
            socket.create_server(("127.0.0.1", either)).close()
        except OSError:
            return either
    return None


def _require_free(port: int, refused: type[AnalyticsError]) -> int:
    if (taken := _taken(port)) is not None:
        raise refused(
            f"ANALYTICS_SQL_PORT={port} is not usable, because nothing more can listen on port {taken} of 127.0.0.1. "
            f"Stop what uses it, or name another port; ClickHouse needs it and the next one."
        )
    return port


def _free_port() -> int:
    for port in random.SystemRandom().sample(_PORTS, k=len(_PORTS)):
        if _taken(port) is None:
            return port
    raise EmbeddedServerError(f"No two ports from {_PORTS.start} to {_PORTS.stop - 1} are free on 127.0.0.1.")
