"""The embedded ClickHouse: a child process that is started, watched, restarted and taken down with its command."""

import http.client
import logging
import os
import random
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from analytics_service import supervised
from analytics_service.config import Settings
from analytics_service.errors import EmbeddedServerError
from analytics_service.restarts import Restarts
from analytics_service.store.embedded_child import UNUSABLE
from analytics_service.store.embedded_config import USER, Ports, write_configuration
from analytics_service.store.embedded_folder import DataFolder, Holder, Running

log = logging.getLogger(__name__)

# Opening many tables after a crash takes time; a server that hangs must not block its command for ever.
_READY_SECONDS = 120.0
_STOP_SECONDS = 60.0
# How long a server without a supervisor, or one that is starting, may need before the folder is given up on.
_PATIENCE = 30.0
_PORTS = range(20_000, 32_000)
_PORT_ATTEMPTS = 3
_PORT_TAKEN = "Address already in use"
# What the server says at every start.
_CHATTER = ("Logging ", "Initializing subsystem")


@contextmanager
def clickhouse(
    settings: Settings, command: str, *, attach: bool = True, on_failure: Callable[[], None] = lambda: None
) -> Iterator[Settings]:
    """Settings that name a running ClickHouse, for the duration of the block.

    The server that ANALYTICS_CLICKHOUSE_URL names, or the one that another process of this user runs in the data
    folder, or one started here, named after `command` and stopped at the end. With `attach` false another process's
    is an EmbeddedServerError. `on_failure` is called, in a thread of its own, when a server started here died and
    does not come back; the block's end then raises EmbeddedServerError.
    """
    if settings.clickhouse_url is not None:
        yield settings
        return
    folder = DataFolder(settings.data_dir)
    folder.create()
    lock = _lock(folder, command, attach)
    if lock is None:
        yield _reaching(settings, folder)
        return
    try:
        server = EmbeddedServer(folder, lock, on_failure, Restarts())
        try:
            server.start()
            folder.announce(Running(os.getpid(), server.url, USER))
            yield _reaching(settings, folder)
        finally:
            folder.announce(None)
            server.stop()
            if server.failure is not None:
                raise server.failure
    finally:
        os.close(lock)


def attached(settings: Settings) -> Settings | None:
    """Settings that name a ClickHouse that runs already, by URL or by another process; None when there is none."""
    if settings.clickhouse_url is not None:
        return settings
    folder = DataFolder(settings.data_dir)
    return _reaching(settings, folder) if folder.locked() and folder.running() else None


def _lock(folder: DataFolder, command: str, attach: bool) -> int | None:
    """The folder's lock; None when another process's server may be attached to."""
    deadline = time.monotonic() + _PATIENCE
    while True:
        lock = folder.lock(command)
        if lock is not None:
            return lock
        holder = folder.holder()
        if holder is not None and holder.alive:
            if not attach:
                raise EmbeddedServerError(_taken(folder, holder))
            if folder.running() is not None:
                return None
        # The holder is starting, or its server outlives it for a moment.
        if time.monotonic() > deadline:
            raise EmbeddedServerError(_taken(folder, holder))
        time.sleep(0.05)


def _taken(folder: DataFolder, holder: Holder | None) -> str:
    who = f"process {holder.pid} (`{holder.command}`)" if holder else "another process"
    stop = f" with `kill {holder.pid}`" if holder else ""
    return (
        f"The data folder {folder.root} is in use by {who}. "
        f"Stop that{stop}, or name another folder with --data-dir or ANALYTICS_DATA_DIR."
    )


def _reaching(settings: Settings, folder: DataFolder) -> Settings:
    running = folder.running()
    if running is None:
        raise EmbeddedServerError(f"The ClickHouse in {folder.root} was stopped just now. Try again.")
    return replace(
        settings,
        clickhouse_url=running.url,
        clickhouse_user=running.user,
        clickhouse_password=folder.password(),
    )


class EmbeddedServer:
    """A ClickHouse in a child process, on ports of 127.0.0.1 that stay the same when it is restarted."""

    def __init__(self, folder: DataFolder, lock: int, on_failure: Callable[[], None], restarts: Restarts) -> None:
        self.failure: EmbeddedServerError | None = None
        self._folder = folder
        self._lock = lock
        self._on_failure = on_failure
        self._restarts = restarts
        self._password = folder.password()
        self._ports = _free_ports()
        self._child: subprocess.Popen[bytes] | None = None
        self._stopping = threading.Event()
        # Held while a child is started, so that stop() never misses one.
        self._launching = threading.Lock()
        self._watcher = threading.Thread(target=self._watch, name="clickhouse-watcher", daemon=True)

    @property
    def url(self) -> str:
        """Where the server answers HTTP."""
        return f"http://127.0.0.1:{self._ports.http}"

    def start(self) -> None:
        """Return when the server answers. EmbeddedServerError, in plain words, when it does not come up."""
        for attempt in range(1, _PORT_ATTEMPTS + 1):
            write_configuration(self._folder.server, self._ports, self._password)
            try:
                self._wait_ready(self._launch())
                break
            except EmbeddedServerError:
                # Another process may take a port between the moment it was found free and now.
                if attempt == _PORT_ATTEMPTS or _PORT_TAKEN not in self._said():
                    raise
                self._ports = _free_ports()
        self._watcher.start()

    def stop(self) -> None:
        """Return when the server is gone. Ends it cleanly, and by force after a minute."""
        self._stopping.set()
        with self._launching:
            child = self._child
        if child is None or child.stdin is None:
            return
        child.stdin.close()
        try:
            child.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            log.warning("ClickHouse (process %d) did not stop in %d s; it is killed.", child.pid, _STOP_SECONDS)
            child.kill()
            child.wait()
        if self._watcher.ident is not None:
            self._watcher.join()

    def _launch(self) -> "subprocess.Popen[bytes]":
        with self._launching, self._output.open("wb") as output:
            if self._stopping.is_set():
                raise EmbeddedServerError("ClickHouse is being stopped.")
            self._child = supervised.python(
                ["-m", "analytics_service.store.embedded_child", str(self._folder.server)],
                os.environ,
                output=output.fileno(),
                # The folder stays taken until the server is gone, even if this process is killed before.
                pass_fds=(self._lock,),
            )
            return self._child

    def _wait_ready(self, child: "subprocess.Popen[bytes]") -> None:
        deadline = time.monotonic() + _READY_SECONDS
        while not self._answers():
            if child.poll() is not None:
                raise EmbeddedServerError(self._why(child.returncode))
            if time.monotonic() > deadline:
                child.kill()
                raise EmbeddedServerError(
                    f"The embedded ClickHouse did not answer in {_READY_SECONDS:.0f} s. Its log is {self._output}."
                )
            if self._stopping.wait(0.02):
                return

    def _answers(self) -> bool:
        connection = http.client.HTTPConnection("127.0.0.1", self._ports.http, timeout=5)
        who = {"X-ClickHouse-User": USER, "X-ClickHouse-Key": self._password}
        try:
            connection.request("GET", "/?query=SELECT%201", headers=who)
            return connection.getresponse().read() == b"1\n"
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()

    def _watch(self) -> None:
        """Restart the server each time it ends by itself, until stop() or too many failures in a row."""
        started = time.monotonic()
        while self._child is not None and self._child.stdin is not None:
            code = self._child.wait()
            if self._stopping.is_set():
                return
            self._child.stdin.close()
            log.error("%s", self._why(code))
            delay = self._restarts.next_delay(time.monotonic() - started)
            if delay is None or code == UNUSABLE:
                self._give_up(code)
                return
            if self._stopping.wait(delay):
                return
            started = time.monotonic()
            self._restart()

    def _restart(self) -> None:
        try:
            self._wait_ready(self._launch())
        except (EmbeddedServerError, OSError) as error:
            # The caller counts it, as the child's end.
            if not self._stopping.is_set():
                log.error("ClickHouse was not restarted: %s", error)
            return
        if not self._stopping.is_set():
            log.warning("ClickHouse was restarted at %s.", self.url)

    def _give_up(self, code: int) -> None:
        self.failure = EmbeddedServerError(f"ClickHouse was restarted in vain; giving up. {self._why(code)}")
        self._on_failure()

    @property
    def _output(self) -> Path:
        return self._folder.server / "start.log"

    def _said(self) -> str:
        return self._output.read_text("utf-8", "replace").strip()

    def _why(self, code: int) -> str:
        said = self._said()
        if code == UNUSABLE:
            return f"The embedded ClickHouse cannot be started: {said}"
        how = f"was killed by signal {-code}" if code < 0 else f"ended with exit code {code}"
        lines = [line for line in said.splitlines() if not line.startswith(_CHATTER)]
        last = f"It said: {lines[-1][:500]} " if lines else ""
        return f"The embedded ClickHouse {how}. {last}Its logs are in {self._folder.server}."


def _free_ports() -> Ports:
    """Two ports that nothing listens on, below those that systems lend to outgoing connections.

    A lent one could be taken while the server restarts, even by a client that connects to itself.
    """
    free: list[int] = []
    for port in random.SystemRandom().sample(_PORTS, k=len(_PORTS)):
        with socket.socket() as listening:
            try:
                listening.bind(("127.0.0.1", port))
            except OSError:
                continue
        free.append(port)
        if len(free) == 2:
            return Ports(http=free[0], tcp=free[1])
    raise EmbeddedServerError(f"No port from {_PORTS.start} to {_PORTS.stop - 1} is free on 127.0.0.1.")
