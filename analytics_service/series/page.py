"""A page of history: from what was asked to the JSON of its data (interface section 2, Time series)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from zoneinfo import ZoneInfo

import orjson
import polars as pl

from analytics_service.errors import EntityNotFound, ParameterInvalid
from analytics_service.market.assets import asset_spec
from analytics_service.series.encode import encode_points
from analytics_service.series.grid import Grid, Period, make_grid
from analytics_service.series.plan import plan_page
from analytics_service.series.rows import History, Series, read_rows, read_series, with_earlier
from analytics_service.series.sample import sample
from analytics_service.store.connection import Store
from analytics_service.store.ledger import Head
from analytics_service.store.loans import TOTAL

MAX_POINTS = 500_000


@dataclass(frozen=True, slots=True)
class Query:
    """What a caller asks of a history. Instants are unix seconds, both inclusive; `ids` None means all assets."""

    start: int
    end: int
    period: Period
    interval: int
    zone: ZoneInfo
    limit: int
    offset: int
    carry: bool
    ids: list[str] | None


class Pages:
    """Pages of one kind of history, read from the store."""

    def __init__(self, store: Store, history: History) -> None:
        self._store = store
        self._history = history
        self._known: tuple[int, dict[str, Series]] = (-1, {})

    def multi(self, query: Query, head: Head) -> dict[str, object]:
        """A page of one series for each asset: `{range, series, pagination}`, with the points encoded already.

        Cost: that of the page's buckets and series; one query, and a second one when a series carries a value
        over a long gap into the page. ParameterInvalid for too many buckets or points; EntityNotFound for an id
        without this history.
        """
        listed = {asset_id: one for asset_id, one in self._listed(head).items() if asset_id != TOTAL}
        series = _chosen(query.ids, listed)
        grid, begins = _grid(query)
        if len(begins) * len(series) > MAX_POINTS + len(series):
            raise ParameterInvalid(
                "limit",
                f"a page holds at most {MAX_POINTS:,} points, and {len(begins) - 1:,} buckets of {len(series):,} "
                f"series are more; at most {MAX_POINTS // len(series):,} buckets fit",
            )
        before = [("," if i else "") + _opening(asset_id) for i, asset_id in enumerate(series)]
        values = self._values(series, begins, head, query, whole=query.ids is None)
        points = encode_points(values, begins, before, "]}")
        return _data(query, grid, "series", f"[{points}]")

    def single(self, query: Query, head: Head) -> dict[str, object]:
        """A page of the one series over all assets: `{range, points, pagination}`. Cost and errors as of `multi`."""
        grid, begins = _grid(query)
        series = {asset_id: one for asset_id, one in self._listed(head).items() if asset_id == TOTAL}
        values = self._values(series, begins, head, query, whole=False)
        points = encode_points(values, begins, ["["], "]")
        return _data(query, grid, "points", points)

    def _listed(self, head: Head) -> dict[str, Series]:
        """Assets that have this history, in the order of ids; read once per snapshot."""
        version, series = self._known
        if version != head.version:
            series = read_series(self._store, self._history, head.last_observed_at)
            self._known = (head.version, series)
        return series

    def _values(
        self, series: Mapping[str, Series], begins: Sequence[int], head: Head, query: Query, *, whole: bool
    ) -> pl.Series:
        horizon = min(query.end, head.last_observed_at) + 1
        if not begins or not series or begins[0] >= horizon:
            return pl.repeat(None, len(series) * max(len(begins) - 1, 0), dtype=pl.String, eager=True)
        plan = plan_page(begins, horizon)
        rows = read_rows(self._store, self._history, list(series), plan, whole=whole)
        values = sample(rows, len(series), begins, horizon, carry=query.carry)
        missing = _begun_before(series, values.gather_every(len(begins) - 1), plan.since) if query.carry else []
        if not missing:
            return values
        rows = with_earlier(self._store, self._history, rows, series, missing, plan.since)
        return sample(rows, len(series), begins, horizon, carry=query.carry)


def _chosen(ids: list[str] | None, listed: Mapping[str, Series]) -> Mapping[str, Series]:
    if ids is None:
        return listed
    for asset_id in ids:
        if asset_id not in listed:
            raise EntityNotFound(f"asset_ids: {asset_id[:100]!r} names no asset with this history.")
    return {asset_id: listed[asset_id] for asset_id in ids}


def _begun_before(series: Mapping[str, Series], firsts: pl.Series, since: int) -> list[int]:
    """Places of the series that are older than what was read, and yet have no value in the page's first bucket."""
    if not firsts.null_count():
        return []
    pairs = zip(series.values(), firsts.is_null(), strict=True)
    return [place for place, (one, missing) in enumerate(pairs) if missing and one.first_month < since]


def _opening(asset_id: str) -> str:
    return f'{{"asset":{orjson.dumps(asset_spec(asset_id)).decode()},"points":['


def _grid(query: Query) -> tuple[Grid, list[int]]:
    grid = make_grid(query.start, query.end, query.period, query.interval, query.zone)
    return grid, grid.page(query.offset, query.limit)


def _data(query: Query, grid: Grid, name: str, encoded: str) -> dict[str, object]:
    interval = {"unit": query.period, "value": query.interval}
    following = query.offset + query.limit
    return {
        "range": {"start": query.start, "end": query.end, "interval": interval},
        name: orjson.Fragment(encoded),
        "pagination": {"interval_count": grid.count, "next_offset": following if following < grid.count else None},
    }
