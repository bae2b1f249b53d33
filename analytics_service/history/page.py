"""A page of history: its buckets, its series and its points in a format."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from io import SEEK_END, BytesIO
from zoneinfo import ZoneInfo

from analytics_service.errors import EntityNotFound, ParameterInvalid
from analytics_service.history.buckets import Buckets
from analytics_service.history.candles import Aggregate
from analytics_service.history.digits import shortened
from analytics_service.history.formats.base import (
    OHLC,
    VALUE,
    FileFormat,
    Format,
    MemberFormat,
    Points,
    Tables,
    TextParts,
)
from analytics_service.history.formats.json import JSON
from analytics_service.history.grid import Grid, Period, aligned_grid, make_grid
from analytics_service.history.reader import HistoryReader
from analytics_service.history.states import State
from analytics_service.history.text_blocks import Wording
from analytics_service.market.assets import as_stored
from analytics_service.store.ledger import Head
from analytics_service.store.observations import TOTAL

MAX_POINTS = 500_000
# Points that are built at once, at a hundred bytes each. Pages with more are large.
_LARGE = 50_000


@dataclass(frozen=True)
class Query:
    """A page of a history. Instants are unix seconds, both inclusive; `ids` None means all assets.

    `is_aligned` says that start, end, period and interval are those of an aligned grid. Values have so many significant
    `digits` at most; None means all.
    """

    start: int
    end: int
    period: Period
    interval: int
    zone: ZoneInfo
    limit: int
    offset: int
    carry: bool
    ids: list[str] | None
    agg: Aggregate = Aggregate.LAST
    format: Format = JSON
    digits: int | None = None
    is_aligned: bool = False

    @cached_property
    def grid(self) -> Grid:
        """The buckets of the whole range. ParameterInvalid when they are too many."""
        if self.is_aligned:
            return aligned_grid(self.start, self.end, self.period, self.interval, self.zone)
        return make_grid(self.start, self.end, self.period, self.interval, self.zone)

    @cached_property
    def begins(self) -> Sequence[int]:
        """Starts of the page's buckets and of the one after them; empty where the range has none."""
        return self.grid.page(self.offset, self.limit)

    @property
    def starts(self) -> Sequence[int]:
        """Starts of the page's buckets."""
        return self.begins[:-1]

    @cached_property
    def last(self) -> int:
        """The last second of the page; that of the range where the page has no buckets."""
        return min(self.begins[-1] - 1, self.end) if self.begins else self.end

    @property
    def next_offset(self) -> int | None:
        """The offset of the next page, if there is one."""
        following = self.offset + self.limit
        return following if following < self.grid.count else None

    def is_closed(self, newest: int) -> bool:
        """Whether the page has buckets, and all of them end at or before an instant."""
        return bool(self.begins) and self.last < newest


@dataclass(frozen=True, slots=True)
class Page:
    """A page of buckets: those of the series with some ids, in a state. Its points are only made when it is encoded."""

    query: Query
    points: Points
    reader: HistoryReader
    state: State
    ids: Sequence[str]
    buckets: Buckets

    @property
    def starts(self) -> list[int]:
        """Starts of the page's buckets, one by one."""
        return [*self.query.starts]

    def body(self, head: str = "", tail: str = "") -> bytes:
        """The points in the query's format: a whole file, or a member of the answer's data with the JSON around it.
        Errors are those of HistoryReader.points."""
        form = self.query.format
        if isinstance(form, FileFormat):
            chunks = form.encode(self.points, self._tables(form))
        else:
            chunks = form.encode(self.points, self._texts(form), (head, tail))
        # The file shares the memory of its first chunk until another one follows.
        file = BytesIO(next(chunks))
        file.seek(0, SEEK_END)
        file.writelines(chunks)
        return file.getvalue()

    def _tables(self, form: FileFormat) -> Tables:
        query = self.query
        # Only texts can be shortened.
        numbers = form.takes_numbers and query.digits is None
        for ids in self._some():
            values = self.reader.points(self.state, ids, self.buckets, query.agg, numbers=numbers)
            yield ids, shortened(values, query.digits)

    def _texts(self, form: MemberFormat) -> TextParts:
        wording = Wording(form.texts, self.query.agg, self.query.digits, self.query.carry)
        for ids in self._some():
            yield ids, self.reader.texts(self.state, ids, self.buckets, wording)

    def _some(self) -> Iterator[Sequence[str]]:
        """The ids of some series at a time, which bounds the memory of a page beside its text."""
        count = max(_LARGE // max(self.buckets.count, 1), 1)
        return (self.ids[first : first + count] for first in range(0, len(self.ids), count))


def read_page(reader: HistoryReader, query: Query, head: Head, symbols: Mapping[str, str]) -> Page:
    """A page with one series for each asset, in the state that a head names; `symbols` are by asset id.

    Cost: that of HistoryReader.points for every 50,000 points. ParameterInvalid for too many buckets or points;
    EntityNotFound for an id without this history; Superseded when the history was rewritten since the head.
    """
    state = reader.at(head)
    ids = _chosen(query, state, symbols)
    return _page(reader, state, query, ids, symbols, single=False)


def read_total(reader: HistoryReader, query: Query, head: Head, symbols: Mapping[str, str]) -> Page:
    """A page of the single series over all assets. Cost and errors are those of `read_page`."""
    return _page(reader, reader.at(head), query, [TOTAL], symbols, single=True)


def is_large(reader: HistoryReader, query: Query, head: Head) -> bool:
    """Whether `read_page` would be about so many points that it must take turns (rule 2.13). Superseded as there."""
    series = len(reader.at(head).series) if query.ids is None else len(query.ids)
    return len(query.starts) * series > _LARGE


def _page(
    reader: HistoryReader, state: State, query: Query, ids: Sequence[str], symbols: Mapping[str, str], *, single: bool
) -> Page:
    columns = OHLC if query.agg is Aggregate.OHLC else VALUE
    points = Points(query.starts, single, columns, symbols=symbols, zone=query.zone)
    buckets = Buckets(query.begins, min(query.end, state.newest) + 1, query.carry)
    return Page(query, points, reader, state, ids, buckets)


def _chosen(query: Query, state: State, symbols: Mapping[str, str]) -> list[str]:
    listed: Mapping[str, object] = state.series
    ids = [one for one in listed if one != TOTAL] if query.ids is None else as_stored(query.ids, listed)
    for asset_id in ids:
        if asset_id not in listed:
            symbol = f" ({symbols[asset_id]})" if asset_id in symbols else ""
            raise EntityNotFound(f"asset_ids or symbols: {asset_id[:100]!r}{symbol} is no asset with this history.")
    buckets = len(query.starts)
    if buckets * len(ids) > MAX_POINTS:
        raise ParameterInvalid(
            "limit",
            f"a page holds at most {MAX_POINTS:,} points, and {buckets:,} buckets of {len(ids):,} "
            f"series are more; at most {MAX_POINTS // len(ids):,} buckets fit",
        )
    return ids
