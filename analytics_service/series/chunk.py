"""Chunks of history in memory: the value of every series at the end of every hour, ready to be put into pages."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import groupby

import polars as pl

from analytics_service.series.direct import read_values
from analytics_service.series.encode import endings
from analytics_service.series.plan import QUARTER
from analytics_service.series.rows import History, Series
from analytics_service.series.sample import layout
from analytics_service.store.connection import Store

HOUR = 3600
# Hours of a chunk, 85 days: few chunks make a page of days, and one is read in a fraction of a second.
_SPAN = 2048
# Of more series than this a chunk has fewer hours, so that it is no larger.
_SERIES = 128
# No asset has this id, and so no values.
_NOBODY = ""


def span_of(series: int) -> int:
    """Hours of a chunk of so many series."""
    return max(_SPAN * _SERIES // max(series, _SERIES), 1)


@dataclass(frozen=True, slots=True)
class Place:
    """Which chunk: hours of the one with `number` n begin `phase` seconds after the hours [n, n + 1) * span."""

    phase: int
    number: int
    span: int

    @property
    def first(self) -> int:
        """The unix second at which the chunk begins."""
        return self.number * self.span * HOUR + self.phase

    @property
    def end(self) -> int:
        """The unix second at which the next one begins."""
        return self.first + self.span * HOUR

    @property
    def hours(self) -> Sequence[int]:
        """Begins of its hours, and of the next one's first."""
        return range(self.first, self.end + 1, HOUR)

    def hours_before(self, second: int) -> int:
        """How many of its hours end at or before a second."""
        return min(max((second - self.first) // HOUR, 0), self.span)


@dataclass(frozen=True)
class Chunk:
    """Values of `ids` at the ends of a chunk's hours, series by series, as of one state of the history.

    `endings` is each value as it ends a point, `observed_at` when it was observed (unix s). In both a series without
    any values follows the last one, for those that are not there. Only the first `known` hours hold.
    """

    ids: Mapping[str, int]
    span: int
    endings: pl.Series
    observed_at: pl.Series
    known: int

    @cached_property
    def size(self) -> int:
        """Bytes in memory."""
        return int(self.endings.estimated_size() + self.observed_at.estimated_size())

    def rows(self, ids: Sequence[str], hours: Sequence[int]) -> pl.Series:
        """Where the values of series at hours (counted from the chunk's first) stand, series by series."""
        nowhere = len(self.ids)
        bases = pl.Series([self.ids.get(asset_id, nowhere) * self.span for asset_id in ids], dtype=pl.UInt32)
        owner, hour = layout(len(ids), len(hours))
        return bases[owner] + pl.Series(hours, dtype=pl.UInt32)[hour]

    def knowing(self, hours: int) -> "Chunk":
        """The same, when of what it knows no more than so many hours hold."""
        return self if hours >= self.known else replace(self, known=hours)

    def followed_by(self, later: "Chunk") -> "Chunk":
        """The hours that are known, and then those of another chunk, of whose series it is."""
        ids = [*later.ids, _NOBODY]
        before, after = self.rows(ids, range(self.known)), later.rows(ids, range(later.span))
        span = self.known + later.span
        owner, hour = layout(len(ids), span)
        index = pl.DataFrame({"owner": owner, "hour": hour}).select(
            pl.when(pl.col("hour") < self.known)
            .then(pl.col("owner") * self.known + pl.col("hour"))
            .otherwise(len(before) + pl.col("owner") * later.span + pl.col("hour") - self.known)
        )
        order = index.to_series()
        return Chunk(
            ids=later.ids,
            span=span,
            endings=pl.concat([self.endings[before], later.endings[after]])[order].rechunk(),
            observed_at=pl.concat([self.observed_at[before], later.observed_at[after]])[order].rechunk(),
            known=span,
        )


def load_chunk(
    store: Store, history: History, series: Mapping[str, Series], place: Place, until: int, begun: Chunk | None
) -> Chunk:
    """A chunk read from the store, as of `until` (exclusive, unix s), but for the hours that `begun` knows."""
    known = begun.known if begun else 0
    values = read_values(store, history, series, place.hours[known:], until, whole=True, thinned=True)
    read = make_chunk(series, values, place.span - known)
    return begun.followed_by(read) if begun else read


def make_chunk(ids: Iterable[str], values: pl.DataFrame, span: int) -> Chunk:
    """A chunk of the values that `sample` answers for the series and the ends of the chunk's `span` hours."""
    padded = pl.concat([values, values.clear(span)])
    return Chunk(
        ids={asset_id: number for number, asset_id in enumerate(ids)},
        span=span,
        endings=endings(padded["value"]).rechunk(),
        observed_at=padded["observed_at"].fill_null(0).cast(pl.UInt32).rechunk(),
        known=span,
    )


@dataclass(frozen=True, slots=True)
class Spot:
    """Hours of one chunk, counted from its first, that stand for buckets of a page one after the other."""

    place: Place
    hours: list[int]


def spots(begins: Sequence[int], until: int, span: int, known: int | None = None) -> list[Spot] | None:
    """Which hours of chunks of `span` hours hold the values of the buckets between `begins` that begin before `until`;
    as of `known`, if given.

    None when a boundary lies in the middle of a quarter hour, as in zones of long ago.
    """
    ends = begins[1 : 1 + bisect_left(begins, until, 0, max(len(begins) - 1, 0))]
    phases = [end % HOUR for end in ends]
    if any(phase % QUARTER for phase in set(phases)):
        return None
    found: list[Spot] = []
    for phase, run in groupby(range(len(ends)), key=phases.__getitem__):
        latest = ((until if known is None else known) - 1 - phase) // HOUR
        hours = [ends[place] // HOUR - 1 for place in run]
        # They ascend, so those that are too late stand at the end.
        timely = bisect_right(hours, latest)
        hours[timely:] = [latest] * (len(hours) - timely)
        while hours:
            number = hours[0] // span
            within = bisect_left(hours, (number + 1) * span)
            found.append(Spot(Place(phase, number, span), [hour - number * span for hour in hours[:within]]))
            hours = hours[within:]
    return found
