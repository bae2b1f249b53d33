"""Metrics of gunicorn's workers: a folder for each arbiter, and files for each of its workers.

A worker's files are named after its slot, a number. A new worker takes a free slot and continues its files. So there
are files for as many workers as ran at the same time, and counters do not fall when a worker is replaced.
"""

import os
from itertools import count
from typing import Any

from analytics_service.http.instruments import FOLDER, WRITER
from analytics_service.run.metrics_folder import MetricsFolder


class WorkerMetrics:
    """The hooks of gunicorn that metrics need. They do nothing until `on_starting` was called."""

    def __init__(self) -> None:
        self._folder: MetricsFolder | None = None

    def on_starting(self, server: Any) -> None:
        """Give the arbiter its own folder, even if another arbiter started it."""
        self._folder = MetricsFolder()
        self._folder.give_to(server.cfg.uid, server.cfg.gid)
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
            self._folder.forget(str(getattr(worker, "metrics_slot", worker.pid)))

    def on_exit(self, server: Any) -> None:
        """Remove the folder."""
        if self._folder is not None:
            self._folder.close()
