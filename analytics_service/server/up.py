"""`up`: ClickHouse, the scheduler and gunicorn as one service on one machine."""

import logging
import os
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

from analytics_service.clickhouse.connection import Store
from analytics_service.clickhouse.running import RESEARCHER_PASSWORD, native_port, server_of
from analytics_service.concurrency import beside
from analytics_service.config.settings import Settings
from analytics_service.embedded.clickhouse import FOUND, clickhouse
from analytics_service.embedded.configuration import RESEARCHER
from analytics_service.http.api_keys import require_keys
from analytics_service.http.instruments import FOLDER, JOBS_FOLDER, WRITER
from analytics_service.logs import echo
from analytics_service.server.address import is_bound, local_url
from analytics_service.server.metrics_folder import new_folder
from analytics_service.server.past import fill_past_beside
from analytics_service.server.serve import HttpService, Orders
from analytics_service.sources.registry import Choice, choose_source
from analytics_service.state.health import FILLING
from analytics_service.store.migrations import migrate
from analytics_service.store.rewrite import keep_complete
from analytics_service.store.schema import require_all_tables
from analytics_service.supervisor import Child, Program, Supervisor, run_children, start_python
from jobs.scheduler import watch_losses

log = logging.getLogger(__name__)

_SOURCE_OF_EMPTY = "simulated"
# Seconds that the end waits for the completion of a rewrite, and for a check for lost rows.
_LAST_SECONDS = 5.0


def up(settings: Settings, command: str, orders: Orders, *, replace_source: bool = False) -> None:
    """Run the complete service until this process is stopped. AnalyticsError if a part cannot be started."""
    require_keys(settings)
    with ExitStack() as stack:
        sockets = stack.enter_context(is_bound(settings))
        reached = stack.enter_context(clickhouse(settings, command, attach=False))
        with closing(Store(reached)) as store:
            migrate(store, is_alone=settings.clickhouse_url is None)
            require_all_tables(store)
            choice = choose_source(store, settings, empty=_SOURCE_OF_EMPTY, replace_source=replace_source)
        reached = replace(reached, source=choice.spec)
        children: list[Supervisor] = []
        variables = {}
        meanwhile = keep_store(reached)
        if choice.source is not None:
            stack.enter_context(closing(choice.source))
            folder = new_folder()
            stack.callback(shutil.rmtree, folder, ignore_errors=True)
            filling = Path(folder, "filling")
            filling.touch()
            variables = {JOBS_FOLDER: folder, FILLING: str(filling)}
            children = [Supervisor(_Scheduler(reached, folder))]
            meanwhile = fill_past_beside(reached, choice.source, filling)
        service = HttpService(reached, sockets, variables)
        # The scheduler takes the first snapshots while gunicorn starts.
        with run_children([*children, service]):
            echo(welcome_message(reached, choice))
            with meanwhile:
                service.follow(orders)


@contextmanager
def keep_store(settings: Settings) -> Iterator[None]:
    """Complete interrupted rewrites and look for lost rows beside the block. Used without a scheduler, which does the
    same. The next start does the rest."""
    with (
        closing(Store(settings)) as store,
        beside("rewrites", partial(keep_complete, store), _LAST_SECONDS),
        beside("losses", partial(watch_losses, store), _LAST_SECONDS),
    ):
        yield


class _Scheduler(Program):
    """A scheduler. After a restart it continues the metrics in the folder."""

    name = "scheduler"
    grace = 30.0

    def __init__(self, settings: Settings, metrics: str) -> None:
        self._environ = {**settings.to_environment(os.environ), FOUND: "true", FOLDER: metrics, WRITER: self.name}

    def launch(self) -> Child:
        return start_python(("-m", "analytics_service.cli", "jobs", "run"), self._environ)


def welcome_message(settings: Settings, choice: Choice) -> str:
    """Addresses to try, the source of snapshots, where to use SQL, and how to stop."""
    base, server, source = local_url(settings.bind), server_of(settings), choice.source
    ask = f"Open {base}/ in a browser, or try:"
    if settings.bind.startswith("unix:"):
        ask = f"Ask it with `curl --unix-socket {settings.bind.removeprefix('unix:')} URL`, for example:"
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
    if settings.metrics_endpoint is not None:
        url = local_url(settings.metrics_bind)
        at = f" at {settings.metrics_bind}" if isinstance(settings.metrics_endpoint, str) else ""
        lines += [f"Ops   {url}/operations and {url}/metrics{at}"]
    lines += ["SQL   " + "\n      ".join(sql_addresses(settings))]
    if server.data_folder is not None:
        lines += [f"Data  {server.data_folder}"]
    return "\n".join([*lines, "Stop  Ctrl-C", ""])


def sql_addresses(settings: Settings) -> list[str]:
    """Lines with the address of ClickHouse's query page, the DSNs of clients, and how to log in.

    StoreUnavailable if no ClickHouse runs in the data folder.
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
