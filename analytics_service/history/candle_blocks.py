"""Finds candles in memory, where there are blocks of hourly candles and blocks of daily ones.

Days have 24 hours and begin at some time of day in UTC, so zones share them. A local day is such a day, unless clocks
change on it.
"""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from analytics_service.history.blocks import Run, Slot, hours_of
from analytics_service.history.rows import Buckets
from analytics_service.market.instants import DAY, HOUR
from analytics_service.store.cells import QUARTER

# Cells of a block, by their width: one is read in a fraction of a second.
_CELLS = {HOUR: 512, DAY: 128}
_HOURS_OF_A_DAY = DAY // HOUR
# Each time of day at which buckets begin takes blocks of its own. With fewer days than this for each, it is faster to
# combine hours.
_DAYS_AT_A_TIME = 16


@dataclass(frozen=True, slots=True)
class CandleLookup:
    """Where memory has the candles of a page: runs of cells, and in `counts` how many of these cells each bucket has.

    Buckets beyond the `counts` have none. If the page ends within an hour, the rest of it, from `open_from` on, also
    belongs to the last bucket in `counts`. No bucket has more than `days` cells that are days.
    """

    runs: list[Run]
    counts: list[int]
    open_from: int | None = None
    days: int = 0


def look_up_candles(buckets: Buckets, columns: tuple[str, ...], series: int) -> CandleLookup | None:
    """Where blocks of so many series hold the candles of buckets that begin before `until`.

    A bucket consists of as many days as fit, and then of hours. None when one does not consist of whole hours that
    begin with a quarter of an hour.
    """
    stop = bisect_left(buckets.begins, buckets.until, 0, max(buckets.count, 0))
    begins = buckets.begins[:stop]
    is_cut = stop > 0 and buckets.begins[stop] > buckets.until
    ends = [*buckets.begins[1:stop], min(buckets.begins[stop], buckets.until)] if stop else []
    lengths = [end - begin for begin, end in zip(begins, ends, strict=True)]
    times = len({begin % DAY for begin in begins})
    by_days = times == 1 or (times > 1 and ends[-1] - begins[0] >= times * _DAYS_AT_A_TIME * DAY)
    spans: list[tuple[int, int, int]] = []
    counts: list[int] = []
    most_days = rest = 0
    for length, numbers in groupby(range(stop), key=lengths.__getitem__):
        alike = [begins[number] for number in numbers]
        days = length // DAY if by_days else 0
        hours, rest = divmod(length - days * DAY, HOUR)
        # If the first of these buckets begins with a quarter of an hour, so do the others, which are as long.
        if alike[0] < 0 or alike[0] % QUARTER or (rest and not (is_cut and alike == begins[-1:])):
            return None
        if (days, hours) in ((0, 1), (1, 0)):
            _extend(spans, alike[0], length - rest, len(alike))
        else:
            for begin in alike:
                _extend(spans, begin, DAY, days)
                _extend(spans, begin + days * DAY, HOUR, hours)
        counts += [days + hours] * len(alike)
        most_days = max(most_days, days)
    return CandleLookup(_runs(spans, columns, series), counts, buckets.until - rest if rest else None, most_days)


def look_up_hours(slot: Slot, days: int, series: int) -> CandleLookup:
    """Where blocks hold the hours of the first so many days of a slot."""
    span = (slot.begin, HOUR, days * _HOURS_OF_A_DAY)
    return CandleLookup(_runs([span], slot.columns, series), [_HOURS_OF_A_DAY] * days)


def slot_of_hour(end: int, columns: tuple[str, ...], series: int) -> Slot:
    """The slot of the hour that ends at a unix second."""
    return _runs([(end - HOUR, HOUR, 1)], columns, series)[0].slot


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


def _runs(spans: Sequence[tuple[int, int, int]], columns: tuple[str, ...], series: int) -> list[Run]:
    runs = []
    for begin, width, count in spans:
        cells, first = hours_of(series, _CELLS[width]), begin // width
        for number in range(first // cells, (first + count - 1) // cells + 1):
            within = range(max(first - number * cells, 0), min(first + count - number * cells, cells))
            runs.append(Run(Slot(cells, number, begin % width, columns=columns, width=width), within))
    return runs
