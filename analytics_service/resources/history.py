"""Paths that answer a page of a history."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from urllib.parse import quote, urlencode
from zoneinfo import ZoneInfo

import falcon

from analytics_service.errors import LargePagesBusy, ParameterInvalid
from analytics_service.history.formats import BY_MEDIA, MEDIA
from analytics_service.history.formats.base import Format
from analytics_service.history.grid import AlignedGrid, fit_grid
from analytics_service.history.page import Page, Query, points_of, read_page
from analytics_service.history.reader import HistoryReader
from analytics_service.http import params
from analytics_service.http.answer import Headers
from analytics_service.http.answers import CacheKey
from analytics_service.http.coding import IDENTITY, Coding
from analytics_service.http.envelope import success
from analytics_service.http.params import DEFAULT_LIMIT, DEFAULT_POINTS
from analytics_service.http.times import Edge
from analytics_service.market.assets import ids_of
from analytics_service.present.series import MULTI_SERIES, SINGLE_SERIES
from analytics_service.present.shapes import OneOf, Scope
from analytics_service.resources.snapshots import LATE, Shared, SnapshotPath
from analytics_service.state.view import View
from analytics_service.store.assets import SHOWN_WITH
from analytics_service.store.histories import Path

_SCOPE = Scope()
# Points of a large page (rule 2.13).
_LARGE = 50_000


class HistoryPath(SnapshotPath):
    """A path that answers pages of a history."""

    shape: OneOf
    media = MEDIA
    single = False
    """Whether there is one series, over all assets."""

    def __init__(self, shared: Shared, reader: HistoryReader, path: Path) -> None:
        super().__init__(shared)
        self.summary = path.summary
        self.families = (reader.history.family,)
        self._reader = reader
        self._name = path.path.strip("/").replace("/", "-")

    def given(self, req: falcon.Request, path: Mapping[str, str]) -> dict[str, Any]:
        """The page that is asked for, in the service's zone where none is named, and path and texts of the request."""
        given = super().given(req, path)
        form = given["format"] or BY_MEDIA[req.context.media]
        query = _query(given, given["tz"] or self._shared.zone, form, self._shared.schedule.now())
        return {**given, "page": query, "path": req.path, "texts": req.params}

    def question(self, given: Mapping[str, Any]) -> tuple[str | None, bool]:
        """The query with exact seconds and bucket width, if the request leaves them to now or to `auto`."""
        is_moving = given["start"].is_relative or given["end"].is_relative
        return _resolved(given, given["page"].offset) if is_moving or given["page"].is_aligned else None, is_moving

    def next(self, given: Mapping[str, Any]) -> str | None:
        """The same request, for the next page."""
        following = given["page"].next_offset
        return None if following is None else f"{given['path']}?{_resolved(given, following)}"

    def record(self, view: View, given: Mapping[str, Any]) -> Page:
        """The page. LargePagesBusy if it is large and too many of them are being made."""
        query, head = self._page(view, given), view.head(*self.families)
        symbols = view.symbols if self._has_symbols(given) else {}
        is_large = points_of(self._reader, query, head) > _LARGE
        if is_large and not self._shared.large_pages.acquire(blocking=False):
            raise LargePagesBusy
        try:
            return read_page(self._reader, query, head, symbols, single=self.single)
        finally:
            if is_large:
                self._shared.large_pages.release()

    def body(self, record: Page, view: View, given: Mapping[str, Any]) -> bytes:
        """The page: in an envelope, unless the format is one of files."""
        return record.body if record.query.format.suffix else success(self.shape.render(record, _SCOPE))

    def described_by(self, view: View, given: Mapping[str, Any]) -> tuple[str, ...]:
        """Symbols are of the definitions of assets."""
        return (SHOWN_WITH,) if self._has_symbols(given) and view.shows_assets else ()

    def content_headers(self, given: Mapping[str, Any]) -> Headers:
        """Of a file, its type and name."""
        query: Query = given["page"]
        if not query.format.suffix:
            return ()
        parts = (self._name, query.start, query.end, *([query.offset] if query.offset else []))
        name = f"{'-'.join(map(str, parts))}.{query.format.suffix}"
        return ("Content-Type", query.format.content_type), ("Content-Disposition", f'attachment; filename="{name}"')

    def coding(self, key: CacheKey, given: Mapping[str, Any]) -> Coding:
        """Files that are compressed by themselves are sent as they are: a coding takes time and saves nothing."""
        query: Query = given["page"]
        return IDENTITY if query.format.is_packed else key.coding

    def as_of(self, record: Page, view: View, given: Mapping[str, Any]) -> dict[str, int]:
        """The newest instant of the family that the page reaches."""
        return {} if record.as_of is None else {self.families[0]: record.as_of}

    def closes_at(self, view: View, given: Mapping[str, Any]) -> int | None:
        """When jobs are too late to change the page, if all of it is before the newest observation."""
        query: Query = given["page"]
        return query.last + 1 + LATE if query.is_closed(view.head(*self.families).last_observed_at) else None

    def _has_symbols(self, given: Mapping[str, Any]) -> bool:
        """Whether symbols name series, or are shown."""
        return bool(given.get("symbols")) or (not self.single and given["page"].format.names_assets)

    def _page(self, view: View, given: Mapping[str, Any]) -> Query:
        """The page that is asked for, with the ids of assets for their symbols."""
        query: Query = given["page"]
        if not given.get("symbols"):
            return query
        return replace(query, ids=[*(query.ids or ()), *ids_of(given["symbols"], view.symbols)])


class MultiSeries(HistoryPath):
    """History of many assets: one series each, all with the same buckets."""

    query = (*params.RANGE, params.FORMAT, params.ASSET_IDS, params.SYMBOLS)
    shape = MULTI_SERIES


class SingleSeries(HistoryPath):
    """History of the sum over all assets."""

    query = (*params.RANGE, params.FORMAT)
    single = True
    shape = SINGLE_SERIES


def _query(given: Mapping[str, Any], zone: ZoneInfo, form: Format, now: int) -> Query:
    """The page that parameters ask for. ParameterInvalid where they do not go together."""
    start, end = (given[edge].second(zone, now, edge) for edge in (Edge.START, Edge.END))
    page = {
        "zone": zone,
        "offset": given["offset"],
        "carry": given["fill"] == "previous",
        "ids": given.get("asset_ids"),
        "digits": given["digits"],
        "agg": given["agg"],
        "format": form,
    }
    if given["period"] is not None:
        if given["points"] is not None:
            raise ParameterInvalid("points", "is for period=auto only")
        return Query(start, end, given["period"], given["interval"] or 1, limit=given["limit"] or DEFAULT_LIMIT, **page)
    if given["interval"] is not None:
        raise ParameterInvalid("interval", "must not be given with period=auto, which chooses it")
    points = given["points"] or DEFAULT_POINTS
    grid = fit_grid(start, end, points, zone)
    return Query(
        grid.start, grid.end, grid.period, grid.interval, limit=given["limit"] or points, is_aligned=True, **page
    )


def _resolved(given: Mapping[str, Any], offset: int) -> str:
    """The query of a page with `now` resolved, and `auto` too unless no other period has the same buckets."""
    query: Query = given["page"]
    width: dict[str, object] = {"period": query.period, "interval": query.interval, "points": None}
    if isinstance(query.grid, AlignedGrid) and not query.grid.is_plain:
        width = {"period": params.AUTO, "points": given["points"] or DEFAULT_POINTS}
    page = {"start": query.start, "end": query.end, **width, "limit": query.limit, "offset": offset}
    values = {name: value for name, value in {**given["texts"], **page}.items() if value is not None}
    # Only what came from the caller needs quoting.
    return "&".join(
        [
            f"{name}={value}" if name in page else urlencode({name: value}, quote_via=quote)
            for name, value in values.items()
        ]
    )
