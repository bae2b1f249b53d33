"""Operators' paths: probes, and /metrics with the workers' measurements and gauges of the status."""

import platform
from collections.abc import Callable, Iterator

import falcon
from prometheus_client import CollectorRegistry, Metric, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from analytics_service.config.settings import service_version
from analytics_service.errors import NotReady
from analytics_service.http.answer import success
from analytics_service.http.instruments import Instruments
from analytics_service.http.resource import Live
from analytics_service.present.shapes import Scope, Shape
from analytics_service.present.status import ALIVE, READY
from analytics_service.state.health import Monitor, Status


class Operational(Live):
    """A path that answers a record of this moment."""

    def __init__(self, summary: str, shape: Shape, record: Callable[[], object]) -> None:
        super().__init__(lambda: success(shape.render(record(), Scope())))
        self.summary, self.shape = summary, shape


def probes(monitor: Monitor) -> list[tuple[str, Operational]]:
    """The routes of probes, for load balancers and orchestrators, on either bind."""

    def ready() -> Status:
        """The status of a host that is ready. Raises NotReady, which says what is missing."""
        if obstacles := monitor.obstacles():
            raise NotReady(f"Not ready: {'; '.join(obstacles)}.")
        return monitor.check()

    can_answer = "Whether this host can answer, from the store or memory, with data of each scheduled dataset."
    return [
        ("/healthz", Operational("Whether the process is up.", ALIVE, lambda: True)),
        ("/readyz", Operational(can_answer, READY, ready)),
    ]


class Metrics(Live):
    """The measurements of all workers, and gauges of this moment. All workers give the same answer."""

    media = (falcon.MEDIA_TEXT,)

    def __init__(self, instruments: Instruments, gauges: Collector) -> None:
        registry = CollectorRegistry()
        for collector in [*instruments.collectors(), gauges]:
            registry.register(collector)
        headers = (("Content-Type", "text/plain; version=0.0.4; charset=utf-8"),)
        super().__init__(lambda: generate_latest(registry), headers)


class Gauges(Collector):
    """Gauges of the status at a scrape: the version of this host, and the state of the store and its snapshots."""

    def __init__(self, monitor: Monitor, source: str | None) -> None:
        self._monitor = monitor
        self._source = source or ""

    def describe(self) -> list[Metric]:
        """No metrics, because the store may be unreachable when the service starts."""
        return []

    def collect(self) -> Iterator[Metric]:
        """The current gauges. While the store does not answer, ages grow from its last answer, and other gauges are
        missing or keep its values."""
        build = _gauge("analytics_build_info", "Version and configured source.", "version", "python", "source")
        build.add_metric([service_version() or "unknown", platform.python_version(), self._source], 1)
        yield build
        status = self._monitor.check()
        yield _gauge("analytics_store_up", "Whether ClickHouse answers.", value=status.reachable)
        if status.reachable:
            yield _gauge("analytics_schema_current", "Whether its schema is current.", value=status.schema_current)
            if disk := status.facts.disk:
                yield _gauge("analytics_store_disk_free_bytes", "Bytes left of ClickHouse's disk.", value=disk.free)
                yield _gauge("analytics_store_disk_size_bytes", "Size of that disk in bytes.", value=disk.total)
        simulated = _gauge("analytics_source_simulated", "Whether a source of the data is simulated.", "source")
        for origin in status.origins:
            simulated.add_metric([str(origin)], origin.simulated)
        yield simulated
        yield from _datasets(status)
        lost = _gauge("analytics_data_losses", "Losses of rows in a dataset; `status` lists them.", "dataset")
        for name, losses in status.losses.items():
            lost.add_metric([name], len(losses))
        yield lost
        help = "Suspicious values of the last day; the view `anomalies` lists them."
        yield _gauge("analytics_anomalies", help, value=status.facts.anomalies)


def _datasets(status: Status) -> Iterator[Metric]:
    age = _gauge("analytics_snapshot_age_seconds", "Age of a dataset's newest snapshot.", "dataset")
    fresh = _gauge("analytics_snapshot_fresh", "Whether a dataset is on schedule.", "dataset")
    ahead = _gauge("analytics_snapshot_ahead", "Whether a dataset has snapshots from the future.", "dataset")
    complete = _gauge(
        "analytics_events_complete_timestamp_seconds", "Time up to which a source reports its events as complete."
    )
    gaps = _gauge("analytics_history_gaps", "Scheduled instants of the last day without a snapshot.", "dataset")
    for dataset in status.datasets:
        if dataset.complete_until is not None:
            complete.add_metric([], dataset.complete_until.timestamp())
        if status.reachable:
            fresh.add_metric([dataset.dataset], dataset.fresh)
            ahead.add_metric([dataset.dataset], dataset.ahead is not None)
        if dataset.age_seconds is not None:
            age.add_metric([dataset.dataset], dataset.age_seconds)
        if dataset.gaps is not None:
            gaps.add_metric([dataset.dataset], dataset.gaps)
    yield from (age, fresh, ahead, complete, gaps)


def _gauge(name: str, help: str, *labels: str, value: float | None = None) -> GaugeMetricFamily:
    return GaugeMetricFamily(name, help, labels=labels or None, value=value)
