"""What `up` prints once the service answers."""

from urllib.parse import urlsplit

from analytics_service.clickhouse.running import RESEARCHER_PASSWORD, native_port, server_of
from analytics_service.config.settings import Settings
from analytics_service.embedded.configuration import RESEARCHER
from analytics_service.server.address import local_url
from analytics_service.sources.registry import Choice


def welcome(settings: Settings, choice: Choice, *, has_prices: bool) -> str:
    """Addresses to try, the source of snapshots, where to use SQL, and how to stop."""
    base, server, source = local_url(settings.bind), server_of(settings), choice.source
    ask = f"Open {base}/ in a browser, or try:"
    if settings.bind.startswith("unix:"):
        ask = f"`curl --unix-socket {settings.bind.removeprefix('unix:')} URL` asks it, for example for:"
    lines = [
        "",
        f"The service is up. {ask}",
        "",
        f"  {base}/api/v1/assets/prices?with_text=true",
        f"  {base}/api/v1/assets/price-history?start=now-7d&end=now&period=d",
    ]
    if source is not None and source.sample_account:
        lines += [f"  {base}/?view=address&address={source.sample_account}"]
    lines += [f"  {base}/docs", ""]
    lines += [f"Jobs  {choice.reason if source is None else f'Snapshots come from {source.spec}.'}"]
    if not has_prices:
        lines += ["      There are no prices yet. `analytics-service import --help` says how to bring some in."]
    if settings.metrics_endpoint is not None:
        url = local_url(settings.metrics_bind)
        at = f" at {settings.metrics_bind}" if isinstance(settings.metrics_endpoint, str) else ""
        lines += [f"Ops   {url}/operations and {url}/metrics{at}"]
    lines += ["SQL   " + "\n      ".join(sql_addresses(settings))]
    if server.data_folder is not None:
        lines += [f"Data  {server.data_folder}"]
    return "\n".join([*lines, "Stop  Ctrl-C", ""])


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
