"""Access to the tables that is independent of the service's own code."""

from collections.abc import Iterator
from contextlib import contextmanager

import clickhouse_connect
from clickhouse_connect.driver.client import Client

from analytics_service.config import Settings


@contextmanager
def client(settings: Settings) -> Iterator[Client]:
    """ClickHouse's own client, on the database that the settings name."""
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
        # The driver's shared pool would keep the connections open, and the server would wait for them when it stops.
        own.close_connections()
