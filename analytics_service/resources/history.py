"""Paths that answer a page of a history."""

from zoneinfo import ZoneInfo

import falcon

from analytics_service.http import params
from analytics_service.http.envelope import success
from analytics_service.http.resource import Resource, answer
from analytics_service.series.page import Pages, Query
from analytics_service.series.rows import History
from analytics_service.store.connection import Store
from analytics_service.store.ledger import Heads


class MultiSeriesHistory(Resource):
    """History of many assets: one series each, all with the same buckets."""

    query = (*params.RANGE, params.ASSET_IDS)

    def __init__(self, store: Store, heads: Heads, history: History, zone: ZoneInfo) -> None:
        self._pages = Pages(store, history)
        self._heads = heads
        self._family = history.family
        self._zone = zone

    def on_get(self, req: falcon.Request, resp: falcon.Response) -> None:
        """`{range, series, pagination}`."""
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
            ids=given["asset_ids"],
        )
        head = self._heads.get(self._family)
        answer(resp, success(self._pages.page(query, head)), head.at)
