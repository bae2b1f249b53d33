"""Where memory has candles: in blocks of those of hours, and of those of the local days of a zone."""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from zoneinfo import ZoneInfo

from analytics_service.history.blocks import hours_of
from analytics_service.history.calendar import DAY, EPOCH_ORDINAL, midnights
from analytics_service.history.grid import HOUR
from analytics_service.history.rows import Buckets
from analytics_service.store.cells import QUARTER

# Hours and days of a block: one is read in a fraction of a second.
_HOURS = 512
_DAYS = 64


@dataclass(frozen=True, slots=True)
class CandleSlot:
    """Which block of candles: number n of those with so many `cells`, and which columns of theirs.

    Cells are hours, the first of which begins `phase` seconds after 1970, or the local days of a zone from 1970-01-01.
    """

    cells: int
    number: int
    columns: tuple[str, ...]
    phase: int = 0
    zone: ZoneInfo | None = None

    @property
    def begin(self) -> int:
        """A unix second not later than the start of its first cell."""
        begin = self.number * self.cells
        return begin * HOUR + self.phase if self.zone is None else (begin - 1) * DAY

    @property
    def end(self) -> int:
        """A unix second not earlier than the end of its last cell."""
        end = (self.number + 1) * self.cells
        return end * HOUR + self.phase if self.zone is None else (end + 1) * DAY

    def bounds(self, newest: int) -> list[int]:
        """Starts of the cells that have ended when the newest observation was made, and the end of the last one."""
        first = self.number * self.cells
        if self.zone is None:
            found = [number * HOUR + self.phase for number in range(first, first + self.cells + 1)]
        else:
            found = midnights(self.zone, range(first + EPOCH_ORDINAL, first + EPOCH_ORDINAL + self.cells + 1))
        return found[: bisect_right(found, newest + 1)]


@dataclass(frozen=True, slots=True)
class CandleRun:
    """Consecutive cells of one block (numbers from 0 in the slot)."""

    slot: CandleSlot
    hours: list[int]


@dataclass(frozen=True, slots=True)
class CandleLookup:
    """Where memory has the candles of a page: cells of blocks, and for each of them the bucket that it lies in.

    Where the page ends within an hour or day, what is left from `open_from` on belongs to the last bucket, too.
    """

    runs: list[CandleRun]
    buckets: list[int]
    open_from: int | None


def look_up_candles(buckets: Buckets, columns: tuple[str, ...], series: int) -> CandleLookup | None:
    """Where blocks of so many series hold the candles of buckets that begin before `until`.

    None when a bucket does not consist of whole hours that begin with a quarter of an hour, or of local days.
    """
    if buckets.days is not None and buckets.zone is not None:
        return _of_days(buckets, buckets.days, buckets.zone, columns, hours_of(series, _DAYS))
    return _of_hours(buckets, columns, hours_of(series, _HOURS))


def slot_of_hour(end: int, columns: tuple[str, ...], series: int) -> CandleSlot:
    """The slot of the hour that ends at a unix second."""
    hours = hours_of(series, _HOURS)
    return CandleSlot(hours, ((end - end % HOUR) // HOUR - 1) // hours, columns, end % HOUR)


def _of_hours(buckets: Buckets, columns: tuple[str, ...], cells: int) -> CandleLookup | None:
    lookup, open_from = CandleLookup([], [], None), None
    for bucket, (begin, end) in enumerate(pairwise(buckets.begins)):
        if begin >= buckets.until:
            break
        if end > buckets.until:
            end = buckets.until - (buckets.until - begin) % HOUR
            open_from = end if end < buckets.until else None
        if begin < 0 or begin % QUARTER or (end - begin) % HOUR:
            return None
        for number in range(begin // HOUR, end // HOUR):
            _add(lookup, bucket, CandleSlot(cells, number // cells, columns, begin % HOUR), number % cells)
    return CandleLookup(lookup.runs, lookup.buckets, open_from)


def _of_days(
    buckets: Buckets, days: Sequence[int], zone: ZoneInfo, columns: tuple[str, ...], cells: int
) -> CandleLookup | None:
    lookup, open_from = CandleLookup([], [], None), None
    for bucket, ((begin, end), (first, stop)) in enumerate(zip(pairwise(buckets.begins), pairwise(days), strict=True)):
        if begin >= buckets.until:
            break
        if begin < 0:
            return None
        if end > buckets.until:
            within = midnights(zone, range(first, stop + 1))
            closed = bisect_right(within, buckets.until) - 1
            stop, open_from = first + closed, within[closed] if within[closed] < buckets.until else None
        for day in range(first - EPOCH_ORDINAL, stop - EPOCH_ORDINAL):
            _add(lookup, bucket, CandleSlot(cells, day // cells, columns, zone=zone), day % cells)
    return CandleLookup(lookup.runs, lookup.buckets, open_from)


def _add(lookup: CandleLookup, bucket: int, slot: CandleSlot, cell: int) -> None:
    if not lookup.runs or lookup.runs[-1].slot != slot:
        lookup.runs.append(CandleRun(slot, []))
    lookup.runs[-1].hours.append(cell)
    lookup.buckets.append(bucket)
