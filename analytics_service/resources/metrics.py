"""/metrics: the workers' measurements, and the numbers of the status, for Prometheus."""

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
    """A path that answers with a record of this moment."""

    shape: Shape

    def __init__(self, summary: str, shape: Shape, record: Callable[[], object]) -> None:
        self.summary, self.shape, self._record = summary, shape, record

    def body(self) -> bytes:
        return success(self.shape.render(self._record(), Scope()))


def probes(monitor: Monitor) -> list[tuple[str, Operational]]:
    """The routes that load balancers and orchestrators request, on either bind."""

    def ready() -> Status:
        """The status of a host that is ready. NotReady says what is missing."""
        if obstacles := monitor.obstacles():
            raise NotReady(f"Not ready: {'; '.join(obstacles)}.")
        return monitor.check()

    can_answer = "Whether this host can answer: from the store or from memory, with data of everything that jobs bring."
    return [
        ("/healthz", Operational("Whether the process is up.", ALIVE, lambda: True)),
        ("/readyz", Operational(can_answer, READY, ready)),
    ]


class Metrics(Live):
    """The measurements of all workers, and gauges of this moment. Every worker gives the same answer."""

    media = (falcon.MEDIA_TEXT,)
    headers = (("Content-Type", "text/plain; version=0.0.4; charset=utf-8"),)

    def __init__(self, instruments: Instruments, gauges: Collector) -> None:
        self._registry = CollectorRegistry()
        for collector in [*instruments.collectors(), gauges]:
            self._registry.register(collector)

    def body(self) -> bytes:
        return generate_latest(self._registry)


class Gauges(Collector):
    """Gauges whose values are those of the status at a scrape: what runs here, and how the store and its snapshots are,
    whatever host the scheduler runs on."""

    def __init__(self, monitor: Monitor, source: str | None) -> None:
        self._monitor = monitor
        self._source = source or ""

    def describe(self) -> list[Metric]:
        """No metrics, because the store may be unreachable when the service starts."""
        return []

    def collect(self) -> Iterator[Metric]:
        """The current gauges. While the store does not answer, ages grow from its last answer, and others are left out
        or those of that answer."""
        build = _gauge("analytics_build_info", "Version and configured source.", "version", "python", "source")
        build.add_metric([service_version() or "unknown", platform.python_version(), self._source], 1)
        yield build
        status = self._monitor.check()
        yield _gauge("analytics_store_up", "Whether ClickHouse answers.", value=status.reachable)
        if status.reachable:
            yield _gauge("analytics_schema_current", "Whether its schema is current.", value=status.schema_current)
            if disk := status.facts.disk:
                yield _gauge("analytics_store_disk_free_bytes", "Bytes left of ClickHouse's disk.", value=disk.free)
                yield _gauge("analytics_store_disk_size_bytes", "All bytes of that disk.", value=disk.total)
        simulated = _gauge("analytics_source_simulated", "Whether a source of the data is simulated.", "source")
        for origin in status.origins:
            simulated.add_metric([str(origin)], origin.simulated)
        yield simulated
        yield from _datasets(status)
        lost = _gauge("analytics_data_losses", "Losses of rows of a dataset that `status` lists.", "dataset")
        for name, losses in status.losses.items():
            lost.add_metric([name], len(losses))
        yield lost
        help = "Values of the last day that may be wrong; the view `anomalies` lists them."
        yield _gauge("analytics_anomalies", help, value=status.facts.anomalies)


def _datasets(status: Status) -> Iterator[Metric]:
    age = _gauge("analytics_snapshot_age_seconds", "Age of a dataset's newest snapshot.", "dataset")
    fresh = _gauge("analytics_snapshot_fresh", "Whether a dataset is on schedule.", "dataset")
    ahead = _gauge("analytics_snapshot_ahead", "Whether a dataset has snapshots from the future.", "dataset")
    complete = _gauge(
        "analytics_events_complete_timestamp_seconds", "Up to when a source says that its events are complete."
    )
    gaps = _gauge(
        "analytics_history_gaps", "Scheduled instants of the last day, up to the newest, without snapshot.", "dataset"
    )
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
