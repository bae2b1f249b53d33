"""Which servers of the cluster answer, as operators are told.

A thread finds out, since one that hangs takes seconds to tell. No request waits for it.
"""

import logging
from collections.abc import Sequence

from analytics_service.errors import AnalyticsError
from analytics_service.state.background import Background
from analytics_service.store.connection import Store
from analytics_service.store.shards import Replica, read_replicas, told_away

log = logging.getLogger(__name__)

_INTERVAL = 5.0


class ReplicaReader:
    """The servers of the cluster, or of the settings. While they cannot be read, what was known of them stays."""

    def __init__(self, store: Store) -> None:
        self.newest: Sequence[Replica] = ()
        self._store = store
        self._background = Background("replicas")

    def follow(self, now: float, *, in_background: bool) -> None:
        """Read them again, unless that was done a few seconds ago, or is under way."""
        if not self._store.layout.cluster:
            # Who probes them logs what changes.
            self.newest = read_replicas(self._store)
        else:
            self._background.repeat(self._read, now, _INTERVAL, in_background=in_background)

    def _read(self) -> None:
        before = told_away(self.newest)
        try:
            self.newest = read_replicas(self._store)
        except AnalyticsError as error:
            log.debug("Which servers of the cluster answer cannot be read: %s", error)
            return
        away = told_away(self.newest)
        for words in away:
            if words not in before:
                log.warning("Of cluster %s, %s.", self._store.layout.cluster, words)
        if before and not away:
            log.info("All servers of cluster %s answer again.", self._store.layout.cluster)
