"""Upstream's histories: their values as of instants, by pages of hourly buckets (rules 2.4 to 2.8)."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from decimal import Decimal

from analytics_service.market.events import Sum
from analytics_service.market.instants import HOUR, unix_second
from analytics_service.market.kinds import Time
from analytics_service.market.sums import TOTAL
from analytics_service.sources.upstream.client import Client, Refused, UpstreamAnswer
from analytics_service.sources.upstream.fields import AnswerField
from analytics_service.store.datasets.histories import History

# Buckets of a page, as many as the contract's sample has.
_BUCKETS = 200
# How long upstream may take to write what belongs into a bucket that has ended.
_SETTLING = timedelta(minutes=5)

_TIME = Time()
# Values by asset id, or under TOTAL for a history that has a single series.
Values = Mapping[str, Decimal]


class Histories:
    """Values of histories as of instants. The last page of each history is kept, for the next instants of a backfill.

    A bucket's value is the last at or before its last second, so instants at the last second of an hour share pages.
    Any other instant is asked for by itself.
    """

    def __init__(self, client: Client, now: Callable[[], datetime]) -> None:
        self._client = client
        self._now = now
        # By path, the start (unix s) of the first bucket, and the buckets.
        self._pages: dict[str, tuple[int, Sequence[Values]]] = {}
        # An extension. Without it, hours are whole ones in most zones that upstream may have.
        self._zone: dict[str, str | int] = {"tz": "UTC"}

    def values(self, path: str, at: datetime) -> Values:
        """The value of each series as of an instant; series without a value are left out. SourceError for a page that
        is not the one that was asked for."""
        second = unix_second(at)
        start, settled = second + 1 - HOUR, unix_second(self._now() - _SETTLING)
        if (second + 1) % HOUR or second > settled:
            return self._read(path, second, 1, early=HOUR - 1)[0]
        first, buckets = self._pages.get(path, (start, ()))
        if not 0 <= start - first < len(buckets) * HOUR:
            first, buckets = start, self._read(path, start, min(_BUCKETS, (settled + 1 - start) // HOUR))
            self._pages[path] = first, buckets
        return buckets[(start - first) // HOUR]

    def total(self, history: History, at: datetime) -> Decimal | None:
        """The value of a history without assets; None before its first."""
        assert history.total
        return self.values(history.total.path, at).get(TOTAL)

    def sum(self, history: History, at: datetime) -> Sum | None:
        """The total and the values by asset; None before the first."""
        assert history.by_asset
        total = self.total(history, at)
        return None if total is None else Sum(total, self.values(history.by_asset.path, at))

    def _read(self, path: str, start: int, count: int, early: int = 0) -> list[Values]:
        """The values of `count` hourly buckets from a second on, each of which must come exactly once, at its place. If
        that second is not the start of a bucket, it may begin some seconds `early`."""
        buckets: list[Values] = []
        while (rest := count - len(buckets)) > 0:
            offset = len(buckets)
            answer = self._ask(path, start=start, end=start + count * HOUR - 1 - early, offset=offset)
            series = _series(answer.data)
            size = max(map(len, series.values()), default=rest)
            if not 0 < size <= rest:
                raise answer.data.error(f"has {size} buckets after the first {offset} of {count}")
            page: list[dict[str, Decimal]] = [{} for _ in range(size)]
            for asset_id, points in series.items():
                if len(points) != size:
                    raise answer.data.error(f"has {len(points)} points of {asset_id}, and {size} of another series")
                for index, point in enumerate(points):
                    expected = start + (offset + index) * HOUR
                    if not 0 <= expected - unix_second(point["t"].read(_TIME)) <= early:
                        raise point["t"].error(f"is not the start of bucket {offset + index}, {expected}")
                    if value := point.get("v"):
                        page[index][asset_id] = value.decimal()
            buckets += page
        return buckets

    def _ask(self, path: str, **params: int) -> UpstreamAnswer:
        try:
            return self._client.get(path, period="h", limit=_BUCKETS, **params, **self._zone)
        except Refused as error:
            if error.status != 400 or not self._zone:
                raise
            answer = self._client.get(path, period="h", limit=_BUCKETS, **params)
            self._zone = {}
            return answer


def _series(data: AnswerField) -> dict[str, list[AnswerField]]:
    """The points of each series by asset id; of a single series under TOTAL."""
    listed = data.get("series")
    return {TOTAL: data["points"].items()} if listed is None else listed.by_asset(lambda item: item["points"].items())
