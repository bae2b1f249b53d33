"""Every metric: its name, help and labels. The only module that measures for Prometheus.

gunicorn's workers are processes. Each writes its values to its own files in a shared folder, and the worker that is
scraped adds them up. Without such a folder there is one process, and its values are in its memory.
"""

import os
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, Metric, values
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector

from analytics_service.processes.memory import resident_bytes
from analytics_service.state.report import WorkerReport

# Variables of the environment of a process that writes to a folder: prometheus_client reads the first, and the second
# is the name of its files. Processes that run at the same time have different names; one that takes over the name of
# another goes on with its counters.
FOLDER = "PROMETHEUS_MULTIPROC_DIR"
WRITER = "_ANALYTICS_METRICS_WRITER"
# The folder that the scheduler writes to, if this process is to show its metrics.
JOBS_FOLDER = "_ANALYTICS_JOBS_METRICS"
# Upper bounds in seconds.
_FAST = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)
_SLOW = (0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300)
_BEGAN = "analytics_worker_start_time_seconds"
_REQUESTS = "analytics_worker_requests"
_MEMORY = "analytics_memory_bytes"
_HISTORY, _ANSWERS = "history", "answers"
# Label of requests whose path is no route; labelling by path would let clients create any number of series.
UNKNOWN = "unknown"


class Instruments:
    """The metrics that this process measures. One is made in each process."""

    def __init__(self) -> None:
        self._folder = os.environ.get(FOLDER)
        if self._folder:
            writer = os.environ.get(WRITER, str(os.getpid()))
            values.ValueClass = values.MultiProcessValue(lambda: writer)  # type: ignore[no-untyped-call]
        # Values in files are collected from there.
        self._own = None if self._folder else CollectorRegistry()
        self._requests = Histogram(
            "analytics_request_seconds",
            "Time to answer a request, from its head to its answer, without sending it.",
            ["route", "status"],
            buckets=_FAST,
            registry=self._own,
        )
        self._bytes = Counter(
            "analytics_response_bytes", "Bytes of bodies of answers, as encoded.", ["route"], registry=self._own
        )
        self._unreadable = Counter(
            "analytics_unreadable_requests",
            "Requests that the server refused before it knew their path.",
            ["kind"],
            registry=self._own,
        )
        self._cache = Counter(
            "analytics_cache_answers",
            "Answers of paths that show snapshots: rendered before (hit) or anew (miss), or not sent (not_modified).",
            ["outcome"],
            registry=self._own,
        )
        self._queries = Histogram(
            "analytics_store_query_seconds",
            "Time that queries of the store took, whatever their outcome.",
            ["query"],
            buckets=_FAST,
            registry=self._own,
        )
        self._query_errors = Counter(
            "analytics_store_query_errors", "Queries of the store that failed.", ["query", "error"], registry=self._own
        )
        self._memory = Gauge(
            _MEMORY,
            "Memory of all workers that is taken by history and by answers.",
            ["kind"],
            multiprocess_mode="livesum",
            registry=self._own,
        )
        self._job_runs = Counter(
            "analytics_job_runs", "Runs of the scheduler by outcome.", ["job", "outcome"], registry=self._own
        )
        self._job_seconds = Histogram(
            "analytics_job_seconds",
            "Time that runs of the scheduler took, retries included.",
            ["job"],
            buckets=_SLOW,
            registry=self._own,
        )
        self.in_flight = Gauge(
            "analytics_requests_in_flight",
            "Requests that are being answered.",
            multiprocess_mode="livesum",
            registry=self._own,
        )
        # prometheus_client removes labels named pid.
        self._worker_began = Gauge(
            _BEGAN, "When each worker began.", ["process"], multiprocess_mode="livesum", registry=self._own
        )
        self._worker_requests = Gauge(
            _REQUESTS,
            "Requests that each worker has answered since it began.",
            ["process"],
            multiprocess_mode="livesum",
            registry=self._own,
        )
        self._mine: Gauge | None = None
        # Finding the values of labels takes longer than counting.
        self._of = lru_cache(4096)(self._found)

    def begin_worker(self) -> None:
        """This process answers requests from now on."""
        pid = str(os.getpid())
        self._worker_began.labels(pid).set(time.time())
        self._mine = self._worker_requests.labels(pid)

    def answered(self, route: str, status: int, seconds: float, size: int, outcome: str | None) -> None:
        """A request was answered. `outcome` is that of the cache, for paths that have one."""
        requests, sent, cache = self._of(route, status, outcome)
        requests.observe(seconds)
        sent.inc(size)
        if cache is not None:
            cache.inc()
        if self._mine is not None:
            self._mine.inc()

    def unreadable(self, kind: str) -> None:
        """A request was refused with this kind of error, before it had a route."""
        self._unreadable.labels(kind).inc()

    @contextmanager
    def query(self, name: str) -> Iterator[None]:
        """Measure the query of the block."""
        begun = time.perf_counter()
        try:
            yield
        except Exception as error:
            self._query_errors.labels(name, type(error).__name__).inc()
            raise
        finally:
            self._queries.labels(name).observe(time.perf_counter() - begun)

    def memory(self, kind: str) -> Callable[[int], None]:
        """A function to call with the bytes in use of this kind of memory, whenever they change."""
        return self._memory.labels(kind).set

    def job(self, name: str, outcome: str, seconds: float | None) -> None:
        """A run of a job ended after some seconds, or never began."""
        self._job_runs.labels(name, outcome).inc()
        if seconds is not None:
            self._job_seconds.labels(name).observe(seconds)

    def workers(self) -> list[WorkerReport]:
        """The processes that answer requests, those of another service aside, by process id."""
        if self._own is not None:
            found = [_worker(self._own.collect())]
        else:
            # A worker has its gauges in a file of its own, which is removed when it ends.
            files = sorted(Path(self._folder or "").glob("gauge_livesum_*.db"))
            found = [_worker(_merged([file])) for file in files]
        return sorted((one for one in found if one is not None), key=lambda one: one.pid)

    def collectors(self) -> list[Collector]:
        """Everything that was measured, by all processes."""
        folders = [Path(folder) for folder in (self._folder, os.environ.get(JOBS_FOLDER)) if folder]
        return [*([self._own] if self._own else []), *([_Files(folders)] if folders else [])]

    def _found(self, route: str, status: int, outcome: str | None) -> tuple[Histogram, Counter, Counter | None]:
        cache = None if outcome is None else self._cache.labels(outcome)
        return self._requests.labels(route, str(status)), self._bytes.labels(route), cache


class _Files(Collector):
    """The sums of what processes have written to some folders."""

    def __init__(self, folders: list[Path]) -> None:
        self._folders = folders

    def collect(self) -> Iterator[Metric]:
        """Every metric once."""
        yield from _merged(file for folder in self._folders for file in folder.glob("*.db"))


def _merged(files: Iterable[Path]) -> Iterable[Metric]:
    """The sums of what is in some files."""
    begun = [str(file) for file in files if _is_begun(file)]
    return MultiProcessCollector.merge(begun)  # type: ignore[no-untyped-call, no-any-return]


def _worker(measured: Iterable[Metric]) -> WorkerReport | None:
    """The worker that a process has measured, if it is one."""
    found = {(sample.name, *sample.labels.values()): sample.value for metric in measured for sample in metric.samples}
    pid = next((key[1] for key in found if key[0] == _BEGAN), None)
    if pid is None:
        return None
    return WorkerReport(
        pid=int(pid),
        began=datetime.fromtimestamp(found[_BEGAN, pid], UTC),
        requests=int(found.get((_REQUESTS, pid), 0)),
        history=int(found.get((_MEMORY, _HISTORY), 0)),
        answers=int(found.get((_MEMORY, _ANSWERS), 0)),
        resident=resident_bytes(int(pid)),
    )


def _is_begun(file: Path) -> bool:
    """Whether there is something in a file; its process may just have made it, or ended."""
    try:
        return file.stat().st_size > 0
    except FileNotFoundError:
        return False
