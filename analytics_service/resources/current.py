"""Paths that show the current state, or the state at a past moment (rule 8.12, as-of state)."""

from collections.abc import Callable, Iterable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any
from urllib.parse import quote, urlencode

import falcon

from analytics_service.errors import ParameterInvalid
from analytics_service.history.formats.csv import CSV
from analytics_service.history.grid import require_order
from analytics_service.history.page import MAX_POINTS
from analytics_service.history.times import Day, Edge, TimeForm
from analytics_service.http import params
from analytics_service.http.answer import Headers, Validators, success
from analytics_service.http.declared_params import Param
from analytics_service.market.assets import resolve_ids
from analytics_service.market.instants import format_instant, from_unix
from analytics_service.market.kinds import FOREVER
from analytics_service.present.response_tables import response_table
from analytics_service.present.shapes import Flags, Many, Node, Scope
from analytics_service.resources.snapshots import (
    Arguments,
    Asked,
    Rendered,
    SharedState,
    SnapshotPath,
    file_headers,
    require_states_kept,
)
from analytics_service.state.moments import Moment
from analytics_service.state.view import View
from analytics_service.store.datasets.assets import ASSETS_DATASET
from analytics_service.store.ledger import PastHead

# Today's date is always in the future.
_TODAY_HINT = ". A date means its last second: give a time of day, or omit `at` for the newest state"
VALUED = (params.WITH_TEXT, params.WITH_VALUE)
# A file with more rows waits for a slot like a large page of history (rule 2.13, large pages).
_LARGE = 5_000


@dataclass(frozen=True, slots=True)
class StatePath:
    """A path below /api/v1: its summary for /docs, the shape of the answer, and the record that it shows.

    `record` gets the record from a view, and raises EntityNotFound if the parameters name nothing. The record uses
    `datasets`, and USD values use `valued_by`. With `has_sums` the answer has USD sums over markets, but not in the
    older shape. Answers that do not describe assets need no snapshot of prices. If the record is a page of items,
    `count` returns the number of all items, and `next` the parameters of the next page. Lists also come as CSV: the
    answer itself, or its member called `rows`.
    """

    path: str
    summary: str
    shape: Node
    record: Callable[[View, Arguments], Any]
    datasets: tuple[str, ...]
    query: tuple[Param, ...] = ()
    in_path: tuple[Param, ...] = ()
    valued_by: tuple[str, ...] = ("prices",)
    has_sums: bool = False
    describes_assets: bool = True
    count: Callable[[Any], int] | None = None
    next: Callable[[Any, Arguments], Mapping[str, object]] | None = None
    rows: str | None = None


class Current(SnapshotPath):
    """A path that shows the newest state, or the state at the moment `at`."""

    shape: Node

    def __init__(self, shared: SharedState, declared: StatePath) -> None:
        super().__init__(shared)
        self._declared = declared
        self.summary, self.shape = declared.summary, declared.shape
        is_list = isinstance(declared.shape, Many) or declared.rows is not None
        self.media = (falcon.MEDIA_JSON, CSV.media) if is_list else (falcon.MEDIA_JSON,)
        formats = (params.LIST_FORMAT,) if is_list else ()
        self._described_by = (ASSETS_DATASET,) if declared.describes_assets else ()
        self.path, self.query = declared.in_path, (*declared.query, *formats, *params.MOMENT)
        self.datasets = declared.datasets

    def ask(self, req: falcon.Request, path: Mapping[str, str]) -> Asked:
        """The state that a request asks for. `times` are the unix seconds of given times, and `moment` is None for now.

        Raises ParameterInvalid for a moment in the future, and for a start after the end.
        """
        arguments = self.parse(req, path)
        zone, now = arguments["tz"] or self._shared.zone, self._shared.schedule.now()
        given = [edge for edge in Edge if arguments.get(edge) is not None]
        times = {str(edge): arguments[edge].second(zone, now, edge) for edge in given}
        if {Edge.START, Edge.END} <= times.keys():
            require_order(times["start"], times["end"])
        form = arguments.get("format")
        is_csv = form == CSV.name or (form is None and req.context.media == CSV.media)
        if "limit" in arguments and arguments["limit"] is None:
            arguments["limit"] = MAX_POINTS if is_csv else params.DEFAULT_ITEMS
        moment = self._moment(arguments["at"], times, now)
        arguments |= {"times": times, "moment": moment}
        is_moving = any(arguments[name].is_relative for name in times)
        # An answer to relative times is cached under the unix seconds that they mean.
        query = {**req.params, **times}
        name = (req.path.removeprefix("/api/v1/").replace("/", "-"), *times.values(), arguments.get("offset"))
        headers = file_headers(CSV, *name) if is_csv else ()
        return Asked(
            lambda view: [*self._made_from(view, arguments), *self._described_by],
            partial(self._rendered, arguments, query, headers),
            None if moment is None else lambda: self._past(moment, arguments),
            _query_string(query) if is_moving else None,
            is_moving,
            slots=None if moment is None else self._shared.moments,
        )

    def _made_from(self, view: View, arguments: Arguments) -> list[str]:
        """The datasets behind the answer, except for descriptions of assets, which come with prices."""
        has_sums = self._declared.has_sums and arguments.get("shape", "newer") == "newer"
        sums = view.sums_valued_by if has_sums else ()
        values = self._declared.valued_by if arguments.get("with_value") else ()
        own = self.datasets
        if "ptoken" in own[1:] and not view.has_token:
            own = tuple(dataset for dataset in own if dataset != "ptoken")
        return list(dict.fromkeys((*own, *sums, *values)))

    def _past(self, moment: Moment, arguments: Arguments) -> View:
        """The view of a moment. Raises EntityNotFound if a dataset of the answer had no snapshot by then, even if this
        answer would not read it."""
        datasets = dict.fromkeys((*self.datasets, ASSETS_DATASET, *self._declared.valued_by))
        view = self._shared.views.past(moment, datasets)
        made_from = self._made_from(view, arguments)
        _require_kept(view, made_from, moment)
        view.require(made_from)
        return view

    def _rendered(self, arguments: Arguments, query: Mapping[str, object], headers: Headers, view: View) -> Rendered:
        """The record in the path's shape, as CSV if `headers` describe a file."""
        moment: Moment | None = arguments["moment"]
        made_from = self._made_from(view, arguments)
        shown, heads = view.heads_of(made_from), view.heads_of((*made_from, *self._described_by))
        _require_kept(view, [head.dataset for head in heads], moment)
        # Each dataset, including the definitions of assets, must have a later snapshot.
        is_closed = moment is not None and all(
            isinstance(head, PastHead) and head.awaits_jobs_only(moment.at) for head in heads
        )
        record = self._record(view, arguments)
        following = self._declared.next(record, arguments) if self._declared.next else {}
        scope = self._scope(view, arguments, made_from)
        if headers:
            body = self._table(record, scope, arguments, is_cut=bool(following))
        else:
            data = self.shape.render(record, scope)
            listed = len(data) if isinstance(data, list) else None
            body = success(data, self._declared.count(record) if self._declared.count else listed)
        validators = Validators(
            as_of={head.dataset: head.at for head in shown},
            due=self._shared.schedule.due(shown),
            closes_at=self.settled_at(moment.at) if moment and is_closed else None,
            next=f"?{_query_string({**query, **following})}" if following else None,
        )
        return Rendered(body, validators, headers)

    def _record(self, view: View, arguments: Arguments) -> Any:
        """The record that the path shows. Symbols may name assets (rule 2.18, asset names)."""
        for parameter in ("asset_id", "symbol"):
            if arguments.get(parameter) is not None:
                (asset_id,) = resolve_ids([arguments[parameter]], view.assets, parameter)
                arguments = {**arguments, "asset_id": asset_id}
        if arguments.get("asset_ids") or arguments.get("symbols"):
            names = [*(arguments["asset_ids"] or ()), *(arguments["symbols"] or ())]
            arguments = {**arguments, "asset_ids": list(dict.fromkeys(resolve_ids(names, view.assets)))}
        if not arguments.get("changes"):
            return self._declared.record(view, arguments)
        record = self._declared.record(view, {**arguments, "earlier": self._earlier(view, arguments)})
        view.require_unchanged(self.datasets)
        return record

    def _table(self, record: Any, scope: Scope, arguments: Arguments, *, is_cut: bool) -> bytes:
        """The list as CSV, complete unless the request has a limit. Raises ParameterInvalid for too many rows."""
        table = response_table(self.shape, record, scope, self._declared.rows or "")
        if (is_cut and arguments["limit"] == MAX_POINTS) or len(table.items) > MAX_POINTS:
            raise ParameterInvalid(
                "format", f"a file has at most {MAX_POINTS:,} rows: narrow the request, or give a limit"
            )
        names = {"changes": [*arguments["changes"]]} if arguments.get("changes") else {}
        with self._shared.large_pages.acquire() if len(table.items) > _LARGE else nullcontext():
            return table.encode(names)

    def _scope(self, view: View, arguments: Arguments, made_from: Iterable[str]) -> Scope:
        """The rendering context: requested variants, assets, and prices if values are shown."""
        variants = {name: arguments.get(f"with_{name}", False) for name in ("text", "value", "percent")}
        flags = Flags(**variants, shape=arguments.get("shape", "newer"))
        if not self._declared.describes_assets:
            return Scope(flags)
        if not flags.value:
            return Scope(flags, view.assets)
        # Prices of receipt tokens depend on markets. Paths without receipt tokens need no snapshot of markets.
        return Scope(flags, view.assets, view.prices if "markets" in made_from else view.quoted)

    def _earlier(self, view: View, arguments: Arguments) -> dict[str, View]:
        """Views of earlier moments, by the length of time before the shown moment, if the dataset had anything then."""
        (dataset,) = self.datasets
        shown_at = arguments["moment"].at if arguments["moment"] else view.head(dataset).newest
        zone, now = arguments["tz"] or self._shared.zone, self._shared.schedule.now()
        earlier: dict[str, View] = {}
        for name, span in arguments["changes"].items():
            at = span.second(zone, shown_at, Edge.AT)
            moment = Moment(at, late=now < self.settled_at(at))
            then = self._shared.views.past(moment, self.datasets)
            _require_kept(then, self.datasets, moment)
            if then.has(dataset):
                earlier[name] = then
        return earlier

    def _moment(self, form: TimeForm | None, times: Mapping[str, int], now: int) -> Moment | None:
        if form is None:
            return None
        at = times["at"]
        if at > now:
            message = f"{format_instant(from_unix(at))} is in the future; it is now {format_instant(from_unix(now))}"
            raise ParameterInvalid("at", message + (_TODAY_HINT if isinstance(form, Day) else ""))
        return Moment(at, late=now < self.settled_at(at))


def _require_kept(view: View, datasets: Iterable[str], moment: Moment | None) -> None:
    """Raises Lost if rows are lost of the snapshots, or of observations between them and the moment."""
    for dataset in datasets:
        head = view.heads.heads.get(dataset)
        ends = (head.newest, head.last_observed_at) if head else (0, FOREVER)
        require_states_kept(view, dataset, max(min(ends), 0), moment.at if moment else max(ends))


def _query_string(given: Mapping[str, object]) -> str:
    return urlencode(given, quote_via=quote)
