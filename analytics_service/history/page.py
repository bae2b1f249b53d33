"""A page of history: its buckets, series and points."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from zoneinfo import ZoneInfo

import polars as pl

from analytics_service.errors import EntityNotFound, ParameterInvalid
from analytics_service.history.candles import NO_ENDS, OF_LAST, Aggregate, Fill, bucket_points, sum_by_bucket
from analytics_service.history.formats.base import Format, Points, decimal_strings, shorten_digits
from analytics_service.history.formats.json import JSON
from analytics_service.history.grid import Grid, Period, make_grid
from analytics_service.history.reader import HistoryReader
from analytics_service.market.assets import stored_id
from analytics_service.market.sums import TOTAL
from analytics_service.store.ledger import Head
from analytics_service.store.rollups import FIFTEEN_MINUTES, floor_to_width

MAX_POINTS = 100_000
# The most values that a page may sum: they are read, but not encoded.
MAX_SUMMED = 2_000_000


@dataclass(frozen=True)
class Query:
    """The request for a page of history. `start` and `end` are unix seconds, both inclusive.

    `is_aligned` is about the grid. None means: all buckets from `offset` on for `limit`, all assets for `ids`, all
    significant digits for `digits`. `others` adds the sum of all assets that are not in `ids`.
    """

    start: int
    end: int
    period: Period
    interval: int
    zone: ZoneInfo
    limit: int | None
    offset: int
    fill: Fill
    ids: list[str] | None
    agg: Aggregate = Aggregate.LAST
    format: Format = JSON
    digits: int | None = None
    is_aligned: bool = False
    others: bool = False

    @cached_property
    def grid(self) -> Grid:
        """The buckets of the whole range. Raises ParameterInvalid like `make_grid`."""
        return make_grid(self.start, self.end, self.period, self.interval, self.zone, is_aligned=self.is_aligned)

    @property
    def buckets(self) -> int:
        """The number of buckets in the page."""
        left = max(self.grid.count - self.offset, 0)
        return left if self.limit is None else min(left, self.limit)

    @cached_property
    def begins(self) -> Sequence[int]:
        """Starts of the page's buckets, and of the next bucket; empty without buckets."""
        return self.grid.page(self.offset, self.buckets)

    @property
    def starts(self) -> Sequence[int]:
        return self.begins[:-1]

    @cached_property
    def last(self) -> int:
        """The last second of the page, or of the range without buckets."""
        return min(self.begins[-1] - 1, self.end) if self.begins else self.end

    @property
    def next_offset(self) -> int | None:
        following = self.offset + self.buckets
        return following if following < self.grid.count else None

    def is_closed(self, newest: int) -> bool:
        """Whether the page has buckets, and all of them end at or before `newest`, unix seconds."""
        return bool(self.begins) and self.last < newest


@dataclass(frozen=True, slots=True)
class Page:
    """A page of encoded buckets. Instants are unix seconds.

    `body` is a complete file, or a JSON member of the answer's data. `as_of` is the dataset's newest instant up to the
    end of the page; None before the first. `begins` is the first observation of the page's series, even before the
    page; None if there is none.
    """

    query: Query
    body: bytes
    as_of: int | None
    begins: int | None = None


def read_page(
    reader: HistoryReader,
    query: Query,
    head: Head,
    symbols: Mapping[str, str],
    *,
    single: bool,
    ended: Mapping[str, int] = NO_ENDS,
) -> Page:
    """A page as of a head: a series for each asset, or with `single` the total over all assets. `symbols`, and `ended`
    (unix seconds), are by asset id.

    Cost: see `HistoryReader.parts`, and the points. Raises ParameterInvalid for too many buckets or points,
    EntityNotFound for an id without this history, Superseded if the history was rewritten since the head.
    """
    pinned = reader.at(head)
    ids = [TOTAL] if single else _chosen(query, pinned.series, symbols)
    rest = [asset_id for asset_id in pinned.ids if asset_id not in {TOTAL, *ids}] if query.others else []
    require_few(query, len(ids) + query.others, MAX_POINTS)
    require_few(query, len(rest), MAX_SUMMED)
    begins, end = query.begins, min(query.end, pinned.newest) + 1
    # A page after the newest observation reads the 15 minutes with that observation.
    start = floor_to_width(pinned.newest, FIFTEEN_MINUTES)
    is_carried = query.fill is Fill.LAST and begins and begins[0] >= end
    read = [start, start + FIFTEEN_MINUTES] if is_carried else begins
    parts = reader.parts(pinned, [*ids, *rest], read, end, all_columns=query.agg not in OF_LAST)
    cumulative = reader.history.cumulative
    values, newest = bucket_points(
        query.agg, parts, ids, begins, end, fill=query.fill, ended=ended, cumulative=cumulative
    )
    named = ids
    if query.others:
        sums = sum_by_bucket(parts, rest, begins, end, fill=query.fill, ended=ended)
        values, named = pl.concat([values, sums.select(decimal_strings(sums["v"]))]), [*ids, TOTAL]
    shown = shorten_digits(values, query.digits)
    body = query.format.encode(Points(query.starts, named, shown, single, symbols, query.zone))
    first = min((pinned.series[asset_id] for asset_id in (*ids, *rest) if asset_id in pinned.series), default=None)
    if query.last >= head.newest:
        return Page(query, body, head.newest, first)
    covers_history = parts and len(ids) == len(pinned.ids)
    return Page(query, body, newest if covers_history else reader.last_instant(pinned, query.last), first)


def points_of(reader: HistoryReader, query: Query, head: Head, *, single: bool) -> int:
    """The most points that a page can have or sum. Raises Superseded like `read_page`."""
    ids = reader.at(head).ids if query.ids is None or query.others else query.ids
    return query.buckets * (1 if single else len(ids))


def require_few(query: Query, series: int, most: int) -> None:
    """Raises ParameterInvalid for a page of more than `most` points."""
    if query.buckets * series > most:
        raise ParameterInvalid(
            "limit",
            f"a page has at most {most:,} points, and {query.buckets:,} buckets of {series:,} series are more: ask for "
            "wider buckets, a shorter range or fewer assets, or use limit and offset for pages of at most "
            f"{most // series:,} buckets (Link leads to the next page)",
        )


def _chosen(query: Query, listed: Mapping[str, object], symbols: Mapping[str, str]) -> list[str]:
    ids = [asset_id for asset_id in listed if asset_id != TOTAL] if query.ids is None else stored_id(query.ids, listed)
    for asset_id in ids:
        if asset_id not in listed:
            symbol = f" ({symbols[asset_id]})" if asset_id in symbols else ""
            raise EntityNotFound(f"asset_ids or symbols: {asset_id[:100]!r}{symbol} has no such history.")
    return ids
