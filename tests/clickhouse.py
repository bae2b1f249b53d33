"""A way into the tables that the service's own code has no part in."""

from collections.abc import Iterator
from contextlib import contextmanager

import clickhouse_connect
from clickhouse_connect.driver.client import Client

from analytics_service.config import Settings


@contextmanager
def client(settings: Settings) -> Iterator[Client]:
    """ClickHouse's own client on the database that the settings name."""
    own = clickhouse_connect.get_client(
        dsn=settings.clickhouse_url,
        username=settings.clickhouse_user,
        password=settings.clickhouse_password,
        database=settings.clickhouse_database,
        # Statements of benchmarks fill tables with millions of rows.
        send_receive_timeout=600,
        tz_mode="aware",
    )
    try:
        yield own
    finally:
        own.close()
        # The driver's shared pool would keep them, and the server would wait for them when it is stopped.
        own.close_connections()
