"""Looks for what the store has lost (rule 8.19): as a scheduler starts, daily, and each minute while something is."""

import logging
import threading
from collections.abc import Callable
from datetime import datetime, timedelta

from analytics_service.clickhouse.connection import Store
from analytics_service.clickhouse.retries import ANY_FAILURE
from analytics_service.errors import AnalyticsError
from analytics_service.store.loss_check import check

log = logging.getLogger(__name__)

_DAILY, _SOON = timedelta(days=1), timedelta(minutes=1)


class LossWatch:
    """Checks the store when that is due, in a thread: a large store takes minutes."""

    def __init__(self, store: Store, find: Callable[[Store], bool] = check) -> None:
        """`find` records what is lost, and returns whether to look again soon."""
        self._store = store
        self._find = find
        self._interval = _DAILY
        self._last: datetime | None = None
        self._thread: threading.Thread | None = None

    def follow(self, now: datetime) -> None:
        """Begin a check if one is due, and none is going on. A clock that was set back makes it due."""
        is_due = self._last is None or not timedelta() <= now - self._last < self._interval
        if is_due and not (self._thread and self._thread.is_alive()):
            self._last = now
            self._thread = threading.Thread(target=self._check, name="losses", daemon=True)
            self._thread.start()

    def wait(self) -> None:
        """Return when no check is going on."""
        if self._thread:
            self._thread.join()

    def _check(self) -> None:
        self._interval = _SOON
        try:
            if not self._find(self._store):
                self._interval = _DAILY
        except AnalyticsError as error:
            log.warning("What the store has lost cannot be found out; it is tried again in a minute. %s", error)
        except ANY_FAILURE:
            log.exception("What the store has lost cannot be found out")
