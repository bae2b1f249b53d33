"""Paths that answer a page of a history."""

from abc import abstractmethod
from zoneinfo import ZoneInfo

import falcon

from analytics_service.http import params
from analytics_service.http.envelope import success
from analytics_service.http.resource import Resource, answer
from analytics_service.present.series import MULTI_SERIES, SINGLE_SERIES
from analytics_service.series.page import Pages, Query
from analytics_service.series.rows import History
from analytics_service.store.connection import Store
from analytics_service.store.ledger import Head, Heads


class HistoryPath(Resource):
    """A path that answers pages of a history."""

    def __init__(self, store: Store, heads: Heads, history: History, zone: ZoneInfo, summary: str) -> None:
        self.summary = summary
        self._pages = Pages(store, history)
        self._heads = heads
        self._family = history.family
        self._zone = zone

    def on_get(self, req: falcon.Request, resp: falcon.Response) -> None:
        """A page, read from the store."""
        given = params.read(req, self.query)
        query = Query(
            start=given["start"],
            end=given["end"],
            period=given["period"],
            interval=given["interval"],
            zone=given["tz"] or self._zone,
            limit=given["limit"],
            offset=given["offset"],
            carry=given["fill"] == "previous",
            ids=given.get("asset_ids"),
        )
        head = self._heads.get(self._family)
        answer(resp, success(self.page(query, head)), head.at)

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
