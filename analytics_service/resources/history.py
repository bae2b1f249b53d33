"""Paths that answer a page of a history."""

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any
from zoneinfo import ZoneInfo

import falcon

from analytics_service.history.catalogue import Path
from analytics_service.history.page import Page, Query, is_large, read_page, read_total
from analytics_service.history.reader import HistoryReader
from analytics_service.http import params
from analytics_service.http.envelope import success
from analytics_service.present.series import MULTI_SERIES, SINGLE_SERIES
from analytics_service.present.shapes import Scope, Shape
from analytics_service.resources.snapshots import LATE, Shared, SnapshotPath
from analytics_service.state.view import View
from analytics_service.store.ledger import Head

_SCOPE = Scope()


class HistoryPath(SnapshotPath):
    """A path that answers pages of a history."""

    shape: Shape

    def __init__(self, shared: Shared, reader: HistoryReader, path: Path, zone: ZoneInfo) -> None:
        super().__init__(shared)
        self.summary = path.summary
        self.families = (reader.history.family,)
        self._reader = reader
        self._zone = zone

    def given(self, req: falcon.Request, path: Mapping[str, str]) -> dict[str, Any]:
        """The page that is asked for, in the service's zone where none is named."""
        return {"page": _query(super().given(req, path), self._zone)}

    def body(self, view: View, given: Mapping[str, Any]) -> bytes:
        """The page."""
        page = self.page(self._reader, given["page"], view.head(*self.families))
        return success(self.shape.render(page, _SCOPE))

    def turn(self, view: View, given: Mapping[str, Any]) -> AbstractContextManager[None]:
        """Large pages take turns. LargePagesBusy if too many wait for theirs."""
        large = is_large(self._reader, given["page"], view.head(*self.families))
        return self._shared.large_pages.turn() if large else nullcontext()

    def as_of(self, view: View, given: Mapping[str, Any]) -> dict[str, int]:
        """The newest instant of the family that the page reaches."""
        head, query = view.head(*self.families), given["page"]
        at = head.at if query.last >= head.at else self._reader.last_instant(head, query.last)
        return {} if at is None else {head.family: at}

    def closes_at(self, view: View, given: Mapping[str, Any]) -> int | None:
        """Now, if the page lies wholly before the newest observation, and in a past that no job is late for.

        Observations may have been imported that lie ahead of now.
        """
        query: Query = given["page"]
        now = self._shared.schedule.now()
        return now if query.is_closed(min(view.head(*self.families).last_observed_at, now - LATE)) else None

    @staticmethod
    def page(reader: HistoryReader, query: Query, head: Head) -> Page:
        """The page in the state that a head names."""
        raise NotImplementedError


class MultiSeries(HistoryPath):
    """History of many assets: one series each, all with the same buckets."""

    query = (*params.RANGE, params.ASSET_IDS)
    shape = MULTI_SERIES
    page = staticmethod(read_page)


class SingleSeries(HistoryPath):
    """History of the sum over all assets."""

    query = params.RANGE
    shape = SINGLE_SERIES
    page = staticmethod(read_total)


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
        agg=given["agg"],
    )
