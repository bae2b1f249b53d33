"""Paths that answer a page of a history."""

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any
from zoneinfo import ZoneInfo

import falcon

from analytics_service.history.catalogue import Path
from analytics_service.history.formats.base import Format
from analytics_service.history.formats.registry import BY_MEDIA, MEDIA
from analytics_service.history.page import Page, Query, is_large, read_page, read_total
from analytics_service.history.reader import HistoryReader
from analytics_service.http import params
from analytics_service.http.answer import Headers
from analytics_service.http.answers import CacheKey
from analytics_service.http.coding import IDENTITY, Coding
from analytics_service.http.envelope import success_around
from analytics_service.present.series import MULTI_SERIES, POINTS, SINGLE_SERIES
from analytics_service.present.shapes import OneOf, Scope
from analytics_service.resources.snapshots import Shared, SnapshotPath
from analytics_service.state.view import View
from analytics_service.store.assets import SHOWN_WITH
from analytics_service.store.ledger import Head

# Observations may have been imported that lie ahead of now; jobs still write those of the last few minutes.
_LATE = 600
_SCOPE = Scope()


class HistoryPath(SnapshotPath):
    """A path that answers pages of a history."""

    shape: OneOf
    media = MEDIA
    names_assets = True
    """Whether series are those of assets."""

    def __init__(self, shared: Shared, reader: HistoryReader, path: Path, zone: ZoneInfo) -> None:
        super().__init__(shared)
        self.summary = path.summary
        self.families = (reader.history.family,)
        self._reader = reader
        self._zone = zone
        self._name = path.path.strip("/").replace("/", "-")

    def given(self, req: falcon.Request, path: Mapping[str, str]) -> dict[str, Any]:
        """The page that is asked for, in the service's zone where none is named."""
        given = super().given(req, path)
        return {"page": _query(given, given["format"] or BY_MEDIA[req.context.media], self._zone)}

    def body(self, view: View, given: Mapping[str, Any]) -> bytes:
        """The page: in an envelope, unless the format is one of files."""
        query: Query = given["page"]
        symbols = view.symbols if self._shows_symbols(query) else {}
        page = self.page(self._reader, query, view.head(*self.families), symbols)
        if query.format.suffix:
            return page.body()
        return success_around(self.shape.render(page, _SCOPE), POINTS, page.chunks)

    def described_by(self, view: View, given: Mapping[str, Any]) -> tuple[str, ...]:
        """Symbols are those of the definitions of assets."""
        return (SHOWN_WITH,) if self._shows_symbols(given["page"]) and view.shows_assets else ()

    def content_headers(self, given: Mapping[str, Any]) -> Headers:
        """Of a file, its type and name."""
        query: Query = given["page"]
        if not query.format.suffix:
            return ()
        name = f"{self._name}-{query.start}-{query.end}.{query.format.suffix}"
        return ("Content-Type", query.format.content_type), ("Content-Disposition", f'attachment; filename="{name}"')

    def coding(self, key: CacheKey, given: Mapping[str, Any]) -> Coding:
        """Files that are compressed by themselves are sent as they are: a coding takes time and saves nothing."""
        query: Query = given["page"]
        return IDENTITY if query.format.is_packed else key.coding

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

    def _shows_symbols(self, query: Query) -> bool:
        return self.names_assets and query.format.names_assets

    @staticmethod
    def page(reader: HistoryReader, query: Query, head: Head, symbols: Mapping[str, str]) -> Page:
        """The page in the state that a head names."""
        raise NotImplementedError


class MultiSeries(HistoryPath):
    """History of many assets: one series each, all with the same buckets."""

    query = (*params.RANGE, params.FORMAT, params.ASSET_IDS)
    shape = MULTI_SERIES
    page = staticmethod(read_page)


class SingleSeries(HistoryPath):
    """History of the sum over all assets."""

    query = (*params.RANGE, params.FORMAT)
    names_assets = False
    shape = SINGLE_SERIES
    page = staticmethod(read_total)


def _query(given: Mapping[str, Any], format: Format, zone: ZoneInfo) -> Query:
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
        format=format,
    )
