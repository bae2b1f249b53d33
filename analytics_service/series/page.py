"""A page of history: the JSON of its data (interface section 2, Time series)."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

import orjson

from analytics_service.errors import EntityNotFound, ParameterInvalid
from analytics_service.market.assets import asset_spec
from analytics_service.series.archive import Archive, State
from analytics_service.series.encode import encode_points
from analytics_service.series.query import Query
from analytics_service.series.rows import NEVER_SEEN, Series
from analytics_service.store.ledger import Head
from analytics_service.store.loans import TOTAL

MAX_POINTS = 500_000


@dataclass(frozen=True, slots=True)
class _Frame:
    """What stands around the points: series with their openings, and the name of it all in `data`."""

    series: Mapping[str, Series]
    name: str
    opening: str
    before: list[str]
    after: str
    closing: str


class Pages:
    """Pages of one kind of history."""

    def __init__(self, archive: Archive) -> None:
        self._archive = archive
        self.family = archive.family

    def multi(self, query: Query, head: Head) -> dict[str, object]:
        """A page of one series for each asset as of a head: `{range, series, pagination}`, its points encoded.

        Cost: see Archive.endings. ParameterInvalid for too many buckets or points; EntityNotFound for an id without
        this history; Superseded when the head is not the newest.
        """
        state = self._archive.at(head)
        return self._data(query, state, _of_assets(query, state))

    def single(self, query: Query, head: Head) -> dict[str, object]:
        """A page of the one series over all assets: `{range, points, pagination}`. Cost and errors as of `multi`."""
        state = self._archive.at(head)
        return self._data(query, state, _of_total(state))

    def _data(self, query: Query, state: State, frame: _Frame) -> dict[str, object]:
        values = self._archive.endings(state, frame.series, query)
        points = frame.opening + encode_points(values, query.begins, frame.before, frame.after) + frame.closing
        count, following = query.grid.count, query.offset + query.limit
        interval = {"unit": query.period, "value": query.interval}
        return {
            "range": {"start": query.start, "end": query.end, "interval": interval},
            frame.name: orjson.Fragment(points),
            "pagination": {"interval_count": count, "next_offset": following if following < count else None},
        }


def _of_assets(query: Query, state: State) -> _Frame:
    listed = {asset_id: one for asset_id, one in state.series.items() if asset_id != TOTAL}
    series = _chosen(query.ids, listed)
    if (len(query.begins) - 1) * len(series) > MAX_POINTS:
        raise ParameterInvalid(
            "limit",
            f"a page holds at most {MAX_POINTS:,} points, and {len(query.begins) - 1:,} buckets of {len(series):,} "
            f"series are more; at most {MAX_POINTS // len(series):,} buckets fit",
        )
    before = [("," if i else "") + _opening(asset_id) for i, asset_id in enumerate(series)]
    return _Frame(series, "series", "[", before, "]}", "]")


def _of_total(state: State) -> _Frame:
    return _Frame({TOTAL: state.series.get(TOTAL, NEVER_SEEN)}, "points", "", ["["], "]", "")


def _chosen(ids: list[str] | None, listed: Mapping[str, Series]) -> Mapping[str, Series]:
    if ids is None:
        return listed
    for asset_id in ids:
        if asset_id not in listed:
            raise EntityNotFound(f"asset_ids: {asset_id[:100]!r} names no asset with this history.")
    return {asset_id: listed[asset_id] for asset_id in ids}


@lru_cache(maxsize=10_000)
def _opening(asset_id: str) -> str:
    return f'{{"asset":{orjson.dumps(asset_spec(asset_id)).decode()},"points":['
