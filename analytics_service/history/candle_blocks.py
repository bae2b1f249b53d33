"""Finds candles in memory, where there are blocks of hourly candles and blocks of daily ones.

Days have 24 hours and begin at some time of day in UTC, so zones share them. A local day is such a day, unless clocks
change on it. Where no bucket is wider than a day, days are taken from blocks that slide (history/day_blocks.py), which
are made from those of hours. Wider buckets need many days at one time of day, which have blocks of their own.
"""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, replace

from analytics_service.history.buckets import Buckets
from analytics_service.history.day_blocks import HOURS_OF_A_DAY
from analytics_service.history.slots import Candles, Run, Slot, cells_of, runs_of
from analytics_service.market.instants import DAY, HOUR
from analytics_service.store.cells import QUARTER

# Most cells of a block, and most candles, by the width of cells: one is read in a fraction of a second.
_CELLS = {HOUR: (2048, 2**16), DAY: (128, 2**14)}
# Each time of day at which wide buckets begin takes blocks of its own. With fewer days than this for each, it is faster
# to combine hours.
_DAYS_AT_A_TIME = 16


@dataclass(frozen=True, slots=True)
class CandleLookup:
    """Where memory has the candles of a page: runs of cells, and in `counts` how many of these cells each bucket has.

    Buckets beyond the `counts` have none. If the page ends within an hour, the rest of it, from `open_from` on, also
    belongs to the last bucket in `counts`.
    """

    runs: list[Run]
    counts: list[int]
    open_from: int | None = None


def look_up_candles(buckets: Buckets, columns: tuple[str, ...], series: int) -> CandleLookup | None:
    """Where blocks of so many series hold the candles of buckets that begin before `until`.

    A bucket consists of as many days as fit, and then of hours. None when one does not consist of whole hours that
    begin with a quarter of an hour.
    """
    stop = bisect_left(buckets.begins, buckets.until, 0, max(buckets.count, 0))
    begins = buckets.begins[:stop]
    is_cut = stop > 0 and buckets.begins[stop] > buckets.until
    stretches = [*buckets.alike(0, stop - is_cut)]
    if is_cut:
        stretches.append((stop - 1, buckets.until - begins[-1], 1))
    slides = max((length for _, length, _ in stretches), default=0) < 2 * DAY
    by_days = slides or _have_many_days(begins, min(buckets.begins[stop], buckets.until))
    spans: list[tuple[int, int, int]] = []
    counts: list[int] = []
    rest = 0
    for first, length, count in stretches:
        days = length // DAY if by_days else 0
        hours, rest = divmod(length - days * DAY, HOUR)
        # If the first of these buckets begins with a quarter of an hour, so do the others, which are as long.
        if begins[first] < 0 or begins[first] % QUARTER or (rest and not (is_cut and first == stop - 1)):
            return None
        if (days, hours) in ((0, 1), (1, 0)):
            _extend(spans, begins[first], length - rest, count)
        else:
            for begin in begins[first : first + count]:
                _extend(spans, begin, DAY, days)
                _extend(spans, begin + days * DAY, HOUR, hours)
        counts += [days + hours] * count
    runs: list[Run] = []
    for begin, width, count in spans:
        if slides and width == DAY:
            runs += _sliding_runs(_slot(HOUR, begin, columns, series), begin, count)
        else:
            runs += runs_of(_slot(width, begin, columns, series), begin, count)
    return CandleLookup(runs, counts, buckets.until - rest if rest else None)


def _have_many_days(begins: Sequence[int], end: int) -> bool:
    """Whether wide buckets, the last of which has an end, have so many days for each time of day at which one begins
    that blocks of days are worth it."""
    times = len({begin % DAY for begin in begins})
    return times == 1 or end - begins[0] >= times * _DAYS_AT_A_TIME * DAY


def hours_of_days(run: Run) -> list[Run]:
    """The hours of a run of days in blocks that slide, from the first day's to the last one's."""
    first, last = run.cells[0], run.cells[-1]
    hourly = replace(run.slot, width=HOUR, holds=Candles(run.slot.columns))
    return runs_of(hourly, run.slot.begin + first * HOUR, last - first + HOURS_OF_A_DAY)


def slot_of_hour(end: int, columns: tuple[str, ...], series: int) -> Slot:
    """The slot of the hour that ends at a unix second."""
    return _slot(HOUR, end, columns, series).holding(end - HOUR)


def _slot(width: int, begin: int, columns: tuple[str, ...], series: int) -> Slot:
    """The first slot of cells of a width, one of which begins at a unix second."""
    return Slot(cells_of(series, *_CELLS[width]), 0, begin % width, width, Candles(columns))


def _extend(spans: list[tuple[int, int, int]], begin: int, width: int, count: int) -> None:
    """Add some cells to spans: where each begins, and the width and number of its cells."""
    if not count:
        return
    if spans:
        last, last_width, known = spans[-1]
        if last_width == width and last + known * width == begin:
            spans[-1] = last, width, known + count
            return
    spans.append((begin, width, count))


def _sliding_runs(hourly: Slot, begin: int, count: int) -> list[Run]:
    """So many days from a unix second on, in blocks that slide over the hours of blocks like a slot.

    A day at the end of a block, whose hours are in the next one too, is a run of its own.
    """
    slot = replace(hourly, width=DAY, holds=Candles(hourly.columns, slide=True))
    runs = []
    hour = begin // HOUR
    while count:
        number, within = divmod(hour, slot.cells)
        whole = (slot.cells - within) // HOURS_OF_A_DAY
        days = min(max(whole, 1), count)
        runs.append(Run(slot.at(number), range(within, within + days * HOURS_OF_A_DAY, HOURS_OF_A_DAY)))
        hour, count = hour + days * HOURS_OF_A_DAY, count - days
    return runs
