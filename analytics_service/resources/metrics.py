"""/metrics: what the service stands on, for Prometheus."""

from collections.abc import Iterator

import falcon
from prometheus_client import CollectorRegistry, Metric, generate_latest
from prometheus_client.core import GaugeMetricFamily

from analytics_service.http.resource import Live
from analytics_service.resources.health import Monitor


class Metrics(Live):
    """Gauges of the store and its snapshots, read when they are asked for: the same from every worker."""

    media = falcon.MEDIA_TEXT
    headers = (("Content-Type", "text/plain; version=0.0.4; charset=utf-8"),)

    def __init__(self, monitor: Monitor) -> None:
        self._registry = CollectorRegistry()
        self._registry.register(_Gauges(monitor))

    def body(self) -> bytes:
        """Prometheus's text format."""
        return generate_latest(self._registry)


class _Gauges:
    """Collects a monitor's findings."""

    def __init__(self, monitor: Monitor) -> None:
        self._monitor = monitor

    def describe(self) -> list[Metric]:
        """Nothing ahead of time: the store need not be there when the service starts."""
        return []

    def collect(self) -> Iterator[Metric]:
        """The gauges as of now."""
        health, now = self._monitor.look(), self._monitor.clock().timestamp()
        yield GaugeMetricFamily("analytics_store_up", "Whether ClickHouse answers.", value=health.store)
        yield GaugeMetricFamily("analytics_schema_current", "Whether its schema is current.", value=health.schema)
        age = GaugeMetricFamily(
            "analytics_snapshot_age_seconds", "Age of a family's newest snapshot.", labels=["family"]
        )
        fresh = GaugeMetricFamily("analytics_snapshot_fresh", "Whether a family is on schedule.", labels=["family"])
        for family, (head, is_fresh) in health.snapshots.items():
            fresh.add_metric([family], is_fresh)
            if head is not None:
                age.add_metric([family], now - head.at)
        yield age
        yield fresh
