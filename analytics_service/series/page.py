"""A page of history: from what was asked to the JSON of its data (interface section 2, Time series)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from zoneinfo import ZoneInfo

import orjson
import polars as pl

from analytics_service.errors import EntityNotFound, ParameterInvalid
from analytics_service.market.assets import split_id
from analytics_service.series.encode import encode_series
from analytics_service.series.grid import Grid, Period, make_grid
from analytics_service.series.plan import plan_page
from analytics_service.series.rows import History, Series, read_page_rows, read_series
from analytics_service.series.sample import sample
from analytics_service.store.connection import Store
from analytics_service.store.ledger import Head

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

    def page(self, query: Query, head: Head) -> dict[str, object]:
        """The page's `data`: range, series and pagination, with the points encoded already.

        Cost: that of the page's buckets and series; one query, and a second one when a series carries a value
        over a long gap into the page. ParameterInvalid for too many buckets or points; EntityNotFound for an id
        without this history.
        """
        grid = make_grid(query.start, query.end, query.period, query.interval, query.zone)
        series = _chosen(query.ids, self._listed(head))
        begins = grid.page(query.offset, query.limit)
        if len(begins) * len(series) > MAX_POINTS + len(series):
            raise ParameterInvalid(
                "limit",
                f"a page holds at most {MAX_POINTS:,} points, and {len(begins) - 1:,} buckets of {len(series):,} "
                f"series are more; at most {MAX_POINTS // len(series):,} buckets fit",
            )
        horizon = min(query.end, head.last_observed_at) + 1
        values = self._values(series, begins, horizon, query.carry)
        encoded = encode_series(values, begins, [_opening(asset_id) for asset_id in series])
        return {"range": _range(query), "series": orjson.Fragment(encoded), "pagination": _pagination(query, grid)}

    def _listed(self, head: Head) -> dict[str, Series]:
        """Assets that have this history, in the order of ids; read once per snapshot."""
        version, series = self._known
        if version != head.version:
            series = read_series(self._store, self._history, head.last_observed_at)
            self._known = (head.version, series)
        return series

    def _values(self, series: Mapping[str, Series], begins: Sequence[int], horizon: int, carry: bool) -> pl.Series:
        if not begins or not series or begins[0] >= horizon:
            return pl.repeat(None, len(series) * max(len(begins) - 1, 0), dtype=pl.String, eager=True)
        plan = plan_page(begins, horizon)
        rows = read_page_rows(self._store, self._history, series, plan, min(begins[1], horizon))
        return sample(rows, len(series), begins, horizon, carry=carry)


def _chosen(ids: list[str] | None, listed: Mapping[str, Series]) -> Mapping[str, Series]:
    if ids is None:
        return listed
    for asset_id in ids:
        if asset_id not in listed:
            raise EntityNotFound(f"asset_ids: {asset_id[:100]!r} names no asset with this history.")
    return {asset_id: listed[asset_id] for asset_id in ids}


def _opening(asset_id: str) -> str:
    group, key = split_id(asset_id)
    return '{"asset":' + orjson.dumps({"id": asset_id, "group": group, "group_key": key}).decode()


def _range(query: Query) -> dict[str, object]:
    interval = {"unit": query.period, "value": query.interval}
    return {"start": query.start, "end": query.end, "interval": interval}


def _pagination(query: Query, grid: Grid) -> dict[str, object]:
    following = query.offset + query.limit
    return {"interval_count": grid.count, "next_offset": following if following < grid.count else None}
