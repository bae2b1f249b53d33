"""Prometheus metrics: names, help, labels and measuring.

gunicorn's workers are processes. Each writes its values to its own files in a shared folder, and the worker that is
scraped sums them. Without such a folder, the only process keeps its values in memory.
"""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, partial
from pathlib import Path

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, Metric, values
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector

from analytics_service.errors import StoreUnavailable

# Environment variables of a process that writes to a folder. prometheus_client reads `FOLDER`; `WRITER` names the
# process's files. Concurrent processes need different names. A process that reuses a name continues its counters.
FOLDER = "PROMETHEUS_MULTIPROC_DIR"
WRITER = "_ANALYTICS_METRICS_WRITER"
# The folder of the scheduler's metrics, if this process exports them.
JOBS_FOLDER = "_ANALYTICS_JOBS_METRICS"
# Upper bounds of buckets, in seconds.
_FAST = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)
_SLOW = (0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300)
# Label of requests without a route. With paths as labels, clients could create any number of series.
UNKNOWN = "unknown"


class Instruments:
    """The metrics of this process. Each process has one instance."""

    def __init__(self) -> None:
        self._folder = os.environ.get(FOLDER)
        if self._folder:
            # A clean-up may have removed it.
            Path(self._folder).mkdir(mode=0o700, exist_ok=True)
            writer = os.environ.get(WRITER, str(os.getpid()))
            values.ValueClass = values.MultiProcessValue(lambda: writer)  # type: ignore[no-untyped-call]
        # With a folder, values are collected from its files, not from a registry.
        self._registry = None if self._folder else CollectorRegistry()
        counter, histogram = partial(Counter, registry=self._registry), partial(Histogram, registry=self._registry)
        gauge = partial(Gauge, multiprocess_mode="livesum", registry=self._registry)
        self._requests = histogram(
            "analytics_request_seconds",
            "Time to answer a request, excluding sending. Unknown paths and refused keys have the route unknown.",
            ["route", "status"],
            buckets=_FAST,
        )
        self._bytes = counter("analytics_response_bytes", "Bytes of response bodies, as encoded.", ["route"])
        self._unreadable = counter(
            "analytics_unreadable_requests", "Requests refused before their path was known.", ["kind"]
        )
        self._cache = counter(
            "analytics_cache_answers",
            "Answers that show snapshots: from the cache (hit), rendered (miss), or a 304 (not_modified).",
            ["outcome"],
        )
        # Cached, because looking up labels takes as long as counting.
        self._seconds_of = cache(lambda route, status: self._requests.labels(route, str(status)))
        self._bytes_of, self._cached_as = cache(self._bytes.labels), cache(self._cache.labels)
        self._queries = histogram(
            "analytics_store_query_seconds",
            "Duration of queries of the store, including failed queries.",
            ["query"],
            buckets=_FAST,
        )
        self._query_errors = counter(
            "analytics_store_query_errors", "Queries of the store that failed.", ["query", "error"]
        )
        self._memory = gauge("analytics_memory_bytes", "Bytes of cached history and answers in all workers.", ["kind"])
        self._job_runs = counter(
            "analytics_job_runs",
            "Runs of jobs by outcome: done, already_done, failed, skipped (still running), missed (too late).",
            ["job", "outcome"],
        )
        self._job_seconds = histogram(
            "analytics_job_seconds", "Duration of scheduled runs of jobs, including retries.", ["job"], buckets=_SLOW
        )

    def answered(self, route: str, status: int, seconds: float, size: int, outcome: str | None) -> None:
        """Record an answered request. `outcome` is the cache's; None for paths without a cache."""
        self._seconds_of(route, status).observe(seconds)
        if size:
            self._bytes_of(route).inc(size)
        if outcome is not None:
            self._cached_as(outcome).inc()

    def unreadable(self, kind: str) -> None:
        """Record a request that was refused with this kind of error before it had a route."""
        self._unreadable.labels(kind).inc()

    @contextmanager
    def query(self, name: str) -> Iterator[None]:
        begun = time.perf_counter()
        try:
            yield
        except Exception as error:
            # Alerts name this class, so its subclasses count as it; the log has details.
            kind = StoreUnavailable if isinstance(error, StoreUnavailable) else type(error)
            self._query_errors.labels(name, kind.__name__).inc()
            raise
        finally:
            self._queries.labels(name).observe(time.perf_counter() - begun)

    def memory(self, kind: str) -> Callable[[int], None]:
        """A function to call with the bytes in use for this kind of memory, whenever they change."""
        return self._memory.labels(kind).set

    def job(self, name: str, outcome: str, seconds: float | None) -> None:
        """Record that a job's run ended after `seconds`, or never began (None)."""
        self._job_runs.labels(name, outcome).inc()
        if seconds is not None:
            self._job_seconds.labels(name).observe(seconds)

    def collectors(self) -> list[Collector]:
        """Collectors of the measurements of all processes."""
        folders = [Path(folder) for folder in (self._folder, os.environ.get(JOBS_FOLDER)) if folder]
        return [*([self._registry] if self._registry else []), *([_Files(folders)] if folders else [])]


class _Files(Collector):
    """Sums of the values that processes have written to folders."""

    def __init__(self, folders: list[Path]) -> None:
        self._folders = folders

    def collect(self) -> Iterator[Metric]:
        files = [str(file) for folder in self._folders for file in folder.glob("*.db") if _has_values(file)]
        yield from MultiProcessCollector.merge(files)  # type: ignore[no-untyped-call]


def _has_values(file: Path) -> bool:
    """Whether a file exists and is not empty. Its process may be creating or removing it."""
    try:
        return file.stat().st_size > 0
    except FileNotFoundError:
        return False
