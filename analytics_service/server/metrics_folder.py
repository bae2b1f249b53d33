"""The folders that processes write metrics to, made at the start of a service and removed at its end.

A worker's files are named after its slot, a number. A new worker takes a free slot and continues its files. So there
are files for as many workers as ran at the same time, and counters do not fall when a worker is replaced.
"""

import os
import shutil
import tempfile
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any

from prometheus_client.multiprocess import mark_process_dead

from analytics_service.errors import ProcessError
from analytics_service.http.instruments import FOLDER, WRITER

# Bytes that a folder may need: each process has three files of 1 MiB or more.
_ROOM = 16 * 2**20
_SHARED = Path("/dev/shm")  # noqa: S108 - our folders in it have random names
# A folder in memory, if there is one that may be written.
MEMORY = _SHARED if os.access(_SHARED, os.W_OK) else None


def new_folder() -> Path:
    """A new folder where there is room: a process that writes to a full one is killed (SIGBUS).

    One whose process is killed stays. It takes some kilobytes until the machine is started again.
    """
    # In memory where possible, because metrics need not survive and would cost disk writes.
    parents = [*([MEMORY] if MEMORY else []), Path(tempfile.gettempdir())]
    for parent in parents:
        with suppress(OSError):
            if shutil.disk_usage(parent).free >= _ROOM:
                return Path(tempfile.mkdtemp(prefix="analytics-metrics-", dir=parent))
    raise ProcessError(f"There is no room for metrics in {' or '.join(map(str, parents))}. Free space there.")


class WorkerMetrics:
    """The hooks of gunicorn that metrics need. They do nothing until `on_starting` was called."""

    def __init__(self) -> None:
        self._folder: Path | None = None

    def on_starting(self, server: Any) -> None:
        """Give the arbiter its own folder, even if another arbiter started it."""
        self._folder = new_folder()
        os.chown(self._folder, server.cfg.uid, server.cfg.gid)
        os.environ[FOLDER] = str(self._folder)

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
            mark_process_dead(slot, str(self._folder))  # type: ignore[no-untyped-call]

    def on_exit(self, server: Any) -> None:
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
