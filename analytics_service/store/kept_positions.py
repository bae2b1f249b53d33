"""Positions of one snapshot in memory: a query costs a hundred times as much as the rest of a lookup.

Positions of any other snapshot are read from the store, so no lookup waits until memory is loaded.
"""

import logging
import threading
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import zip_longest

import polars as pl

from analytics_service.errors import AnalyticsError, Superseded
from analytics_service.market.positions import Position
from analytics_service.store.connection import Store
from analytics_service.store.ledger import Head, PastHead, completed, require_unchanged
from analytics_service.store.positions import STATE, position_of, read_changed, read_items, read_position
from analytics_service.store.sql import MOST_ADDRESSES

log = logging.getLogger(__name__)

# Lookups before all positions are loaded. So many queries cost a quarter as much as loading 100,000 addresses.
_WORTH = 50
# About 100 MB.
_MOST_ITEMS = 2_000_000


def _in_background(work: Callable[[], None]) -> None:
    threading.Thread(target=work, name="positions", daemon=True).start()


class _Part:
    """Positions of consecutive addresses: one row each in ascending order, with a list of items' values per column."""

    def __init__(self, rows: pl.DataFrame) -> None:
        self.rows = rows
        self.items = int(rows["kind"].list.len().sum())
        self._addresses = rows["address"]

    def position(self, address: str) -> Position:
        found = bisect_left(self._addresses, address)
        if found == len(self._addresses) or self._addresses[found] != address:
            return Position(address)
        _, *columns = self.rows.row(found)
        return position_of(address, zip(*columns, strict=True))


@dataclass(frozen=True, slots=True)
class _Kept:
    """All positions for a head, in parts. `begins` are the lowest addresses of the parts; the first is ""."""

    head: Head
    begins: Sequence[str]
    parts: Sequence[_Part]

    def position(self, address: str) -> Position:
        return self.parts[bisect_right(self.begins, address) - 1].position(address)


class KeptPositions:
    """Positions of single addresses. After `worth` lookups all positions are loaded into memory.

    From then on the changes of each new snapshot are read in the background. Nothing is kept in memory if there are
    more than `most_items` items.
    """

    def __init__(
        self,
        store: Store,
        worth: int = _WORTH,
        most_items: int = _MOST_ITEMS,
        chunk: int = MOST_ADDRESSES,
        later: Callable[[Callable[[], None]], None] = _in_background,
    ) -> None:
        self._store = store
        self._worth = worth
        self._most_items = most_items
        self._chunk = chunk
        self._later = later
        self._lock = threading.Lock()
        self._kept: _Kept | None = None
        self._lookups = 0
        self._few = True

    def read(self, address: str, head: Head) -> Position:
        """The position of a (lower-case) address for a head of family positions. From memory it needs no query.

        Superseded when positions were rewritten since the head, unless it is in memory.
        """
        kept = self._kept
        if kept is not None and kept.head == head:
            return kept.position(address)
        # Positions of the past are rarely asked for twice. A request that began before memory was renewed may have an
        # older head.
        if not isinstance(head, PastHead) and (kept is None or head.follows(kept.head)):
            self._lookups += 1
            pays = kept is not None or self._lookups >= self._worth
            if pays and self._few and self._lock.acquire(blocking=False):
                self._start(head)
        position = read_position(self._store, address, head.at)
        require_unchanged(self._store, head)
        return position

    def _start(self, head: Head) -> None:
        try:
            self._later(partial(self._load, head))
        except RuntimeError as error:
            # The system has no thread left. Positions are read from the store, and the next lookup tries again.
            log.warning("Positions are not kept in memory for now: %s", error)
            self._lock.release()

    def _load(self, head: Head) -> None:
        # After a failure nothing is in memory, and lookups are counted again from zero.
        kept, self._kept, self._lookups = self._kept, None, 0
        try:
            renewed = self._renewed(kept, head)
            require_unchanged(self._store, head)
            self._kept = renewed
        except Superseded:
            # Lookups for the head that follows load them again.
            return
        except AnalyticsError as error:
            log.warning("Positions could not be loaded into memory: %s", error)
        finally:
            self._lock.release()

    def _renewed(self, kept: _Kept | None, head: Head) -> _Kept | None:
        """All positions for a head; unchanged ones come from memory. None if there are too many."""
        if kept is not None and not self._continues(kept.head, head):
            kept = None
        changed = read_changed(self._store, kept.head.at if kept else 0)
        starts = range(0, max(changed.len(), 1), self._chunk)
        chunks = [changed[start : start + self._chunk] for start in starts]
        fresh: list[_Part] = []
        for chunk in chunks:
            fresh.append(_Part(_by_address(read_items(self._store, chunk.to_list(), head.at))))
            if not self._fits(fresh):
                return None
        begins = kept.begins if kept else ["", *(chunk[0] for chunk in chunks[1:])]
        parts = list(_merged(kept, changed, pl.concat(part.rows for part in fresh))) if kept else fresh
        return _Kept(head, begins, parts) if self._fits(parts) else None

    def _continues(self, kept: Head, head: Head) -> bool:
        """Whether only snapshots have been added since. A restore replaces the store, and counts as a rewrite."""
        return kept.rewrites == head.rewrites and kept.at in completed(self._store, head.family, kept.at, head.at)

    def _fits(self, parts: Sequence[_Part]) -> bool:
        if sum(part.items for part in parts) > self._most_items:
            log.info("Positions have more than %d items; they stay in the store.", self._most_items)
            self._few = False
        return self._few


def _merged(kept: _Kept, changed: pl.Series, fresh: pl.DataFrame) -> Iterator[_Part]:
    """The parts with the rows of changed addresses replaced by fresh ones, or removed."""
    address = pl.col("address")
    for part, begin, end in zip_longest(kept.parts, kept.begins, kept.begins[1:]):
        same = part.rows.filter(~address.is_in(changed.implode()))
        here = fresh.filter(address >= begin) if end is None else fresh.filter(address >= begin, address < end)
        yield _Part(pl.concat([same, here]).sort(address))


def _by_address(items: pl.DataFrame) -> pl.DataFrame:
    # These columns have few different values.
    words = pl.col("kind", "asset_id").cast(pl.Categorical)
    return items.with_columns(words).group_by("address", maintain_order=True).agg(STATE)
