"""`serve`: the HTTP service alone, under gunicorn."""

from contextlib import ExitStack, closing

from analytics_service.config import Settings
from analytics_service.embedded.clickhouse import attached, clickhouse
from analytics_service.processes.watch import running
from analytics_service.run.address import require_free
from analytics_service.run.http_service import HttpService, Orders
from analytics_service.store.connection import Store
from analytics_service.store.migrations import migrate


def serve(settings: Settings, command: str, orders: Orders) -> None:
    """Run gunicorn until this process is told to stop; start an embedded ClickHouse unless one runs already."""
    require_free(settings.bind)
    with ExitStack() as stack:
        reached = attached(settings)
        if reached is None:
            reached = stack.enter_context(clickhouse(settings, command, on_failure=lambda: orders.put(None)))
            with closing(Store(reached)) as store:
                migrate(store)
        service = HttpService(reached)
        stack.enter_context(running([service], lambda: orders.put(None)))
        service.follow(orders)
