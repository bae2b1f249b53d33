"""History pages against ClickHouse's own JSON answer to the straightforward SQL on the same raw table."""

import random
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from urllib.parse import urlencode
from zoneinfo import ZoneInfo

from analytics_service.config import Settings
from tests.benchmarks.harness import Figure, compare, connection

_ZONES = ("UTC", "America/New_York", "Europe/London", "Asia/Kolkata")
_BUCKETS = 200
# What the real prices cover.
_FIRST, _LAST = datetime(2021, 1, 1, tzinfo=UTC), datetime(2023, 2, 25, tzinfo=UTC)
# The straightforward SQL, with FINAL because the table holds corrected rows beside the old ones until they are merged.
_SQL = """
SELECT asset_id, {bucket} AS bucket, toString(argMax(price, observed_at)) AS value
FROM price FINAL
WHERE observed_at >= toDateTime({start}, 'UTC') AND observed_at < toDateTime({end}, 'UTC')
GROUP BY asset_id, bucket
ORDER BY asset_id, bucket {fill}
FORMAT JSONCompact
"""
# What makes its answer a page: all series have the same buckets, and an empty one carries the value before it.
_FILL = """WITH FILL FROM toDateTime({start}, '{zone}') TO toDateTime({end}, '{zone}') STEP INTERVAL 1 {unit}
INTERPOLATE (value)"""
_UNIT = {"h": "HOUR", "d": "DAY"}
_BUCKET = {"h": "toStartOfHour(observed_at, '{zone}')", "d": "toStartOfDay(observed_at, '{zone}')"}


def run(service: str, settings: Settings) -> list[Figure]:
    """Pages of 200 hourly and 200 daily buckets over all assets, never the same twice, on one worker."""
    auth = urlencode(
        {
            "user": settings.clickhouse_user,
            "password": settings.clickhouse_password,
            "database": settings.clickhouse_database,
        }
    )
    figures: list[Figure] = []
    with connection(service) as ask, connection(settings.clickhouse_url or "") as sql:
        for period in ("h", "d"):
            draw = _pages(period)
            for name, fill, bar in (("SQL for the same page", _FILL, 1.5), ("SQL for its filled buckets", "", None)):
                figures += compare(
                    f"200 {period} to ClickHouse's JSON, {name}",
                    lambda n, draw=draw: ask(_path(*draw(n))),  # type: ignore[misc]
                    lambda n, draw=draw, fill=fill: sql(f"/?{auth}", _peer(fill, *draw(n))),  # type: ignore[misc]
                    bar,
                )
    return figures


_Page = tuple[str, str, datetime, datetime]


def _pages(period: str) -> Callable[[int], _Page]:
    """A page for each round: the same one for both sides, another for every round."""
    width = timedelta(hours=_BUCKETS) if period == "h" else timedelta(days=_BUCKETS)

    def draw(number: int) -> _Page:
        chance = random.Random(f"{period}{number}")
        zone = chance.choice(_ZONES)
        free = int((_LAST - _FIRST - width).total_seconds() // 3600)
        local = (_FIRST + timedelta(hours=chance.randrange(free))).astimezone(ZoneInfo(zone))
        start = local.replace(minute=0) if period == "h" else local.replace(hour=0, minute=0)
        end = start.astimezone(UTC) + width if period == "h" else start + width
        return period, zone, start, end

    return draw


def _path(period: str, zone: str, start: datetime, end: datetime) -> str:
    bounds = {"start": int(start.timestamp()), "end": int(end.timestamp()) - 1}
    return f"/api/v1/assets/price-history?{urlencode({**bounds, 'period': period, 'tz': zone, 'limit': _BUCKETS})}"


def _peer(fill: str, period: str, zone: str, start: datetime, end: datetime) -> str:
    bounds = {"start": int(start.timestamp()), "end": int(end.timestamp())}
    bucket = _BUCKET[period].format(zone=zone)
    return _SQL.format(bucket=bucket, fill=fill.format(zone=zone, unit=_UNIT[period], **bounds), **bounds)
