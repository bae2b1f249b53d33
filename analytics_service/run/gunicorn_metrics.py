"""Metrics of gunicorn's workers: a folder for each arbiter, and files for each of its workers.

A worker's files are named after its place (a number) among the workers. A new worker in that place continues the files,
so there are never more of them than workers at a time need, and counters do not fall when a worker is replaced.
"""

import os
from itertools import count
from typing import Any

from analytics_service.http.instruments import FOLDER, WRITER
from analytics_service.run.metrics_folder import MetricsFolder


class WorkerMetrics:
    """What gunicorn's hooks of the same names do for metrics. Does nothing until it is started."""

    def __init__(self) -> None:
        self._folder: MetricsFolder | None = None

    def on_starting(self, server: Any) -> None:
        """Give each arbiter a folder of its own, even one that another arbiter has started."""
        self._folder = MetricsFolder()
        self._folder.give_to(server.cfg.uid, server.cfg.gid)
        os.environ[FOLDER] = str(self._folder.path)

    def pre_fork(self, server: Any, worker: Any) -> None:
        """Give the worker the first place that is free. Called in the arbiter."""
        taken = {getattr(other, "metrics_place", None) for other in server.WORKERS.values()}
        worker.metrics_place = next(place for place in count() if place not in taken)

    def post_fork(self, server: Any, worker: Any) -> None:
        """Name the files that the worker writes."""
        os.environ[WRITER] = str(getattr(worker, "metrics_place", os.getpid()))

    def child_exit(self, server: Any, worker: Any) -> None:
        """Forget the requests that a worker was answering, and its memory. Called in the arbiter."""
        if self._folder is not None:
            self._folder.forget(str(getattr(worker, "metrics_place", worker.pid)))

    def on_exit(self, server: Any) -> None:
        """Remove the folder."""
        if self._folder is not None:
            self._folder.close()
