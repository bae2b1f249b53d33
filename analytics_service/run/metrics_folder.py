"""The shared metrics folder of a service's processes, created at its start and removed at its end.

A worker's files are named after its slot, a number. A new worker takes a free slot and continues its files. So there
are files for as many workers as ran at the same time, and counters do not fall when a worker is replaced.
"""

import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any

from prometheus_client.multiprocess import mark_process_dead

from analytics_service.errors import ProcessError
from analytics_service.http.instruments import FOLDER, WRITER

_PREFIX = "analytics-metrics-"
_LOCK = "lock"
# Bytes that a folder may need: each process has three files of 1 MiB or more.
_ROOM = 16 * 2**20
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
        self.path = _new_in([parent] if parent else [*([MEMORY] if MEMORY else []), Path(tempfile.gettempdir())])
        self._lock = os.open(self.path / _LOCK, os.O_RDWR | os.O_CREAT, 0o600)
        fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def close(self) -> None:
        """Remove the folder. Processes that still write to it lose what they count."""
        shutil.rmtree(self.path, ignore_errors=True)
        os.close(self._lock)


class WorkerMetrics:
    """The hooks of gunicorn that metrics need. They do nothing until `on_starting` was called."""

    def __init__(self) -> None:
        self._folder: MetricsFolder | None = None

    def on_starting(self, server: Any) -> None:
        """Give the arbiter its own folder, even if another arbiter started it."""
        self._folder = MetricsFolder()
        os.chown(self._folder.path, server.cfg.uid, server.cfg.gid)
        os.environ[FOLDER] = str(self._folder.path)

    def pre_fork(self, server: Any, worker: Any) -> None:
        """Give the worker the first free slot. Called in the arbiter."""
        taken = {getattr(running, "metrics_slot", None) for running in server.WORKERS.values()}
        worker.metrics_slot = next(slot for slot in count() if slot not in taken)

    def post_fork(self, server: Any, worker: Any) -> None:
        """Name the files that the worker writes."""
        os.environ[WRITER] = str(getattr(worker, "metrics_slot", os.getpid()))

    def child_exit(self, server: Any, worker: Any) -> None:
        """Delete the gauges of a worker that has ended: requests in flight and memory. Called in the arbiter."""
        if self._folder is not None:
            slot = str(getattr(worker, "metrics_slot", worker.pid))
            mark_process_dead(slot, str(self._folder.path))  # type: ignore[no-untyped-call]

    def on_exit(self, server: Any) -> None:
        if self._folder is not None:
            self._folder.close()


def _new_in(parents: Sequence[Path]) -> Path:
    """A new folder in the first of these that has room: a process that writes to a full one is killed (SIGBUS)."""
    for parent in parents:
        _remove_abandoned(parent)
        with suppress(OSError):
            if shutil.disk_usage(parent).free >= _ROOM:
                return Path(tempfile.mkdtemp(prefix=_PREFIX, dir=parent))
    raise ProcessError(f"There is no room for metrics in {' or '.join(map(str, parents))}. Free space there.")


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
