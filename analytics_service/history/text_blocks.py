"""Blocks of texts: those of all points of hours, or of days that begin at one time of day in UTC, which pages are cut
out of. They are in a temporary file.

What is around a point does not change its text, so all pages of these buckets share a block, whatever their range and
series. A day in a zone is such a day; one on which clocks change by an hour has a block of its own.
"""

from array import array
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import accumulate, chain
from typing import Final, NamedTuple
from weakref import finalize

import polars as pl

from analytics_service.history.buckets import Buckets
from analytics_service.history.candles import Aggregate
from analytics_service.history.digits import shortened
from analytics_service.history.formats.base import Cut, MakeTexts, Text
from analytics_service.history.slots import Run, Slot, cells_of, runs_of
from analytics_service.history.states import State
from analytics_service.history.text_file import Place, TextFile
from analytics_service.market.instants import DAY, HOUR
from analytics_service.store.cells import QUARTER

# Most cells of a block, by the width of cells, and most points: one is made in some milliseconds. Days on which clocks
# change come one at a time.
_CELLS = {HOUR: 1024, DAY: 1024, DAY - HOUR: 1, DAY + HOUR: 1}
_POINTS = 2**12
# Making the texts of fewer buckets takes no longer than looking for them.
_FEWEST = 8
# The type of boundaries, and its bytes.
_UNSIGNED: Final = "I"
_WIDTH = array(_UNSIGNED).itemsize
# Reading a part of a text by itself takes as long as reading so many bytes together with others.
_APART = 16_384


class Wording(NamedTuple):
    """What decides the text of a point, beside its bucket and the observations: how the format puts it, and what it
    says."""

    make: MakeTexts
    agg: Aggregate
    digits: int | None
    carry: bool


@dataclass(frozen=True)
class TextBlock:
    """The texts of points of all `ids` in the first `cells` of a slot, in a file: those of each array that the format
    has, at `places` there. The file has room for others once nobody refers to the block.

    The texts of an array are series by series, after their boundaries: the bytes at which the texts of each cell begin,
    and those at which the last one's end, cell by cell.
    """

    ids: Sequence[str]
    cells: int
    file: TextFile
    places: Sequence[Place]

    @classmethod
    def written(cls, file: TextFile, ids: Sequence[str], arrays: Cut) -> "TextBlock":
        """A block whose texts, those of all points of each array, are written to a file. OSError if they cannot be."""
        places = file.add([_bounded(texts, len(ids)) for texts in arrays])
        block = cls(ids, len(arrays[0]) // len(ids), file, places)
        finalize(block, file.remove, places).atexit = False
        return block

    @property
    def size(self) -> int:
        """Bytes in the file."""
        return self.file.space(self.places)

    def cut(self, series: Sequence[int], run: Run) -> Cut:
        """The texts of the series with some numbers in the cells of a run. OSError if they cannot be read."""
        return [self._between(place, series, run.cells[0], run.cells[-1] + 1) for place in self.places]

    def _between(self, place: Place, series: Sequence[int], first: int, stop: int) -> Sequence[memoryview]:
        read, width = self._reading(place, len(series)), _WIDTH * len(self.ids)
        begins, ends = (read(cell * width, (cell + 1) * width).cast(_UNSIGNED) for cell in (first, stop))
        return [read(begins[one], ends[one]) for one in series]

    def _reading(self, place: Place, count: int) -> Callable[[int, int], memoryview]:
        """A function that reads parts of the texts at a place, of which there are so many to read."""
        if place.size > count * _APART:
            return partial(self.file.read, place)
        texts = self.file.read(place, 0, place.size)
        return lambda begin, end: texts[begin:end]


def _bounded(texts: Sequence[Text], series: int) -> bytes:
    """Texts of all points of an array after their boundaries."""
    cells = len(texts) // series
    ends = array(_UNSIGNED, accumulate(map(len, texts), initial=_WIDTH * (cells + 1) * series))
    by_cell = chain.from_iterable(ends[cell::cells][:series] for cell in range(cells + 1))
    return b"".join([array(_UNSIGNED, by_cell), *texts])


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
        begin, most = begins[first], _CELLS.get(width, 0)
        is_kept = count >= _FEWEST if most > 1 else count == most
        if is_kept and begin >= 0 and begin % QUARTER == 0:
            slot = Slot(cells_of(len(state.series), most, _POINTS), 0, begin % width, width, wording)
            for run in runs_of(slot, begin, count):
                found.append(Stretch(first, run))
                first += len(run.cells)
    return found
