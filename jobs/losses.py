"""Looks for what the store has lost (rule 8.19): as a scheduler starts, daily, and each minute while something is."""

import logging
import threading
from collections.abc import Callable

from analytics_service.clickhouse.connection import Store
from analytics_service.clickhouse.retries import ANY_FAILURE
from analytics_service.errors import AnalyticsError
from analytics_service.market.instants import DAY, MINUTE
from analytics_service.store.loss_check import check

log = logging.getLogger(__name__)


def watch_losses(store: Store, stop: threading.Event, find: Callable[[Store], bool] = check) -> None:
    """Check the store until `stop` is set. `find` records what is lost, and returns whether to look again soon. Runs in
    a thread of its own, because a large store takes minutes."""
    pause, cause = 0, ""
    while not stop.wait(pause):
        pause = MINUTE
        try:
            if not find(store):
                pause = DAY
            cause = ""
        except ANY_FAILURE as error:
            if str(error) != cause:
                unexpected = None if isinstance(error, AnalyticsError) else error
                what = "What the store has lost cannot be found out; it is tried again each minute."
                log.error("%s %s", what, error, exc_info=unexpected)
            cause = str(error)
