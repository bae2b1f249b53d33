"""/metrics: the state of the store and its snapshots, for Prometheus."""

from collections.abc import Iterator

import falcon
from prometheus_client import CollectorRegistry, Metric, generate_latest
from prometheus_client.core import GaugeMetricFamily

from analytics_service.http.resource import Live
from analytics_service.resources.health import Monitor


class Metrics(Live):
    """Gauges of the store and its snapshots. They are read on request, so all workers answer the same."""

    media = falcon.MEDIA_TEXT
    headers = (("Content-Type", "text/plain; version=0.0.4; charset=utf-8"),)

    def __init__(self, monitor: Monitor) -> None:
        self._registry = CollectorRegistry()
        self._registry.register(_Gauges(monitor))

    def body(self) -> bytes:
        """Prometheus' text format."""
        return generate_latest(self._registry)


class _Gauges:
    """A Prometheus collector of the monitor's status."""

    def __init__(self, monitor: Monitor) -> None:
        self._monitor = monitor

    def describe(self) -> list[Metric]:
        """No metrics, because the store may be unreachable when the service starts."""
        return []

    def collect(self) -> Iterator[Metric]:
        """The gauges now."""
        status = self._monitor.check()
        yield GaugeMetricFamily("analytics_store_up", "Whether ClickHouse answers.", value=status.reachable)
        yield GaugeMetricFamily(
            "analytics_schema_current", "Whether its schema is current.", value=status.schema_current
        )
        simulated = GaugeMetricFamily(
            "analytics_source_simulated", "Whether a source of the data is simulated.", labels=["source"]
        )
        for origin in status.origins:
            simulated.add_metric([str(origin)], origin.simulated)
        yield simulated
        age = GaugeMetricFamily(
            "analytics_snapshot_age_seconds", "Age of a family's newest snapshot.", labels=["family"]
        )
        fresh = GaugeMetricFamily("analytics_snapshot_fresh", "Whether a family is on schedule.", labels=["family"])
        for snapshot in status.snapshots:
            fresh.add_metric([snapshot.family], snapshot.fresh)
            if snapshot.newest is not None:
                age.add_metric([snapshot.family], (status.at - snapshot.newest).total_seconds())
        yield age
        yield fresh
