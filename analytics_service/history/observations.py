"""Single observations in memory, in order of time."""

from array import array
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import polars as pl

from analytics_service.history.candles import make_candles, observed_once
from analytics_service.history.memory import bytes_of
from analytics_service.history.sample import nothing, places_among, places_of


@dataclass(frozen=True)
class Observations:
    """Every observation of all `ids` in [begin, end), unix seconds, in order of time.

    `series` is the place in `ids`. Of several observations of one series and second the last one holds. `seconds` are
    in an array because finding an instant in a column takes eight times as long.
    """

    ids: Sequence[str]
    begin: int
    end: int
    seconds: "array[int]"
    series: pl.Series
    values: pl.Series

    @classmethod
    def of(cls, ids: Sequence[str], begin: int, end: int, rows: pl.DataFrame) -> "Observations":
        """Observations from rows as `read_observations` returns them for that span."""
        ordered = rows.sort("observed_at", "rank")
        return cls(
            ids,
            begin,
            end,
            array("I", ordered["observed_at"].to_list()),
            ordered["series"].cast(pl.UInt32).rechunk(),
            ordered["value"].rechunk(),
        )

    @cached_property
    def size(self) -> int:
        """Bytes in memory."""
        columns = sum(bytes_of(column.to_frame()) for column in (self.series, self.values))
        return columns + len(self.seconds) * self.seconds.itemsize

    @cached_property
    def _places(self) -> Mapping[str, int]:
        return places_of(self.ids)

    def _within(self, begin: int, end: int) -> slice:
        """The rows of the observations in [begin, end)."""
        first = bisect_left(self.seconds, begin)
        return slice(first, bisect_left(self.seconds, end, first))

    def newest(self, begin: int, end: int) -> int | None:
        """When the last observation in [begin, end) was made, unix seconds; None if there is none."""
        rows = self._within(begin, end)
        return self.seconds[rows.stop - 1] if rows.start < rows.stop else None

    def last(self, ids: Sequence[str], begin: int, end: int) -> pl.DataFrame | None:
        """Columns value and observed_at of the last observation of some series in [begin, end), null where a series has
        none; None where no series has one."""
        rows = self._within(begin, end)
        if rows.start == rows.stop:
            return None
        value, observed_at = nothing(len(self.ids))
        series = self.series[rows]
        value = value.scatter(series, self.values[rows])
        observed_at = observed_at.scatter(series, pl.Series(self.seconds[rows], dtype=pl.Int64)).cast(pl.UInt32)
        places = places_among(self._places, ids)
        return pl.DataFrame({"value": value[places], "observed_at": observed_at[places]})

    def candles(self, ids: Sequence[str], before: pl.Series, begin: int, end: int) -> pl.DataFrame:
        """The candles of some series over [begin, end), given the values that held before it."""
        rows = self._within(begin, end)
        observed = pl.DataFrame(
            {
                "series": places_among(places_of(ids), self.ids)[self.series[rows]].cast(pl.Int64),
                "second": pl.Series(self.seconds[rows], dtype=pl.Int64),
                "value": self.values[rows],
            }
        ).drop_nulls("series")
        last = self.last(ids, begin, end)
        last = nothing(len(ids)) if last is None else last
        return make_candles(observed_once(observed, len(ids)), before, last, [begin], [end])

    def over(self, values: pl.Series, ids: Sequence[str], begin: int, end: int) -> pl.Series:
        """The values of some series, instant by instant, with those at the last instant replaced by each series' last
        observation in [begin, end), if there is one."""
        rows = self._within(begin, end)
        if rows.start == rows.stop:
            return values
        places, observed = self.series[rows], self.values[rows]
        if ids != self.ids:
            places = places_among(places_of(ids), self.ids)[places]
            observed, places = observed.filter(places.is_not_null()), places.drop_nulls()
        if not len(places):
            return values
        # scatter keeps the last of several values for one place.
        return values.clone().scatter(places + (len(values) - len(ids)), observed.cast(values.dtype))

    def followed_by(self, later: "Observations") -> "Observations":
        """These and the observations of a later span, which overlaps with this one and may have additional series."""
        fresh = bisect_left(later.seconds, self.end)
        places = places_among(later._places, self.ids)
        return Observations(
            later.ids,
            self.begin,
            later.end,
            self.seconds + later.seconds[fresh:],
            pl.concat([places[self.series], later.series[fresh:]], rechunk=True),
            pl.concat([self.values, later.values[fresh:]], rechunk=True),
        )

    def between(self, begin: int, end: int) -> "Observations":
        """The observations of a span within this one."""
        rows = self._within(begin, end)
        return Observations(self.ids, begin, end, self.seconds[rows], self.series[rows], self.values[rows])


# For pages that end with an hour: there is nothing to read after it.
NOTHING_LATER = Observations([], 0, 0, array("I"), pl.Series([], dtype=pl.UInt32), pl.Series([], dtype=pl.String))
