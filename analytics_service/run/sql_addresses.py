"""Where and how SQL can be used, as `up` and `status` print it."""

from urllib.parse import urlsplit

from analytics_service.config.settings import Settings
from analytics_service.embedded.configuration import RESEARCHER
from analytics_service.store.server import RESEARCHER_PASSWORD, native_port, server_of


def sql_addresses(settings: Settings) -> list[str]:
    """ClickHouse's page for queries, and what clients take as DSN, a line each; then what else a researcher needs.

    StoreUnavailable when no ClickHouse runs in the data folder.
    """
    server, database = server_of(settings), settings.clickhouse_database
    if server.data_folder is None:
        return [
            f"{server.url}/play?database={database}",
            f"{server.url}/{database} over HTTP",
            "(`analytics-service migrate --researcher NAME` makes a user for people)",
        ]
    port = urlsplit(server.url).port or 0
    return [
        f"{server.url}/play?user={RESEARCHER}&database={database}",
        f"http://{RESEARCHER}@127.0.0.1:{port}/{database} over HTTP",
        f"clickhouse://{RESEARCHER}@127.0.0.1:{native_port(port)}/{database} in ClickHouse's native protocol",
        f"(the password is in {server.data_folder / RESEARCHER_PASSWORD})",
    ]
