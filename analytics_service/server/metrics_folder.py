"""Folders for the metrics of processes, made at the start of a service and removed at its end.

A worker's files are named after its slot, a number. A new worker takes a free slot and continues its files, so counters
do not fall when a worker is replaced, and there are never more files than workers that ran at once.
"""

import os
import shutil
import tempfile
from itertools import count
from typing import Any

from prometheus_client.multiprocess import mark_process_dead

from analytics_service.http.instruments import FOLDER, WRITER

# A writable folder in memory, if there is one. Metrics need not survive, and would cost disk writes.
MEMORY = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # noqa: S108 - our folders in it have random names


def new_folder() -> str:
    """A new folder. If its process is killed, some kilobytes stay until the machine restarts."""
    return tempfile.mkdtemp(prefix="analytics-metrics-", dir=MEMORY)


def begin_metrics(server: Any) -> None:
    """Give the arbiter its own folder, even if another arbiter started it."""
    server.metrics_folder = os.environ[FOLDER] = new_folder()
    os.chown(server.metrics_folder, server.cfg.uid, server.cfg.gid)


# Hooks of gunicorn. The first and the last two are called in the arbiter.


def pre_fork(server: Any, worker: Any) -> None:
    """Give the worker the first free slot."""
    taken = {getattr(running, "metrics_slot", None) for running in server.WORKERS.values()}
    worker.metrics_slot = next(slot for slot in count() if slot not in taken)


def post_fork(server: Any, worker: Any) -> None:
    """Name the files that the worker writes."""
    os.environ[WRITER] = str(worker.metrics_slot)


def child_exit(server: Any, worker: Any) -> None:
    """Delete the gauges of a worker that has ended."""
    if folder := getattr(server, "metrics_folder", None):
        mark_process_dead(str(worker.metrics_slot), folder)  # type: ignore[no-untyped-call]


def on_exit(server: Any) -> None:
    if folder := getattr(server, "metrics_folder", None):
        shutil.rmtree(folder, ignore_errors=True)
