"""Paths that answer a page of a history."""

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any
from zoneinfo import ZoneInfo

import falcon

from analytics_service.http import params
from analytics_service.http.envelope import success
from analytics_service.present.series import MULTI_SERIES, SINGLE_SERIES
from analytics_service.resources.snapshots import Shared, SnapshotPath
from analytics_service.resources.view import View
from analytics_service.series.page import Pages
from analytics_service.series.query import Query
from analytics_service.store.ledger import Head

# Observations may have been imported that lie before us; jobs still write those of the last few minutes.
_LATE = 600


class HistoryPath(SnapshotPath):
    """A path that answers pages of a history."""

    def __init__(self, shared: Shared, pages: Pages, zone: ZoneInfo, summary: str) -> None:
        super().__init__(shared)
        self.summary = summary
        self.families = (pages.family,)
        self._pages = pages
        self._zone = zone

    def given(self, req: falcon.Request, path: Mapping[str, str]) -> dict[str, Any]:
        """The page that is asked for, in the service's zone where none is named."""
        return {"page": _query(super().given(req, path), self._zone)}

    def body(self, view: View, given: Mapping[str, Any]) -> bytes:
        """The page."""
        return success(self.page(given["page"], view.head(*self.families)))

    def is_closed(self, view: View, given: Mapping[str, Any]) -> bool:
        """Whether the page lies wholly before the newest observation, and in a past that no job is late for."""
        query: Query = given["page"]
        newest = min(view.head(*self.families).last_observed_at, self._shared.schedule.now() - _LATE)
        return query.is_closed(newest)

    @abstractmethod
    def page(self, query: Query, head: Head) -> dict[str, object]:
        """The page's `data`."""


class MultiSeries(HistoryPath):
    """History of many assets: one series each, all with the same buckets."""

    query = (*params.RANGE, params.ASSET_IDS)
    shape = MULTI_SERIES

    def page(self, query: Query, head: Head) -> dict[str, object]:
        """`{range, series, pagination}`."""
        return self._pages.multi(query, head)


class SingleSeries(HistoryPath):
    """History of the sum over all assets."""

    query = params.RANGE
    shape = SINGLE_SERIES

    def page(self, query: Query, head: Head) -> dict[str, object]:
        """`{range, points, pagination}`."""
        return self._pages.single(query, head)


def _query(given: Mapping[str, Any], zone: ZoneInfo) -> Query:
    return Query(
        start=given["start"],
        end=given["end"],
        period=given["period"],
        interval=given["interval"],
        zone=given["tz"] or zone,
        limit=given["limit"],
        offset=given["offset"],
        carry=given["fill"] == "previous",
        ids=given.get("asset_ids"),
    )
