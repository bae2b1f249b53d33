"""/metrics: the workers' measurements, the state of the store, and the runs of jobs, for Prometheus."""

import logging
import platform
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime

import falcon
from prometheus_client import CollectorRegistry, Metric, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from analytics_service.config.settings import service_version
from analytics_service.errors import AnalyticsError
from analytics_service.http.instruments import Instruments
from analytics_service.http.resource import Live
from analytics_service.market.instants import unix_second
from analytics_service.market.share import Share
from analytics_service.state.health import Monitor
from analytics_service.store.connection import Store
from analytics_service.store.scheduled_runs import ScheduledRun, scheduled_runs

log = logging.getLogger(__name__)


class Metrics(Live):
    """The measurements of all workers, and gauges of this moment. Every worker gives the same answer."""

    media = (falcon.MEDIA_TEXT,)
    headers = (("Content-Type", "text/plain; version=0.0.4; charset=utf-8"),)

    def __init__(self, instruments: Instruments, *gauges: Collector) -> None:
        self._registry = CollectorRegistry()
        for collector in [*instruments.collectors(), *gauges]:
            self._registry.register(collector)

    def body(self) -> bytes:
        """Prometheus' text format."""
        return generate_latest(self._registry)


class Gauges(Collector):
    """Gauges whose values are computed for each scrape."""

    def describe(self) -> list[Metric]:
        """No metrics, because the store may be unreachable when the service starts."""
        return []


class Build(Gauges):
    """The version of the service, and its configured source."""

    def __init__(self, source: str | None) -> None:
        self._labels = {
            "version": service_version() or "unknown",
            "python": platform.python_version(),
            "source": source or "",
        }

    def collect(self) -> Iterator[Metric]:
        """A gauge that is always 1."""
        build = GaugeMetricFamily("analytics_build_info", "Version and configured source.", labels=list(self._labels))
        build.add_metric(list(self._labels.values()), 1)
        yield build


class StoreGauges(Gauges):
    """The state of the store and its snapshots. While the store does not answer, ages grow from its last answer."""

    def __init__(self, monitor: Monitor) -> None:
        self._monitor = monitor

    def collect(self) -> Iterator[Metric]:
        """The current gauges. While the store does not answer, those that only it could provide are left out."""
        status = self._monitor.check()
        yield GaugeMetricFamily("analytics_store_up", "Whether ClickHouse answers.", value=status.reachable)
        if status.reachable:
            yield _gauge("analytics_schema_current", "Whether its schema is current.", value=status.schema_current)
        simulated = _gauge("analytics_source_simulated", "Whether a source of the data is simulated.", "source")
        for origin in status.origins:
            simulated.add_metric([str(origin)], origin.simulated)
        yield simulated
        age = _gauge("analytics_snapshot_age_seconds", "Age of a family's newest snapshot.", "family")
        fresh = _gauge("analytics_snapshot_fresh", "Whether a family is on schedule.", "family")
        for snapshot in status.snapshots:
            if status.reachable:
                fresh.add_metric([snapshot.family], snapshot.fresh)
            if snapshot.age_seconds is not None:
                age.add_metric([snapshot.family], snapshot.age_seconds)
        yield age
        yield fresh


class JobGauges(Gauges):
    """Scheduled runs of the last day according to the ledger, whatever host the scheduler runs on.

    `intervals` returns the seconds between snapshots of each scheduled family.
    """

    def __init__(self, store: Store, intervals: Callable[[], Mapping[str, int]], clock: Callable[[], datetime]) -> None:
        self._intervals = intervals
        self._read = lambda: scheduled_runs(store, intervals(), unix_second(clock()))
        self._reading: Share[Sequence[ScheduledRun]] = Share()
        self._runs: Sequence[ScheduledRun] = ()

    def collect(self) -> Iterator[Metric]:
        """The current gauges, or those of the store's last answer."""
        rows = _gauge("analytics_job_rows", "Rows of the newest scheduled snapshot.", "job")
        lag = _gauge(
            "analytics_job_lag_seconds", "From the instant of that snapshot until it began to be written.", "job"
        )
        due = _gauge("analytics_job_next_run_timestamp_seconds", "When the next snapshot is due.", "job")
        gaps = _gauge(
            "analytics_history_gaps",
            "Scheduled instants of the last day, up to the newest, without snapshot.",
            "family",
        )
        intervals = self._intervals()
        try:
            self._runs = self._reading.get(None, self._read)
        except AnalyticsError as error:
            log.warning("Gauges of jobs are those of before: %s", error)
        for run in self._runs:
            interval = intervals[run.family]
            rows.add_metric([run.family], run.rows)
            lag.add_metric([run.family], run.lag)
            due.add_metric([run.family], run.at // interval * interval + interval)
            gaps.add_metric([run.family], run.missing)
        yield from (rows, lag, due, gaps)


def _gauge(name: str, help: str, *labels: str, value: float | None = None) -> GaugeMetricFamily:
    return GaugeMetricFamily(name, help, labels=labels or None, value=value)
