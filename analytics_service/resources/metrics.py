"""/metrics: the workers' measurements, the state of the store, and the runs of jobs, for Prometheus."""

import logging
import platform
from collections import Counter
from collections.abc import Iterator, Sequence
from operator import attrgetter

import falcon
from prometheus_client import CollectorRegistry, Metric, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from analytics_service.config.settings import service_version
from analytics_service.errors import AnalyticsError
from analytics_service.http.instruments import Instruments
from analytics_service.http.resource import Live
from analytics_service.market.doubts import Doubtful
from analytics_service.market.share import Share, within
from analytics_service.state.health import Family, Monitor, Status
from analytics_service.state.operations import with_scheduled
from analytics_service.store.connection import Store

log = logging.getLogger(__name__)

# Seconds that a scrape may wait for the store, all in all. Prometheus gives up after ten, or sooner by its settings.
_SCRAPE_SECONDS = 3.0
# Assets with a gauge of their own: those with the oldest prices.
_MOST_ASSETS = 500


class Metrics(Live):
    """The measurements of all workers, and gauges of this moment. Every worker gives the same answer."""

    media = (falcon.MEDIA_TEXT,)
    headers = (("Content-Type", "text/plain; version=0.0.4; charset=utf-8"),)

    def __init__(self, instruments: Instruments, gauges: Collector) -> None:
        self._registry = CollectorRegistry()
        for collector in [*instruments.collectors(), gauges]:
            self._registry.register(collector)

    def body(self) -> bytes:
        # Few queries, and the more needed the busier the store is, so they do not wait in line.
        with within(_SCRAPE_SECONDS, gate=None):
            return generate_latest(self._registry)


class Gauges(Collector):
    """Gauges whose values are computed for each scrape: what runs here, and how the store, its snapshots and the
    scheduled runs of the last day are, whatever host the scheduler runs on."""

    def __init__(self, monitor: Monitor, store: Store, source: str | None) -> None:
        self._monitor = monitor
        self._store = store
        self._source = source or ""
        self._reading: Share[Sequence[Family]] = Share()
        self._families: Sequence[Family] = ()

    def describe(self) -> list[Metric]:
        """No metrics, because the store may be unreachable when the service starts."""
        return []

    def collect(self) -> Iterator[Metric]:
        """The current gauges. While the store does not answer, ages grow from its last answer, gauges of runs
        are those of that answer, and others that only the store could provide are left out."""
        build = _gauge("analytics_build_info", "Version and configured source.", "version", "python", "source")
        build.add_metric([service_version() or "unknown", platform.python_version(), self._source], 1)
        yield build
        status = self._monitor.check()
        yield _gauge("analytics_store_up", "Whether ClickHouse answers.", value=status.reachable)
        if status.reachable:
            yield _gauge("analytics_schema_current", "Whether its schema is current.", value=status.schema_current)
            replicas = _gauge(
                "analytics_store_replica_up", "Whether a server of the cluster answers.", "shard", "address"
            )
            for replica in status.replicas:
                replicas.add_metric([str(replica.shard), replica.address], replica.up)
            yield replicas
            if disk := status.disk:
                yield _gauge("analytics_store_disk_free_bytes", "Bytes left of ClickHouse's disk.", value=disk.free)
                yield _gauge("analytics_store_disk_size_bytes", "All bytes of that disk.", value=disk.total)
        simulated = _gauge("analytics_source_simulated", "Whether a source of the data is simulated.", "source")
        for origin in status.origins:
            simulated.add_metric([str(origin)], origin.simulated)
        yield simulated
        age = _gauge("analytics_snapshot_age_seconds", "Age of a family's newest snapshot.", "family")
        fresh = _gauge("analytics_snapshot_fresh", "Whether a family is on schedule.", "family")
        ahead = _gauge("analytics_snapshot_ahead", "Whether a family has snapshots from the future.", "family")
        complete = _gauge(
            "analytics_events_complete_timestamp_seconds", "Up to when a source says that its events are complete."
        )
        for family in status.families:
            if family.complete_until is not None:
                complete.add_metric([], family.complete_until.timestamp())
            if status.reachable:
                fresh.add_metric([family.family], family.fresh)
                ahead.add_metric([family.family], family.ahead is not None)
            if family.age_seconds is not None:
                age.add_metric([family.family], family.age_seconds)
        lost = _gauge("analytics_data_losses", "Losses of rows of a family that `status` lists.", "family")
        for name, losses in status.losses.items():
            lost.add_metric([name], len(losses))
        yield from (age, fresh, ahead, complete, lost)
        yield from _figures(status)
        yield from self._runs(status)

    def _runs(self, status: Status) -> Iterator[Metric]:
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
        try:
            if status.reachable:
                self._families = self._reading.get(None, lambda: with_scheduled(self._store, status))
        except AnalyticsError as error:
            log.warning("Gauges of jobs are those of before: %s", error)
        for family in self._families:
            if (run := family.scheduled) and family.interval:
                rows.add_metric([run.family], run.rows)
                lag.add_metric([run.family], run.lag)
                due.add_metric([run.family], run.at // family.interval * family.interval + family.interval)
                gaps.add_metric([run.family], run.missing)
        yield from (rows, lag, due, gaps)


def _figures(status: Status) -> Iterator[Metric]:
    price_age = _gauge("analytics_price_age_seconds", "Age of an asset's newest price.", "asset", "symbol")
    for price in sorted(status.prices, key=attrgetter("newest"))[:_MOST_ASSETS]:
        price_age.add_metric([price.asset_id, price.symbol], price.age_seconds)
    yield price_age
    doubts = _gauge("analytics_doubts", "Values of the last day that are in doubt.", "what")
    counts = Counter(doubt.what for doubt in status.doubts)
    for what in Doubtful:
        doubts.add_metric([what], counts[what])
    yield doubts


def _gauge(name: str, help: str, *labels: str, value: float | None = None) -> GaugeMetricFamily:
    return GaugeMetricFamily(name, help, labels=labels or None, value=value)
