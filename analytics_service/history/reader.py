"""Reads the frames of a page: from memory if all of them are cached, else from the store."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from analytics_service.clickhouse.connection import Store
from analytics_service.concurrency import Share
from analytics_service.errors import Superseded
from analytics_service.history.frame import Frame, FrameRange, last
from analytics_service.history.memory import RECENT, Memory
from analytics_service.history.stored import PinnedHistory
from analytics_service.market.instants import DAY, month_start, next_month
from analytics_service.store.datasets.histories import History
from analytics_service.store.datasets.observations import read_series
from analytics_service.store.ledger import Head, oldest_change, require_unchanged
from analytics_service.store.rollups import FIFTEEN_MINUTES, floor

# Buckets with a greater mean width are read from the store, which has rollups of days.
_WIDEST = 2 * DAY
# A month is loaded again when its frame is older than this.
_MOST_RECENT = DAY


class HistoryReader:
    """Reads a history as of its heads. All histories share a memory."""

    def __init__(self, store: Store, history: History, memory: Memory) -> None:
        self.history = history
        self._store = store
        self._memory = memory
        self._pinned: PinnedHistory | None = None
        self._advancing: Share[None] = Share()
        self._recents: Share[Frame] = Share()

    def at(self, head: Head) -> PinnedHistory:
        """The history pinned to a head. Superseded if the reader has moved on to a newer head."""
        while (pinned := self._pinned) is None or pinned.head != head:
            # One thread at a time, whichever head it advances to.
            self._advancing.get(None, lambda: self._advance(head))
        return pinned

    def _advance(self, head: Head) -> None:
        old = self._pinned
        if old is not None and old.head.follows(head):
            raise Superseded(f"{head.family} has a newer head.")
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
        self, pinned: PinnedHistory, ids: Sequence[str], begins: Sequence[int], until: int, *, all_columns: bool
    ) -> list[FrameRange]:
        """The parts for the buckets of these series between `begins` (unix s, ascending), up to `until`: with all
        columns, or else with last values at least.

        From memory without a query, unless the page ends within 15 minutes that are over, or is the first page
        after a snapshot. One query, with a cost proportional to the buckets, if memory lacks a month, which is then
        loaded in the background, or if buckets are shorter than 15 minutes or longer than days. Superseded
        when the history was rewritten since its head.
        """
        if not begins or until <= max(begins[0], pinned.first) or not pinned.series.keys() >= {*ids}:
            return []
        until = min(begins[-1], until)
        months = _months(max(begins[0], pinned.first), until) if self._memory.limit and _suits(begins) else []
        frames = self._memory.find(pinned, months)
        if not months or len(frames) < len(months):
            frame = pinned.frame(ids, begins, until, all_columns=all_columns)
            # After the query, so that this page does not wait for the load.
            self._memory.load(pinned, [month for month in months if month not in frames], len(frames))
            return [FrameRange(frame, frame.begin, until)]
        parts = self._joined(pinned, frames, until)
        since = floor(until, FIFTEEN_MINUTES)
        if since < until and parts[-1].frame.cuts(until):
            frame = pinned.frame(pinned.ids, [since], until)
            parts = [replace(part, until=min(part.until, since)) for part in parts if part.since < since]
            parts.append(FrameRange(frame, since, until))
        return parts

    def last_instant(self, pinned: PinnedHistory, second: int) -> int | None:
        """Time of the history's last observation at or before a second, unix seconds; None before the first. Cost and
        errors are those of a page with a single bucket."""
        if second >= pinned.newest:
            return pinned.newest
        begin = floor(second, FIFTEEN_MINUTES)
        parts = self.parts(pinned, pinned.ids, [begin, begin + FIFTEEN_MINUTES], second + 1, all_columns=False)
        newest = last(parts, pinned.ids, [second + 1])["second"].max()
        return newest if isinstance(newest, int) and newest >= 0 else None

    def _joined(self, pinned: PinnedHistory, frames: Mapping[int, Frame], until: int) -> list[FrameRange]:
        """The frames of consecutive months, and a frame of observations since the newest of them was loaded."""
        parts: list[FrameRange] = []
        for month, frame in frames.items():
            parts.append(FrameRange(frame, month, min(frame.until, until)))
            if frame.until < min(next_month(month), until):
                parts.append(FrameRange(self._recent(pinned, frame.until, until), frame.until, until))
                if pinned.newest - frame.until > _MOST_RECENT:
                    self._memory.load(pinned, [stale for stale in frames if stale >= month], len(frames))
                break
        return parts

    def _recent(self, pinned: PinnedHistory, since: int, until: int) -> Frame:
        """A frame from the start of 15 minutes on: rollups, and observations that no rollup covers yet."""
        recent = self._memory.find(pinned, [RECENT]).get(RECENT)
        if recent is None or recent.begin > since or recent.until < until:
            recent = self._recents.get((pinned.head, since), lambda: self._read_recent(pinned, since))
        return recent

    def _read_recent(self, pinned: PinnedHistory, since: int) -> Frame:
        tail, until = floor(pinned.newest + 1, FIFTEEN_MINUTES), pinned.newest + 1
        recent = pinned.frame(pinned.ids, [*range(since, tail, FIFTEEN_MINUTES), *range(tail, until)], until)
        self._memory.put(pinned, RECENT, recent)
        return recent


def _months(since: int, until: int) -> list[int]:
    """The starts of the UTC months in which a range of time lies."""
    months = [month_start(since)]
    while (following := next_month(months[-1])) < until:
        months.append(following)
    return months


def _suits(begins: Sequence[int]) -> bool:
    """Whether rollups of 15 minutes make up the buckets, and these are narrow enough for memory."""
    if begins[-1] - begins[0] > _WIDEST * (len(begins) - 1):
        return False
    if isinstance(begins, range):
        return not (begins.start % FIFTEEN_MINUTES or begins.step % FIFTEEN_MINUTES)
    return not any(begin % FIFTEEN_MINUTES for begin in begins)
