"""`serve`: the HTTP service alone, under gunicorn."""

import logging
from contextlib import ExitStack, closing
from functools import partial

from analytics_service.config.settings import Settings
from analytics_service.embedded.clickhouse import attached, clickhouse, ending_with_holder
from analytics_service.errors import AccessRefused, AnalyticsError
from analytics_service.http.api_keys import require_keys
from analytics_service.server.address import require_free
from analytics_service.server.http_service import HttpService, Orders
from analytics_service.store.connection import Store
from analytics_service.store.migrations import migrate
from analytics_service.supervisor import running

log = logging.getLogger(__name__)


def serve(settings: Settings, command: str, orders: Orders) -> None:
    """Run gunicorn until this process is told to stop; start an embedded ClickHouse unless it runs already.

    EmbeddedServerError if that ClickHouse belonged to another command, which has ended.
    """
    require_free(settings)
    require_keys(settings)
    fail = partial(orders.put, None)
    with ExitStack() as stack:
        reached = attached(settings)
        if reached is None:
            reached = stack.enter_context(clickhouse(settings, command))
            with closing(Store(reached)) as store:
                migrate(store, is_alone=True)
        else:
            _warn_unless_reached(reached)
        stack.enter_context(ending_with_holder(reached, fail))
        service = HttpService(reached)
        stack.enter_context(running([service]))
        service.follow(orders)


def _warn_unless_reached(settings: Settings) -> None:
    """Log why ClickHouse cannot be reached. gunicorn's workers go on trying. AccessRefused ends the service."""
    try:
        with closing(Store(settings)) as store:
            store.server_version()
    except AccessRefused:
        raise
    except AnalyticsError as error:
        log.warning("%s Requests are answered with 503 until it can be used.", error)
