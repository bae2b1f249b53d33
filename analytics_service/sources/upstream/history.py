"""Values of upstream's histories as of instants, by pages of hourly buckets (rules 2.4 to 2.8)."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from decimal import Decimal

from analytics_service.market.events import Sum
from analytics_service.market.instants import HOUR, unix_second
from analytics_service.market.kinds import Time
from analytics_service.market.sums import TOTAL
from analytics_service.sources.upstream.client import Client
from analytics_service.store.datasets.histories import History

# Buckets of a page, as in the contract's sample.
_BUCKETS = 200
# The time that upstream may take to complete a bucket after its end.
_SETTLING = timedelta(minutes=5)
_TIME = Time()
# Values by asset id, or under TOTAL for a history that has a single series.
Values = Mapping[str, Decimal]


class Histories:
    """Values of histories as of instants. Keeps the last page of each history for the next instants of a backfill,
    which would otherwise take an hour for a year.

    A bucket's value is the last at or before its last second, so instants at the last second of an hour share pages.
    Any other instant takes a request of its own, whose range, and so its bucket, ends at the instant.
    """

    def __init__(self, client: Client, now: Callable[[], datetime]) -> None:
        self._client = client
        self._now = now
        # By path, the start (unix second) of the first bucket, and the buckets.
        self._pages: dict[str, tuple[int, Sequence[Values]]] = {}

    def values(self, path: str, at: datetime) -> Values:
        """The value of each series that has one as of an instant. SourceError for a page other than the requested
        one."""
        second, settled = unix_second(at), unix_second(self._now() - _SETTLING) + 1
        start = second // HOUR * HOUR
        if second + 1 < start + HOUR or settled < start + HOUR:
            return self._read(path, start, second)[0]
        first, buckets = self._pages.get(path, (start, ()))
        if not 0 <= start - first < len(buckets) * HOUR:
            end = min(start + _BUCKETS * HOUR, settled // HOUR * HOUR)
            first, buckets = self._pages[path] = start, self._read(path, start, end - 1)
        return buckets[(start - first) // HOUR]

    def total(self, history: History, at: datetime) -> Decimal | None:
        """The value of a history's total; None before the first value."""
        assert history.total
        return self.values(history.total.path, at).get(TOTAL)

    def sum(self, history: History, at: datetime) -> Sum | None:
        """The total and the values by asset; None before the first value."""
        assert history.by_asset
        total = self.total(history, at)
        return None if total is None else Sum(total, self.values(history.by_asset.path, at))

    def _read(self, path: str, start: int, end: int) -> Sequence[Values]:
        """The values of hourly buckets from `start` up to the second `end`, or fewer if they exceed upstream's page."""
        data = self._client.get(path, period="h", limit=_BUCKETS, tz="UTC", start=start, end=end).data
        listed = data.get("series")
        series = listed.by_asset(lambda item: item["points"].items()) if listed else {TOTAL: data["points"].items()}
        sizes = set(map(len, series.values())) or {1}
        if len(sizes) > 1 or 0 in sizes:
            raise data.error(f"has series of {sorted(sizes)} points")
        page: Sequence[dict[str, Decimal]] = [{} for _ in range(*sizes)]
        for asset_id, points in series.items():
            for index, point in enumerate(points):
                if unix_second(point["t"].read(_TIME)) != start + index * HOUR:
                    raise point["t"].error(f"must be {start + index * HOUR}, the start of bucket {index}")
                if value := point.get("v"):
                    page[index][asset_id] = value.decimal()
        return page
