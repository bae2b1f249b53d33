"""The data folder of the embedded ClickHouse: who holds it, where its server answers, its password."""

import fcntl
import json
import os
import secrets
from dataclasses import asdict, dataclass
from pathlib import Path

from analytics_service.errors import EmbeddedServerError


@dataclass(frozen=True, slots=True)
class Holder:
    """The process that holds a data folder."""

    pid: int
    command: str

    @property
    def alive(self) -> bool:
        """Whether a process with that id exists."""
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return False
        except PermissionError:
            return True
        return True


@dataclass(frozen=True, slots=True)
class Running:
    """How other commands of the same user reach the server in a data folder."""

    pid: int
    url: str
    user: str


class DataFolder:
    """Paths and small files of a data folder. Only its owner can read them."""

    def __init__(self, root: Path) -> None:
        self.root = root.absolute()
        self.server = self.root / "clickhouse"
        self._lock = self.root / "lock"
        self._running = self.root / "running.json"
        self._password = self.root / "password"

    def create(self) -> None:
        """Create the folders. EmbeddedServerError when the system refuses."""
        try:
            for folder in (self.root, self.server):
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            if not os.access(self.root, os.W_OK | os.X_OK):
                raise PermissionError(13, "Permission denied")
        except OSError as error:
            raise EmbeddedServerError(
                f"The data folder {self.root} cannot be used ({error.strerror}). "
                "Name another one with --data-dir or ANALYTICS_DATA_DIR."
            ) from error

    def has_data(self) -> bool:
        """Whether a server has ever run in the folder."""
        return self.server.is_dir() and any(self.server.iterdir())

    def lock(self, command: str) -> int | None:
        """A file descriptor that locks the folder until it is closed; None when another process holds the lock."""
        descriptor = os.open(self._lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            return None
        _write_private(self._running, "")
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, json.dumps(asdict(Holder(os.getpid(), command))).encode(), 0)
        return descriptor

    def locked(self) -> bool:
        """Whether some process holds the folder now."""
        if not self._lock.exists():
            return False
        with self._lock.open("rb") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                return True
        return False

    def holder(self) -> Holder | None:
        """The process that locked the folder last; None while that is being written."""
        content = self._lock.read_text("utf-8")
        return Holder(**json.loads(content)) if content else None

    def running(self) -> Running | None:
        """The server of the folder's holder, once it answers."""
        holder = self.holder()
        content = self._running.read_text("utf-8") if self._running.exists() else ""
        running = Running(**json.loads(content)) if content else None
        return running if running and holder and running.pid == holder.pid else None

    def announce(self, running: Running | None) -> None:
        """Tell other commands how to reach the server, or that there is none."""
        _write_private(self._running, json.dumps(asdict(running)) if running else "")

    def password(self) -> str:
        """The password of the service's user, created by the first call, which must hold the lock."""
        if not self._password.exists():
            _write_private(self._password, secrets.token_urlsafe(32))
        return self._password.read_text("utf-8")


def _write_private(path: Path, content: str) -> None:
    """Replace a file at once. Only its owner can ever read it."""
    new = path.with_name(path.name + ".new")
    descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    new.replace(path)
