"""Finds the embedded ClickHouse of a data folder: its address, process and password."""

import json
import re
from dataclasses import dataclass, field
from pathlib import Path

from analytics_service.config.settings import Settings
from analytics_service.errors import StoreUnavailable

RUNNING = "running.json"
PASSWORD = "password"
RESEARCHER_PASSWORD = "researcher-password"
# Counts writes to files that failed without an error (rule 9.5, lost writes).
LOST_WRITES = "SELECT sum(value) FROM system.events WHERE event = 'WriteBufferFromFileDescriptorWriteFailed'"
_START = "Unless it is being restarted, start one with `analytics-service up`, or set ANALYTICS_CLICKHOUSE_URL."
# Bytes that ClickHouse keeps free for definitions. With the 1 MiB that an INSERT reserves, DDL needs 64 MiB.
KEPT_FREE = 63 * 2**20
# The format of secrets.token_urlsafe(32).
_A_PASSWORD = re.compile(r"[A-Za-z0-9_-]{43}\n?")


@dataclass(frozen=True, slots=True)
class Running:
    """A running server, as announced by the process that holds its data folder. `pid` is this process, `server` the
    process that listens on `port` of 127.0.0.1."""

    pid: int
    server: int
    port: int
    user: str

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"


def native_port(port: int) -> int:
    """The native port of an embedded server with this HTTP port."""
    return port + 1


def read_running(folder: Path) -> Running | None:
    """The last announcement in a data folder; None if there is none, or if this version cannot read it."""
    try:
        return Running(**json.loads((folder / RUNNING).read_bytes() or b"null"))
    except (OSError, ValueError, TypeError):
        return None


def require_running(folder: Path) -> Running:
    """The server that is announced in a data folder. StoreUnavailable if there is none."""
    running = read_running(folder)
    if running is None:
        raise StoreUnavailable(f"No ClickHouse is running in {folder}. {_START}")
    return running


def read_password(path: Path) -> str:
    """The password in a file. StoreUnavailable if the file cannot be read or holds no password."""
    try:
        content = path.read_text("latin-1")
    except OSError as error:
        raise StoreUnavailable(f"The password file {path} cannot be read ({error.strerror}).") from error
    if not _A_PASSWORD.fullmatch(content):
        raise StoreUnavailable(
            f"The password file {path} holds no password. Stop the processes of this data folder and delete the file; "
            "the next start creates a new password."
        )
    return content.rstrip("\n")


@dataclass(frozen=True, slots=True)
class Server:
    """A ClickHouse and its credentials. With a data folder, it is the server that is announced there."""

    url: str
    user: str
    password: str = field(repr=False)
    data_folder: Path | None = None


def server_of(settings: Settings) -> Server:
    """The ClickHouse that settings name by URL, else the server of their data folder. StoreUnavailable if none runs
    there, or its password cannot be read."""
    if settings.clickhouse_url is not None:
        return Server(settings.clickhouse_url, settings.clickhouse_user, settings.clickhouse_password)
    folder = settings.data_dir.absolute()
    running = require_running(folder)
    return Server(running.url, running.user, read_password(folder / PASSWORD), folder)


def address_of(settings: Settings) -> str:
    """The URL of the ClickHouse that settings name; the data folder if none runs there."""
    running = read_running(settings.data_dir)
    return settings.clickhouse_url or (running.url if running else str(settings.data_dir))
