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
        ids: set[str] | None = None
        while len(buckets) < count:
            offset = len(buckets)
            answer = self._ask(path, start=start, end=start + count * HOUR - 1 - early, offset=offset)
            series, size = _series(answer.data), _page_size(answer, offset, count)
            if ids is not None and series.keys() != ids:
                raise answer.data.error("has other series than the page before")
            ids = set(series)
            page: list[dict[str, Decimal]] = [{} for _ in range(size)]
            for asset_id, points in series.items():
                if len(listed := points.items()) != size:
                    raise points.error(f"has {len(listed)} points instead of {size}")
                for index, point in enumerate(listed):
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


def _series(data: AnswerField) -> dict[str, AnswerField]:
    """The points of each series by asset id; of a single series under TOTAL."""
    listed = data.get("series")
    return {TOTAL: data["points"]} if listed is None else listed.by_asset(lambda item: item["points"])


def _page_size(answer: UpstreamAnswer, offset: int, count: int) -> int:
    """The number of buckets of a page, by its pagination, which must go on where the page ends."""
    pagination = answer.data["pagination"]
    total, following = pagination["interval_count"], pagination.get("next_offset")
    if total.whole() != count:
        raise total.error(f"is not the number of hours that were asked for, {count}")
    end = count if following is None else following.whole()
    if following is not None and not offset < end < count:
        raise following.error(f"is not the offset of a page between {offset} and {count}")
    return end - offset
