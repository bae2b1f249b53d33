"""Paths that answer a page of a history."""

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
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
from analytics_service.http.answer import Validators, success
from analytics_service.http.params import CALENDAR, DEFAULT_LIMIT, DEFAULT_POINTS
from analytics_service.market.assets import resolve_ids
from analytics_service.present.series import MULTI_SERIES, SINGLE_SERIES
from analytics_service.present.shapes import OneOf, Scope
from analytics_service.resources.snapshots import (
    Arguments,
    Asked,
    Datasets,
    Render,
    Rendered,
    SharedState,
    SnapshotPath,
    file_headers,
)
from analytics_service.state.view import View
from analytics_service.store.datasets.assets import ASSETS, ASSETS_DATASET
from analytics_service.store.datasets.histories import HistoryRoute
from analytics_service.store.ledger import Head
from analytics_service.store.losses import require_kept

_SCOPE = Scope()
# A page with more points is large (rule 2.13, large pages).
_LARGE = 50_000


class Pages(SnapshotPath):
    """A path that answers pages of buckets."""

    media = MEDIA
    shape: OneOf

    def page(self, req: falcon.Request, arguments: Arguments, points: int) -> Query:
        """The page that parameters ask for, by default in the service's zone, and with period=auto at most `points`
        buckets. Raises ParameterInvalid if they contradict each other, or for too many buckets."""
        form = arguments["format"] or BY_MEDIA[req.context.media]
        zone, now = arguments["tz"] or self._shared.zone, self._shared.schedule.now()
        query = _query(arguments, zone, form, now, arguments["points"] or points)
        # Too many buckets are refused before anything is read.
        _ = query.grid
        return query

    def asked(
        self, req: falcon.Request, arguments: Arguments, query: Query, datasets: Datasets, render: Render
    ) -> Asked:
        """An answer that depends on now or `auto` is cached under exact seconds and bucket widths."""
        is_moving = arguments["start"].is_relative or arguments["end"].is_relative
        exact = query_string(req.params, query, query.offset) if is_moving or query.is_aligned else None
        return Asked(datasets, render, query=exact, is_moving=is_moving)

    def rendered(
        self,
        req: falcon.Request,
        page: Page,
        as_of: Mapping[str, int],
        heads: Sequence[Head],
        newest: int,
        *name: object,
    ) -> Rendered:
        """The file, or the page in an envelope. Jobs can no longer change it if it ends before `newest` (unix seconds).
        The file is called `name`, with its range."""
        query, form, next_offset = page.query, page.query.format, page.query.next_offset
        names = (*name, str(query.start), str(query.end), query.offset)
        validators = Validators(
            as_of=as_of,
            due=self._shared.schedule.due(heads),
            closes_at=self.settled_at(query.last + 1) if query.is_closed(newest) else None,
            next=None if next_offset is None else f"?{query_string(req.params, query, next_offset)}",
            begins=page.begins,
        )
        if form.suffix:
            return Rendered(page.body, validators, file_headers(form, *names), form.is_packed)
        return Rendered(success(self.shape.render(page, _SCOPE)), validators)


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

    def ask(self, req: falcon.Request, path: Mapping[str, str]) -> Asked:
        """A page, with symbols and ends from the definitions of assets."""
        arguments = self.parse(req, path)
        query = self.page(req, arguments, DEFAULT_POINTS)

        def datasets(view: View) -> tuple[str, ...]:
            return (*self.datasets, ASSETS_DATASET) if not self.single and view.shows_assets else self.datasets

        return self.asked(req, arguments, query, datasets, partial(self._page, req, query, arguments.get("symbols")))

    def _page(self, req: falcon.Request, query: Query, symbols: Sequence[str] | None, view: View) -> Rendered:
        """The page, with the view's symbols. A large page waits for a slot."""
        (dataset,) = self.datasets
        head = view.head(dataset)
        self._require_kept(view, query)
        if names := [*(query.ids or ()), *(symbols or ())]:
            query = replace(query, ids=resolve_ids(names, view.described))
        shown = {} if self.single else view.symbols
        # Cumulative series continue after the ends of their assets, so that they add up to the total.
        ends = {} if self.single or self._reader.history.cumulative else view.ends
        is_large = points_of(self._reader, query, head, single=self.single) > _LARGE
        with self._shared.large_pages.acquire() if is_large else nullcontext():
            page = read_page(self._reader, query, head, shown, single=self.single, ended=ends)
        as_of = {} if page.as_of is None else {dataset: page.as_of}
        return self.rendered(req, page, as_of, [head], head.last_observed_at, self._file_name)

    def _require_kept(self, view: View, query: Query) -> None:
        """Raises Lost if rows of the history are lost in the page, or for deltas just before it."""
        first = query.starts[0] - (query.agg is Aggregate.DELTA) if query.starts else query.last
        needed = (self._reader.history.name, ASSETS)
        require_kept((loss for loss in view.losses(*self.datasets) if loss.what in needed), first, query.last + 1)


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
    return urlencode(values, quote_via=quote)
