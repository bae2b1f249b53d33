"""The heads of datasets as of past moments (rule 8.12, as-of state)."""

import threading
from collections.abc import Iterable
from dataclasses import dataclass, replace

from cachetools import LRUCache

from analytics_service.clickhouse.connection import Store
from analytics_service.market.instants import unix_second
from analytics_service.state.watcher import Heads
from analytics_service.store.datasets.assets import ASSETS_DATASET, read_assets
from analytics_service.store.datasets.histories import HISTORIES
from analytics_service.store.datasets.observations import read_latest
from analytics_service.store.ledger import IMPORTED, NONE, Head, PastHead, change_counts, past_head, require_unchanged
from analytics_service.store.schema import TABLES

# Heads are small, and reading a head takes two or three queries.
_MAX_HEADS = 4_000


@dataclass(frozen=True, slots=True)
class Moment:
    """A moment (unix second), and whether late jobs may still write for it."""

    at: int
    late: bool


class Moments:
    """Reads and caches heads as of moments."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lock = threading.Lock()
        self._heads: LRUCache[tuple[str, Moment], PastHead] = LRUCache(_MAX_HEADS)

    def heads(self, heads: Heads, datasets: Iterable[str], moment: Moment) -> dict[str, Head]:
        """The heads of datasets as of a moment, by dataset. Raises Superseded like `Heads.head`."""
        return {dataset: self._head(heads, dataset, moment) for dataset in datasets}

    def _head(self, heads: Heads, dataset: str, moment: Moment) -> Head:
        """A dataset's newest head if all of its data is from the moment or before, else a PastHead."""
        newest = heads.head(dataset) if heads.has(dataset) else None
        if newest is not None and max(newest.at, newest.last_observed_at) <= moment.at:
            return newest
        with self._lock:
            cached = self._heads.get((dataset, moment))
        if cached is not None and cached.is_current(newest):
            return cached
        rewrites, losses = change_counts(newest)
        past = PastHead(dataset, at=NONE, last_observed_at=NONE, version=0, runs=0, rewrites=rewrites, losses=losses)
        if newest is not None:
            past = self._find(newest, moment, imported=IMPORTED in heads.origins)
            require_unchanged(self._store, newest)
        with self._lock:
            self._heads[dataset, moment] = past
        return past

    def _find(self, newest: Head, moment: Moment, *, imported: bool) -> PastHead:
        described = newest.dataset == ASSETS_DATASET
        # A commit may append observations although the newest snapshot is later than all observations.
        late = moment.late or moment.at >= newest.last_observed_at
        head = past_head(self._store, newest, moment.at, late=late, imported=imported, described=described)
        if head.last_observed_at > head.at and not TABLES[newest.dataset]:
            observed = self._last_observed(head)
            head = replace(head, at=observed, last_observed_at=observed)
        if described and head.at == NONE:
            # Definitions of that time are unknown, so assets have their present definitions.
            head = replace(head, version=newest.version, max_version=newest.version, open_with=newest)
        return head

    def _last_observed(self, head: PastHead) -> int:
        """Unix second of the dataset's newest snapshot or imported observation up to the head's `last_observed_at`."""
        ids = list(read_assets(self._store, head.version, head.max_version))
        histories = [history for history in HISTORIES if history.dataset == head.dataset]
        values = [read_latest(self._store, history, ids, head.last_observed_at) for history in histories]
        return max([head.at, *(unix_second(at) for latest in values for _, at in latest.values())])
