"""Paths that answer a page of a history."""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from typing import Any
from urllib.parse import quote, urlencode
from zoneinfo import ZoneInfo

import falcon

from analytics_service.errors import ParameterInvalid
from analytics_service.history.candles import Aggregate, Fill
from analytics_service.history.formats import BY_MEDIA, MEDIA
from analytics_service.history.formats.base import Format
from analytics_service.history.formats.json import JSON
from analytics_service.history.grid import fit_grid
from analytics_service.history.page import Page, Query, points_of, read_page
from analytics_service.history.reader import HistoryReader
from analytics_service.history.times import Edge
from analytics_service.http import params
from analytics_service.http.answer import Headers, success
from analytics_service.http.params import CALENDAR, DEFAULT_LIMIT, DEFAULT_POINTS
from analytics_service.market.assets import resolve_ids
from analytics_service.present.series import MULTI_SERIES, SINGLE_SERIES
from analytics_service.present.shapes import OneOf, Scope
from analytics_service.resources.snapshots import Arguments, Resolved, SharedState, SnapshotPath, file_headers
from analytics_service.state.view import View
from analytics_service.store.datasets.assets import ASSETS, ASSETS_DATASET
from analytics_service.store.datasets.histories import HistoryRoute
from analytics_service.store.losses import require_kept

_SCOPE = Scope()
# A page with more points is large (rule 2.13, large pages).
_LARGE = 50_000


class Pages(SnapshotPath):
    """A path that answers pages of buckets."""

    media = MEDIA
    shape: OneOf
    points = DEFAULT_POINTS
    """The default of the most buckets with period=auto."""

    def parse(self, req: falcon.Request, path: Mapping[str, str]) -> dict[str, Any]:
        """All parameters, and the `page` that they ask for, by default in the service's zone."""
        arguments = super().parse(req, path)
        form = arguments["format"] or BY_MEDIA[req.context.media]
        zone, now = arguments["tz"] or self._shared.zone, self._shared.schedule.now()
        points = arguments["points"] or self.points
        return {**arguments, "page": _query(arguments, zone, form, now, points)}

    def resolve(self, req: falcon.Request, arguments: Arguments) -> Resolved:
        """An answer that depends on now or `auto` is cached under exact seconds and bucket widths."""
        query: Query = arguments["page"]
        is_moving = arguments["start"].is_relative or arguments["end"].is_relative
        next_offset = query.next_offset
        following = None if next_offset is None else f"?{query_string(req.params, query, next_offset)}"
        return Resolved(
            query_string(req.params, query, query.offset) if is_moving or query.is_aligned else None,
            is_moving,
            lambda record: following,
            self._file_headers(query, arguments) if query.format.suffix else (),
            query.format.is_packed,
        )

    def body(self, record: Any, view: View, arguments: Arguments) -> bytes:
        """The file, or the page in an envelope."""
        return record.body if record.query.format.suffix else success(self.shape.render(record, _SCOPE))

    @abstractmethod
    def file_name(self, arguments: Arguments) -> str:
        """The name of a file, without its range."""

    def _file_headers(self, query: Query, arguments: Arguments) -> Headers:
        return file_headers(query.format, self.file_name(arguments), str(query.start), str(query.end), query.offset)


class HistoryPath(Pages):
    """A path that answers pages of a history: a series for each asset, all with the same buckets, or a single series
    with the sum over all assets."""

    def __init__(self, shared: SharedState, reader: HistoryReader, path: HistoryRoute) -> None:
        super().__init__(shared)
        self.single = path is reader.history.total
        self.summary = path.summary
        self.datasets = (reader.history.dataset,)
        self.shape = SINGLE_SERIES if self.single else MULTI_SERIES
        by_asset = () if self.single else (params.ASSET_IDS, params.SYMBOLS)
        others = (params.OTHERS,) if by_asset and reader.history.value == "usd" else ()
        self.query = (*params.RANGE, params.FORMAT, *by_asset, *others)
        self._file_name = path.path.strip("/").replace("/", "-")
        self._reader = reader

    def record(self, view: View, arguments: Arguments) -> Page:
        """The page, with the view's symbols. A large page waits for a slot."""
        query, head = arguments["page"], view.head(*self.datasets)
        if names := [*(query.ids or ()), *(arguments.get("symbols") or ())]:
            query = replace(query, ids=resolve_ids(names, view.described))
        symbols = {} if self.single else view.symbols
        is_large = points_of(self._reader, query, head, single=self.single) > _LARGE
        with self._shared.large_pages.acquire() if is_large else nullcontext():
            return read_page(self._reader, query, head, symbols, single=self.single, ended=self._ends(view))

    def require_kept(self, view: View, arguments: Arguments, datasets: Sequence[str]) -> None:
        """Raises Lost if rows of the history are lost in the page, or for deltas just before it."""
        query: Query = arguments["page"]
        first = query.starts[0] - (query.agg is Aggregate.DELTA) if query.starts else query.last
        needed = (self._reader.history.name, ASSETS)
        lost = (loss for loss in view.losses(*self.datasets) if loss.what in needed)
        require_kept(lost, first, query.last + 1)

    def file_name(self, arguments: Arguments) -> str:
        return self._file_name

    def begins(self, record: Page) -> int | None:
        return record.begins

    def described_by(self, view: View, arguments: Arguments) -> tuple[str, ...]:
        """Symbols and ends come from the definitions of assets."""
        return (ASSETS_DATASET,) if not self.single and view.shows_assets else ()

    def as_of(self, record: Page, view: View, arguments: Arguments) -> dict[str, int]:
        """The newest instant of the dataset up to the end of the page."""
        return {} if record.as_of is None else {self.datasets[0]: record.as_of}

    def closes_at(self, view: View, arguments: Arguments) -> int | None:
        """When jobs can no longer change the page, if it ends before the newest observation."""
        query: Query = arguments["page"]
        is_closed = query.is_closed(view.head(*self.datasets).last_observed_at)
        return self.settled_at(query.last + 1) if is_closed else None

    def _ends(self, view: View) -> Mapping[str, int]:
        """The ends of assets; none for cumulative histories, whose series continue so that they add up to the total."""
        return {} if self.single or self._reader.history.cumulative else view.ends


def _query(arguments: Arguments, zone: ZoneInfo, form: Format, now: int, points: int) -> Query:
    """The page that parameters ask for; with period=auto at most `points` buckets. Raises ParameterInvalid if they
    contradict each other."""
    start, end = (arguments[edge].second(zone, now, edge) for edge in (Edge.START, Edge.END))
    page = {
        "zone": zone,
        "offset": arguments["offset"],
        "fill": arguments["fill"],
        "ids": arguments.get("asset_ids"),
        "digits": arguments["digits"],
        "agg": arguments["agg"],
        "format": form,
        "others": arguments.get("others", False),
    }
    if page["others"] and form is JSON:
        raise ParameterInvalid(
            "others", "needs format=columns, csv, arrow or parquet: in json each series has an asset"
        )
    if page["others"] and (page["agg"] is not Aggregate.LAST or page["fill"] is Fill.NONE):
        raise ParameterInvalid("others", "needs agg=last, and fill other than none: it sums the values of assets")
    period, interval, limit = (arguments[name] for name in ("period", "interval", "limit"))
    if period is not None:
        if arguments["points"] is not None:
            raise ParameterInvalid("points", "needs period=auto")
        # A file with only the first buckets would look complete.
        limit = limit or (None if form.suffix else DEFAULT_LIMIT)
        is_aligned = arguments["align"] == CALENDAR
        return Query(start, end, period, interval or 1, limit=limit, is_aligned=is_aligned, **page)
    if interval is not None:
        raise ParameterInvalid("interval", "is not allowed with period=auto, which chooses it")
    grid = fit_grid(start, end, points, zone)
    return Query(grid.start, grid.end, grid.period, grid.interval, limit=limit, is_aligned=True, **page)


def query_string(given: Mapping[str, object], query: Query, offset: int) -> str:
    """The query string of the page at an offset: the `given` parameters, with `now` and `auto` resolved."""
    page = {
        "start": query.start,
        "end": query.end,
        "period": query.period,
        "interval": query.interval,
        "points": None,
        **({"align": CALENDAR} if query.is_aligned else {}),
        "limit": query.limit,
        "offset": offset,
    }
    values = {name: value for name, value in {**given, **page}.items() if value is not None}
    # Only values from the caller need quoting.
    return "&".join(
        [
            f"{name}={value}" if name in page else urlencode({name: value}, quote_via=quote)
            for name, value in values.items()
        ]
    )
