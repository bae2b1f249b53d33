"""A page of history: the JSON of its data (interface section 2, Time series)."""

import threading
from collections.abc import Iterator, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from functools import lru_cache
from io import BytesIO
from itertools import chain

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
# Points that are put together at once. Pages of more of them take their turns: each takes a hundred bytes a point.
_LARGE = 50_000
_one_large_page = threading.Lock()


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

        Cost: see Archive.endings, for every 50,000 points. ParameterInvalid for too many buckets or points;
        EntityNotFound for an id without this history; Superseded when the head is not the newest.
        """
        state = self._archive.at(head)
        return self._data(query, state, _of_assets(query, state))

    def single(self, query: Query, head: Head) -> dict[str, object]:
        """A page of the one series over all assets: `{range, points, pagination}`. Cost and errors as of `multi`."""
        state = self._archive.at(head)
        return self._data(query, state, _of_total(state))

    def _data(self, query: Query, state: State, frame: _Frame) -> dict[str, object]:
        large = (len(query.begins) - 1) * len(frame.series) > _LARGE
        text = BytesIO()
        with _one_large_page if large else nullcontext():
            for part in chain([frame.opening], self._points(query, state, frame), [frame.closing]):
                text.write(part.encode())
        count, following = query.grid.count, query.offset + query.limit
        interval = {"unit": query.period, "value": query.interval}
        return {
            "range": {"start": query.start, "end": query.end, "interval": interval},
            frame.name: orjson.Fragment(text.getvalue()),
            "pagination": {"interval_count": count, "next_offset": following if following < count else None},
        }

    def _points(self, query: Query, state: State, frame: _Frame) -> Iterator[str]:
        """The points of some series at a time, so that what a page takes beside its text is bounded."""
        ids, at_once = list(frame.series), max(_LARGE // max(len(query.begins) - 1, 1), 1)
        for first in range(0, len(ids), at_once):
            series = {asset_id: frame.series[asset_id] for asset_id in ids[first : first + at_once]}
            values = self._archive.endings(state, series, query)
            yield encode_points(values, query.begins, frame.before[first : first + at_once], frame.after)


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
