"""Paths that answer a page of a history."""

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import Any
from zoneinfo import ZoneInfo

import falcon

from analytics_service.errors import ParameterInvalid
from analytics_service.history.catalogue import Path
from analytics_service.history.grid import AlignedGrid, fit_grid
from analytics_service.history.page import Page, Query, is_large, read_page, read_total
from analytics_service.history.reader import HistoryReader
from analytics_service.http import params
from analytics_service.http.answer import Answer
from analytics_service.http.answers import CacheKey
from analytics_service.http.envelope import success
from analytics_service.http.links import replaced
from analytics_service.http.times import Edge
from analytics_service.market.assets import ids_of
from analytics_service.present.series import MULTI_SERIES, SINGLE_SERIES
from analytics_service.present.shapes import Scope, Shape
from analytics_service.resources.snapshots import Shared, SnapshotPath
from analytics_service.state.view import View
from analytics_service.store.ledger import Head

# Observations may have been imported that lie ahead of now; jobs still write those of the last few minutes.
_LATE = 600
_SCOPE = Scope()
# Buckets of a page, and the most buckets of period=auto, where a request does not say.
_LIMIT = 200
_POINTS = 500


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
        """The page that is asked for, in the service's zone where none is named, and the words of the request."""
        given = super().given(req, path)
        query = _query(given, given["tz"] or self._zone, self._shared.schedule.now())
        return {**given, "page": query, "path": req.path, "words": req.query_string}

    def question(self, given: Mapping[str, Any]) -> tuple[str | None, bool]:
        """The seconds and the width that are meant, where the request leaves them to now, or to `auto`."""
        is_moving = given["start"].is_relative or given["end"].is_relative
        return _resolved(given, given["page"].offset) if is_moving or given["page"].is_aligned else None, is_moving

    def next(self, given: Mapping[str, Any]) -> str | None:
        """The same request, for the next page."""
        following = given["page"].next_offset
        return None if following is None else f"{given['path']}?{_resolved(given, following)}"

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

    def is_closed(self, view: View, given: Mapping[str, Any]) -> bool:
        """Whether the page lies wholly before the newest observation, and in a past that no job is late for."""
        query: Query = given["page"]
        newest = min(view.head(*self.families).last_observed_at, self._shared.schedule.now() - _LATE)
        return query.is_closed(newest)

    @staticmethod
    def page(reader: HistoryReader, query: Query, head: Head) -> Page:
        """The page in the state that a head names."""
        raise NotImplementedError


class MultiSeries(HistoryPath):
    """History of many assets: one series each, all with the same buckets."""

    query = (*params.RANGE, params.ASSET_IDS, params.SYMBOLS)
    shape = MULTI_SERIES
    page = staticmethod(read_page)

    def described_by(self, view: View, given: Mapping[str, Any]) -> tuple[str, ...]:
        """Symbols are those of the assets that come with prices."""
        return (*super().described_by(view, given), *(("prices",) if given["symbols"] else ()))

    def _new(self, req: falcon.Request, key: CacheKey, given: Mapping[str, Any], view: View) -> Answer:
        if given["symbols"]:
            ids = [
                *(given["asset_ids"] or ()),
                *ids_of(given["symbols"], {one.id: one.symbol for one in view.assets.values()}),
            ]
            given = {**given, "page": replace(given["page"], ids=list(dict.fromkeys(ids)))}
        return super()._new(req, key, given, view)


class SingleSeries(HistoryPath):
    """History of the sum over all assets."""

    query = params.RANGE
    shape = SINGLE_SERIES
    page = staticmethod(read_total)


def _query(given: Mapping[str, Any], zone: ZoneInfo, now: int) -> Query:
    """The page that parameters ask for. ParameterInvalid where they do not go together."""
    start, end = (given[edge].second(zone, now, edge) for edge in (Edge.START, Edge.END))
    page = {
        "zone": zone,
        "offset": given["offset"],
        "carry": given["fill"] == "previous",
        "ids": given.get("asset_ids"),
        "digits": given["digits"],
    }
    if given["period"] is not None:
        if given["points"] is not None:
            raise ParameterInvalid("points", "is for period=auto only")
        return Query(start, end, given["period"], given["interval"] or 1, limit=given["limit"] or _LIMIT, **page)
    if given["interval"] is not None:
        raise ParameterInvalid("interval", "must not be given with period=auto, which chooses it")
    points = given["points"] or _POINTS
    grid = fit_grid(start, end, points, zone)
    return Query(
        grid.start, grid.end, grid.period, grid.interval, limit=given["limit"] or points, is_aligned=True, **page
    )


def _resolved(given: Mapping[str, Any], offset: int) -> str:
    """The query of a page that leaves nothing to now, and nothing to `auto` unless only that has the same buckets."""
    query: Query = given["page"]
    width: dict[str, object] = {"period": query.period, "interval": query.interval, "points": None}
    if isinstance(query.grid, AlignedGrid) and not query.grid.is_plain:
        width = {"period": params.AUTO, "points": given["points"] or _POINTS}
    return replaced(
        given["words"], {"start": query.start, "end": query.end, **width, "limit": query.limit, "offset": offset}
    )
