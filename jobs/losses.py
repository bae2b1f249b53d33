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
    pause = 0
    while not stop.wait(pause):
        pause = MINUTE
        try:
            if not find(store):
                pause = DAY
        except AnalyticsError as error:
            log.warning("What the store has lost cannot be found out; it is tried again in a minute. %s", error)
        except ANY_FAILURE:
            log.exception("What the store has lost cannot be found out")
