"""The shared metrics folder of a service's processes, created at its start and removed at its end."""

import fcntl
import os
import shutil
import tempfile
import time
from pathlib import Path

from prometheus_client.multiprocess import mark_process_dead

_PREFIX = "analytics-metrics-"
_LOCK = "lock"
# Seconds. A younger folder may not be locked yet, so it is not taken for abandoned.
_YOUNG = 60.0
_SHARED = Path("/dev/shm")  # noqa: S108 - our folders in it have random names
# A folder in memory, if there is one that may be written.
MEMORY = _SHARED if os.access(_SHARED, os.W_OK) else None


class MetricsFolder:
    """A new folder, and a lock on it that is held until this process and those it forked have ended.

    Folders whose processes were killed are removed by the next one.
    """

    def __init__(self, parent: Path | None = None) -> None:
        # Kept in memory where possible, because metrics need not survive and would cost disk writes.
        parent = parent or MEMORY or Path(tempfile.gettempdir())
        _remove_abandoned(parent)
        self.path = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=parent))
        self._lock = os.open(self.path / _LOCK, os.O_RDWR | os.O_CREAT, 0o600)
        fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def give_to(self, user: int, group: int) -> None:
        """Let processes of another user write to the folder."""
        os.chown(self.path, user, group)

    def forget(self, writer: str) -> None:
        """Remove the gauges of a process that has ended. Its counters stay."""
        mark_process_dead(writer, str(self.path))  # type: ignore[no-untyped-call]

    def close(self) -> None:
        """Remove the folder. Processes that still write to it lose what they count."""
        shutil.rmtree(self.path, ignore_errors=True)
        os.close(self._lock)


def _remove_abandoned(parent: Path) -> None:
    for folder in parent.glob(f"{_PREFIX}*"):
        try:
            if folder.lstat().st_mtime < time.time() - _YOUNG and _is_abandoned(folder):
                shutil.rmtree(folder, ignore_errors=True)
        except OSError:
            # It belongs to another user, or is gone.
            continue


def _is_abandoned(folder: Path) -> bool:
    # The folder may be another user's trap: a link, or a pipe that blocks when it is opened. The owner of the lock is
    # checked, not of the folder, which may have been given to the user of the workers.
    lock = os.open(folder / _LOCK, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        if os.fstat(lock).st_uid != os.geteuid():
            return False
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    finally:
        os.close(lock)
    return True
