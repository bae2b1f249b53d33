"""Reads the segments of a page: from memory if all months are cached, else from the store."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from analytics_service.clickhouse.connection import Store
from analytics_service.concurrency import SingleFlight
from analytics_service.errors import Superseded
from analytics_service.history.memory import RECENT, Memory
from analytics_service.history.segments import PinnedHistory, Segment, SegmentRange, last_values
from analytics_service.market.instants import DAY, month_start, next_month
from analytics_service.store.datasets.histories import History
from analytics_service.store.datasets.observations import read_series
from analytics_service.store.ledger import Head, oldest_change, require_unchanged
from analytics_service.store.rollups import FIFTEEN_MINUTES, floor_to_width

# Buckets with a greater mean width are read from the store, which has day rollups.
_WIDEST = 2 * DAY
# A month is loaded again when its segment is older than this.
_MOST_RECENT = DAY


class HistoryReader:
    """Reads a history as of heads of its dataset. All histories share a memory."""

    def __init__(self, store: Store, history: History, memory: Memory) -> None:
        self.history = history
        self._store = store
        self._memory = memory
        self._pinned: PinnedHistory | None = None
        self._advancing: SingleFlight[None] = SingleFlight()
        self._recents: SingleFlight[Segment] = SingleFlight()

    def at(self, head: Head) -> PinnedHistory:
        """The history pinned to a head. Raises Superseded if the reader has advanced to a newer head."""
        while (pinned := self._pinned) is None or pinned.head != head:
            # One thread at a time, for any head.
            self._advancing.get(None, lambda: self._advance(head))
        return pinned

    def _advance(self, head: Head) -> None:
        old = self._pinned
        if old is not None and old.head.follows(head):
            raise Superseded(f"{head.dataset} has a newer head.")
        series = read_series(self._store, self.history, head.last_observed_at + 1)
        changed = oldest_change(self._store, old.head, head) if old is not None else 0
        require_unchanged(self._store, head)
        pinned = PinnedHistory(self._store, self.history, head, series, old.generation if old else 0)
        if old is None or old.ids != pinned.ids:
            changed = 0
        if changed is not None and (old is None or changed <= old.newest):
            pinned = replace(pinned, generation=pinned.generation + 1)
            self._memory.renew(pinned, changed)
            self._memory.fill(pinned)
        self._pinned = pinned

    def parts(
        self, pinned: PinnedHistory, ids: Sequence[str], begins: Sequence[int], end: int, *, all_columns: bool
    ) -> list[SegmentRange]:
        """Segments for the buckets of these series between `begins` (unix s, ascending), before `end`, with all columns
        or at least last values.

        Memory answers without a query, unless the page is the first one after a snapshot. If memory lacks a month, if
        buckets are shorter than 15 minutes or wider than two days, or if the page ends within a closed rollup, one
        query reads the store, at a cost proportional to the buckets. The month is then loaded in the background. Raises
        Superseded if the history was rewritten since its head.
        """
        if not begins or end <= max(begins[0], pinned.first) or not pinned.series.keys() >= {*ids}:
            return []
        end = min(begins[-1], end)
        ends_in_rollup = end % FIFTEEN_MINUTES and end < floor_to_width(pinned.newest + 1, FIFTEEN_MINUTES)
        suits = self._memory.limit and _suits(begins) and not ends_in_rollup
        months = _months(max(begins[0], pinned.first), end) if suits else []
        segments = self._memory.find(pinned, months)
        if not months or len(segments) < len(months):
            segment = pinned.segment(ids, begins, end, all_columns=all_columns)
            # Queued after the query, so that this page does not wait for the load.
            self._memory.load(pinned, [month for month in months if month not in segments], len(segments))
            return [SegmentRange(segment, segment.begin, end)]
        return self._joined(pinned, segments, end)

    def last_instant(self, pinned: PinnedHistory, second: int) -> int | None:
        """Unix second of the history's last observation at or before `second`; None before the first. Cost and errors
        are as for a page with one bucket."""
        if second >= pinned.newest:
            return pinned.newest
        begin = floor_to_width(second, FIFTEEN_MINUTES)
        parts = self.parts(pinned, pinned.ids, [begin, begin + FIFTEEN_MINUTES], second + 1, all_columns=False)
        newest = last_values(parts, pinned.ids, [second + 1])["second"].max()
        return newest if isinstance(newest, int) and newest >= 0 else None

    def _joined(self, pinned: PinnedHistory, segments: Mapping[int, Segment], end: int) -> list[SegmentRange]:
        """The segments of consecutive months, and a segment of observations since the newest month was loaded."""
        parts: list[SegmentRange] = []
        for month, segment in segments.items():
            parts.append(SegmentRange(segment, month, min(segment.end, end)))
            if segment.end < min(next_month(month), end):
                parts.append(SegmentRange(self._recent(pinned, segment.end, end), segment.end, end))
                if pinned.newest - segment.end > _MOST_RECENT:
                    self._memory.load(pinned, [stale for stale in segments if stale >= month], len(segments))
                break
        return parts

    def _recent(self, pinned: PinnedHistory, start: int, end: int) -> Segment:
        """A segment from `start`, a multiple of 15 minutes: rollups, and observations that no rollup covers yet."""
        recent = self._memory.find(pinned, [RECENT]).get(RECENT)
        if recent is None or recent.begin > start or recent.end < end:
            recent = self._recents.get((pinned.head, start), lambda: self._read_recent(pinned, start))
        return recent

    def _read_recent(self, pinned: PinnedHistory, start: int) -> Segment:
        tail, end = floor_to_width(pinned.newest + 1, FIFTEEN_MINUTES), pinned.newest + 1
        recent = pinned.segment(pinned.ids, [*range(start, tail, FIFTEEN_MINUTES), *range(tail, end)], end)
        self._memory.put(pinned, RECENT, recent)
        return recent


def _months(start: int, end: int) -> list[int]:
    """The starts of the UTC months that a range overlaps."""
    months = [month_start(start)]
    while (following := next_month(months[-1])) < end:
        months.append(following)
    return months


def _suits(begins: Sequence[int]) -> bool:
    """Whether 15min rollups make up the buckets, and the buckets are narrow enough for memory."""
    if begins[-1] - begins[0] > _WIDEST * (len(begins) - 1):
        return False
    if isinstance(begins, range):
        return not (begins.start % FIFTEEN_MINUTES or begins.step % FIFTEEN_MINUTES)
    return not any(begin % FIFTEEN_MINUTES for begin in begins)
