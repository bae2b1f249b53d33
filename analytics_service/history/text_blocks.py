"""Blocks of texts: those of all points of hours, or of days that begin at one time of day in UTC, which pages are cut
out of.

What is around a point does not change its text, so all pages of these buckets share a block, whatever their range and
series. A day in a zone is such a day; one on which clocks change by an hour has a block of its own.
"""

from array import array
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from sys import getsizeof
from typing import NamedTuple

import polars as pl

from analytics_service.history.buckets import Buckets
from analytics_service.history.candles import Aggregate
from analytics_service.history.digits import shortened
from analytics_service.history.formats.base import Cut, MakeTexts, Text
from analytics_service.history.slots import Run, Slot, cells_of, runs_of
from analytics_service.history.states import State
from analytics_service.market.instants import DAY, HOUR
from analytics_service.store.cells import QUARTER

# Most cells of a block, and most points, by the width of cells: one is made in some ten milliseconds.
_CELLS = {HOUR: (2048, 2**14), DAY: (128, 2**14), DAY - HOUR: (1, 2**14), DAY + HOUR: (1, 2**14)}
# Making the texts of fewer buckets takes no longer than looking for them.
_FEWEST = 8
# Measured size of a block in memory without its arrays: its key, and slots in tables.
_OVERHEAD = 750


class Wording(NamedTuple):
    """What decides the text of a point, beside its bucket and the observations: how the format puts it, and what it
    says."""

    make: MakeTexts
    agg: Aggregate
    digits: int | None
    carry: bool


@dataclass(frozen=True, slots=True)
class Texts:
    """Texts of all points of an array, series by series, and the byte at which each of them ends, after a 0."""

    text: bytes
    ends: "array[int]"

    @classmethod
    def of(cls, texts: Sequence[Text]) -> "Texts":
        """Those that are listed."""
        return cls(b"".join(texts), array("I", accumulate(map(len, texts), initial=0)))

    def between(self, places: Sequence[int], first: int, stop: int, cells: int) -> list[memoryview]:
        """The texts in cells from `first` to before `stop` of the series at some places, of so many `cells` each."""
        text, begins, ends = memoryview(self.text), self.ends[first::cells], self.ends[stop::cells]
        return [text[begins[place] : ends[place]] for place in places]


@dataclass(frozen=True)
class TextBlock:
    """The texts of points of all `ids` in the first `cells` of a slot: of each array that the format has."""

    ids: Sequence[str]
    cells: int
    arrays: Sequence[Texts]

    @property
    def size(self) -> int:
        """Bytes in memory."""
        return _OVERHEAD + sum(getsizeof(one.text) + getsizeof(one.ends) for one in self.arrays)

    def cut(self, places: Sequence[int], run: Run) -> Cut:
        """The texts of the series at some places in the cells of a run."""
        return [one.between(places, run.cells[0], run.cells[-1] + 1, self.cells) for one in self.arrays]


def texts_of(values: pl.DataFrame, begins: Sequence[int], series: int, wording: Wording, at_once: int) -> Cut:
    """The texts of points with these values, bucket by bucket, for so many points of a series at once."""
    return wording.make(begins, shortened(values, wording.digits), series, at_once)


@dataclass(frozen=True, slots=True)
class Stretch:
    """Buckets of a page from the one numbered `first` on, and the cells whose texts they have."""

    first: int
    run: Run

    @property
    def stop(self) -> int:
        """The number of the bucket after them."""
        return self.first + len(self.run.cells)


def look_up_texts(state: State, buckets: Buckets, wording: Wording) -> list[Stretch]:
    """The stretches of a page whose texts are kept, in order: those of hours and days that are over, that begin with a
    quarter of an hour and end after the history's first observation."""
    begins = buckets.begins
    over = bisect_right(begins, buckets.until) - 1
    known = max(bisect_right(begins, state.first) - 1, 0)
    found: list[Stretch] = []
    for first, width, count in buckets.alike(known, over):
        begin = begins[first]
        cells = cells_of(len(state.series), *_CELLS[width]) if width in _CELLS else 0
        # Days on which clocks change come one at a time.
        is_kept = count >= _FEWEST if cells > 1 else count == cells
        if is_kept and begin >= 0 and begin % QUARTER == 0:
            slot = Slot(cells, 0, begin % width, width, wording)
            for run in runs_of(slot, begin, count):
                found.append(Stretch(first, run))
                first += len(run.cells)
    return found
