"""Upstream's histories: their values as of instants, by pages of hourly buckets (rules 2.4 to 2.8), and sums of events.

The sums are those over all of upstream's users, of whom only followed addresses are asked for one by one.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import TypeVar

from analytics_service.market.events import Sum, Totals
from analytics_service.market.instants import HOUR, instant, unix_second
from analytics_service.market.positions import RiskTotals
from analytics_service.market.sums import TOTAL
from analytics_service.sources.upstream.client import Client, Refused, UpstreamAnswer
from analytics_service.sources.upstream.fields import AnswerField
from analytics_service.sources.upstream.records import STATE
from analytics_service.sources.upstream.state import Asker, NoPast
from analytics_service.store.datasets.histories import (
    ACCOUNTS_AT_RISK,
    BAD_DEBT,
    DEBT_AT_RISK,
    LIQUIDATABLE_DEBT,
    LIQUIDATIONS,
    LOANS,
    History,
)

_T = TypeVar("_T")
# Buckets of a page, as many as the contract's sample has.
_BUCKETS = 200
# How long upstream may take to write what belongs into a bucket that has ended.
_SETTLING = timedelta(minutes=5)

# Values by asset id, or under TOTAL for a history that has a single series.
Values = Mapping[str, Decimal]


@dataclass(frozen=True, slots=True)
class _Page:
    """Values of consecutive hourly buckets from `start` (unix s) on."""

    start: int
    buckets: list[dict[str, Decimal]]

    def find(self, start: int) -> Values | None:
        index = (start - self.start) // HOUR
        return self.buckets[index] if 0 <= index < len(self.buckets) else None


class Histories:
    """Values of histories as of instants. The last page of each history is kept, for the next instants of a backfill.

    A bucket's value is the last at or before its last second, so instants at the last second of an hour share pages.
    Any other instant is asked for by itself.
    """

    def __init__(self, client: Client, now: Callable[[], datetime]) -> None:
        self._client = client
        self._now = now
        self._pages: dict[str, _Page] = {}
        # An extension. Without it, hours are whole ones in most zones that upstream may have.
        self._zone: dict[str, str | int] = {"tz": "UTC"}

    def values(self, path: str, at: datetime) -> Values:
        """The value of each series as of an instant; series without a value are left out. SourceError for a page that
        is not the one that was asked for."""
        second = unix_second(at)
        start, settled = second + 1 - HOUR, unix_second(self._now() - _SETTLING)
        if (second + 1) % HOUR or second > settled:
            return self._bucket(path, second)
        page = self._pages.get(path)
        values = page.find(start) if page else None
        if values is None:
            count = min(_BUCKETS, (settled + 1 - start) // HOUR)
            page = self._pages[path] = _Page(start, self._buckets(path, start, count))
            values = page.buckets[0]
        return values

    def _bucket(self, path: str, second: int) -> Values:
        """The values of the bucket that begins and ends with a second."""
        answer = self._client.get(path, start=second, end=second, period="h", limit=1)
        values: dict[str, Decimal] = {}
        for asset_id, points in _series(answer.data).items():
            for point in _exactly(points, 1):
                # The bucket's beginning depends on upstream's zone.
                if not 0 <= second - unix_second(point["t"].time()) < HOUR:
                    raise point["t"].error(f"is not the start of the hour that holds {second}")
                _add(values, asset_id, point)
        return values

    def _buckets(self, path: str, start: int, count: int) -> list[dict[str, Decimal]]:
        """The values of `count` hourly buckets, each of which must come exactly once, at its place."""
        buckets: list[dict[str, Decimal]] = []
        ids: set[str] | None = None
        while len(buckets) < count:
            offset = len(buckets)
            answer = self._ask(
                path, start=start, end=start + count * HOUR - 1, period="h", limit=_BUCKETS, offset=offset
            )
            series, size = _series(answer.data), _page_size(answer, offset, count)
            if ids is not None and series.keys() != ids:
                raise answer.data.error("has other series than the page before")
            ids = set(series)
            page: list[dict[str, Decimal]] = [{} for _ in range(size)]
            for asset_id, points in series.items():
                for index, point in enumerate(_exactly(points, size)):
                    expected = start + (offset + index) * HOUR
                    if unix_second(point["t"].time()) != expected:
                        raise point["t"].error(f"is not the start of bucket {offset + index}, {expected}")
                    _add(page[index], asset_id, point)
            buckets += page
        return buckets

    def _ask(self, path: str, **params: str | int) -> UpstreamAnswer:
        try:
            return self._client.get(path, **params, **self._zone)
        except Refused as error:
            if error.status != 400 or not self._zone:
                raise
            answer = self._client.get(path, **params)
            self._zone = {}
            return answer


def _series(data: AnswerField) -> dict[str, AnswerField]:
    """The points of each series by asset id; of a single series under TOTAL."""
    listed = data.get("series")
    if listed is None:
        return {TOTAL: data["points"]}
    return listed.by_asset(lambda item: item["points"])


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


def _exactly(points: AnswerField, count: int) -> list[AnswerField]:
    items = points.items()
    if len(items) != count:
        raise points.error(f"has {len(items)} points instead of {count}")
    return items


def _add(values: dict[str, Decimal], asset_id: str, point: AnswerField) -> None:
    value = point.get("v")
    if value is not None:
        values[asset_id] = value.decimal()


def read_totals(asker: Asker, histories: Histories, at: datetime) -> Totals:
    """The values of all loans, flash loans and liquidations, from the newest state and the histories."""
    state, shown = asker.get(STATE).data, _newest(asker, at)
    loans = state["loans_originated"]
    by_asset = loans["breakdown"].by_asset(lambda item: item["value"].usd())
    return Totals(
        loans=Sum(loans["total_value"].usd(), by_asset),
        liquidations=_liquidations(histories, shown),
        flash_loans=state["flash_loan_volume_total"].usd(),
    )


def read_risk(asker: Asker, histories: Histories, at: datetime) -> RiskTotals:
    """The risk of all borrow accounts, as far as upstream has histories of it, which are an extension."""
    with suppress(NoPast):
        asker.get(STATE)
    return read_past_risk(histories, _newest(asker, at))


def read_past_risk(histories: Histories, at: datetime) -> RiskTotals:
    """The same as of the past."""
    of_risk = (DEBT_AT_RISK, ACCOUNTS_AT_RISK, LIQUIDATABLE_DEBT, BAD_DEBT)
    return RiskTotals(*(_total(histories, history, at) for history in of_risk))


def _newest(asker: Asker, at: datetime) -> datetime:
    """The newest instant up to another for which histories have values: they have none after upstream's snapshot."""
    return instant(max(asker.snapshots, default=unix_second(at)))


def read_past_totals(asker: Asker, histories: Histories, at: datetime) -> Totals:
    """The same as of the past, from histories; flash loans only if upstream tells its past state."""
    try:
        flash_loans = asker.get(STATE).data["flash_loan_volume_total"].usd()
    except NoPast:
        flash_loans = None
    return Totals(_sum(histories, LOANS, at), _liquidations(histories, at), flash_loans)


def _liquidations(histories: Histories, at: datetime) -> Sum | None:
    """The values of all liquidations; None if upstream has no such history, which is an extension."""
    return _unless_lacking(lambda: _sum(histories, LIQUIDATIONS, at))


def _total(histories: Histories, history: History, at: datetime) -> Decimal | None:
    """The value of a history without assets; None before its first, or if upstream has no such history."""
    assert history.total
    path = history.total.path
    return _unless_lacking(lambda: histories.values(path, at).get(TOTAL))


def _unless_lacking(ask: Callable[[], _T]) -> _T | None:
    """What upstream answers; None if it has no such path."""
    try:
        return ask()
    except Refused as error:
        if error.lacks_path:
            return None
        raise


def _sum(histories: Histories, history: History, at: datetime) -> Sum | None:
    """The values of a history; None before its first."""
    assert history.total
    assert history.by_asset
    total = histories.values(history.total.path, at)
    return Sum(total[TOTAL], histories.values(history.by_asset.path, at)) if total else None
