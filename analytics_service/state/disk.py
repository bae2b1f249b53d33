"""How full ClickHouse's disk is, as operators are told.

A thread finds out, since a server of the cluster that hangs takes seconds to tell. No request waits for it.
"""

import logging

from analytics_service.errors import AnalyticsError
from analytics_service.state.background import Background
from analytics_service.store.connection import Store
from analytics_service.store.disk import Disk, read_disk

log = logging.getLogger(__name__)

_INTERVAL = 15.0


class DiskReader:
    """The disk. While it cannot be read, what was known of it stays."""

    def __init__(self, store: Store) -> None:
        self.newest: Disk | None = None
        self._store = store
        self._background = Background("disk")

    def follow(self, now: float, *, in_background: bool) -> None:
        """Read it again, unless that was done a few seconds ago, or is under way."""
        self._background.repeat(self._read, now, _INTERVAL, in_background=in_background)

    def _read(self) -> None:
        try:
            self.newest = read_disk(self._store)
        except AnalyticsError as error:
            log.debug("How full ClickHouse's disk is cannot be read: %s", error)
