"""The data folder of the embedded ClickHouse: its holder, its server's address and its passwords."""

import fcntl
import json
import logging
import os
import secrets
import stat
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from analytics_service.clickhouse.running import RUNNING, Running, read_password, read_running
from analytics_service.config.private_files import NewFile
from analytics_service.errors import ProcessError, SettingError, StoreUnavailable

log = logging.getLogger(__name__)

# Bytes of a record. Records are written in place, which needs no more space on a full disk.
_RECORD_BYTES = 1024
# The mode of files that only their owner may read.
_PRIVATE = 0o600
# A link could lead to another program's file, and opening a pipe would block.
_OPEN_FLAGS = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC

# Commands that run until they are stopped.
_PROGRAM, _SERVICES = "analytics-service ", ("up", "serve", "jobs run")


@dataclass(frozen=True, slots=True)
class FolderHolder:
    """The process that holds a data folder, with its HTTP address if it serves HTTP, and its configured source."""

    pid: int
    command: str
    bind: str = ""
    source: str | None = None

    @property
    def is_brief(self) -> bool:
        """Whether its command ends by itself, and with it the server, which no other command should rely on."""
        name = self.command.removeprefix(_PROGRAM)
        return name != self.command and not name.startswith(_SERVICES)

    @property
    def alive(self) -> bool:
        """Whether a process with this id exists."""
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return False
        except PermissionError:
            return True
        return True


class DataFolder:
    """The paths and small files of a data folder. Only its owner can read them."""

    def __init__(self, root: Path) -> None:
        self.root = root.absolute()
        self.server = self.root / "clickhouse"
        # Where `backup` and `restore` work, on ClickHouse's disk `backups`.
        self.unfinished = self.server / "data" / "backups" / "unfinished"
        self._lock = self.root / "lock"
        self._running = self.root / RUNNING

    def create(self) -> None:
        """Create the folders. ProcessError if this user cannot use them, SettingError if others could.

        Only this user may write to its folders. Others may still read the root, which may hold other files, but not
        ClickHouse's folder.
        """
        try:
            for folder, forbidden in ((self.root, 0o022), (self.server, 0o077)):
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)
                self._require_trusted(folder)
                _forbid(folder, forbidden)
        except OSError as error:
            raise self.unusable(error) from error

    def _require_trusted(self, folder: Path) -> None:
        """SettingError for a folder that every user may write to, or that belongs to another user."""
        status, user = folder.stat(), os.geteuid()
        # A container's volume belongs to root, who may do everything anyway, or to a user of the host.
        is_own = status.st_uid == user or (folder == self.root and 0 in (status.st_uid, user))
        # Root may attach to the server of a service's user. It may not start one: that user could not use root's files.
        is_own = is_own or (user == 0 and self.locked())
        if status.st_mode & stat.S_IWOTH or not is_own:
            raise SettingError(
                f"The folder {folder} must belong to this user and not be writable by others; its owner is user "
                f"{status.st_uid}, its mode {stat.S_IMODE(status.st_mode):04o}. Run this command as the owner (as "
                "root: `runuser -u USER -- ...`), or `chmod 700` the folder if nobody has changed anything there, or "
                "name another one with --data-dir or ANALYTICS_DATA_DIR."
            )

    def unusable(self, error: OSError) -> ProcessError:
        """The error for an operation in the folder that the system refused."""
        return ProcessError(
            f"The data folder {self.root} cannot be used ({error.strerror}). Make it usable for this user, or name "
            "another folder with --data-dir or ANALYTICS_DATA_DIR."
        )

    def has_data(self) -> bool:
        """Whether a server has ever run in the folder. ProcessError if this user may not read it."""
        try:
            return self.server.is_dir() and any(self.server.iterdir())
        except OSError as error:
            raise self.unusable(error) from error

    def lock(self, command: str, bind: str = "", source: str | None = None) -> int | None:
        """A file descriptor that locks the folder until it is closed; None if another process holds the lock.

        ProcessError if the system refuses.
        """
        try:
            descriptor = os.open(self._lock, os.O_RDWR | os.O_CREAT | _OPEN_FLAGS, _PRIVATE)
        except OSError as error:
            raise self.unusable(error) from error
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            return None
        try:
            self.announce(None)
            _record(descriptor, FolderHolder(os.getpid(), command, bind, source))
        except OSError as error:
            os.close(descriptor)
            raise self.unusable(error) from error
        return descriptor

    def locked(self) -> bool:
        """Whether a process holds the folder now. ProcessError if the system refuses the check."""
        try:
            with os.fdopen(os.open(self._lock, os.O_RDONLY | _OPEN_FLAGS), "rb") as file:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except FileNotFoundError:
            return False
        except BlockingIOError:
            return True
        except OSError as error:
            raise self.unusable(error) from error
        return False

    def holder(self) -> FolderHolder | None:
        """The last process that locked the folder; None while its record is being written."""
        content = self._lock.read_text("utf-8")
        if not content:
            return None
        # The file may be from another version, with more or fewer fields.
        record = json.loads(content)
        return FolderHolder(
            **{field.name: record[field.name] for field in fields(FolderHolder) if field.name in record}
        )

    def running(self) -> Running | None:
        """The server of the folder's holder; None until it answers."""
        holder, running = self.holder(), read_running(self.root)
        return running if running and holder and running.pid == holder.pid else None

    def announce(self, running: Running | None) -> None:
        """Record for other processes how to reach the server; None if there is none."""
        descriptor = os.open(self._running, os.O_WRONLY | os.O_CREAT | _OPEN_FLAGS, _PRIVATE)
        try:
            _record(descriptor, running)
        finally:
            os.close(descriptor)

    def password(self, name: str) -> str:
        """The password in a file of the folder, which the first call creates. Only for the holder of the lock.

        The file is made private. ProcessError if it cannot be read or is malformed.
        """
        path = self.root / name
        try:
            if not path.exists():
                with NewFile(path, _PRIVATE) as new:
                    new.file.write(secrets.token_urlsafe(32).encode())
                    new.keep()
            mode = stat.S_IMODE(path.stat().st_mode)
            if mode != _PRIVATE:
                path.chmod(_PRIVATE)
                log.warning("Changed the mode of %s from %04o to 0600, for its owner only.", path, mode)
            return read_password(path)
        except OSError as error:
            raise ProcessError(f"The password file {path} cannot be used ({error.strerror}).") from error
        except StoreUnavailable as error:
            raise ProcessError(str(error)) from error


def _forbid(folder: Path, forbidden: int) -> None:
    """Remove these rights from a folder of this user. Kubernetes grants some to a volume's group."""
    status = folder.stat()
    mode = stat.S_IMODE(status.st_mode)
    if status.st_uid == os.geteuid() and mode & forbidden:
        folder.chmod(mode & ~forbidden)
        log.warning("Changed the mode of %s from %04o to %04o.", folder, mode, mode & ~forbidden)


def _record(descriptor: int, record: FolderHolder | Running | None) -> None:
    """Write a record, or null, in place."""
    content = json.dumps(asdict(record) if record else None).encode()
    os.pwrite(descriptor, content.ljust(_RECORD_BYTES), 0)
    os.ftruncate(descriptor, max(len(content), _RECORD_BYTES))
