"""`up`: ClickHouse, the scheduler and gunicorn as one service on one machine."""

import logging
import os
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace

from analytics_service.clickhouse.connection import Store
from analytics_service.concurrency import beside, within
from analytics_service.config.settings import Settings
from analytics_service.embedded.clickhouse import FOUND, clickhouse
from analytics_service.errors import AnalyticsError, SourceRefused
from analytics_service.http.api_keys import require_keys
from analytics_service.http.instruments import FOLDER, JOBS_FOLDER, WRITER
from analytics_service.logs import tell
from analytics_service.server.address import bound
from analytics_service.server.metrics_folder import new_folder
from analytics_service.server.past import filling_past, take_first_snapshots
from analytics_service.server.serve import HttpService, Orders
from analytics_service.server.welcome import welcome
from analytics_service.sources.registry import choose_source
from analytics_service.store.datasets.assets import ASSETS_FAMILY
from analytics_service.store.ledger import read_heads
from analytics_service.store.loss_check import check
from analytics_service.store.migrations import migrate
from analytics_service.store.ownership import require_continued
from analytics_service.store.rewrite import LOOK_SECONDS, keep_complete
from analytics_service.store.schema import require_all_tables
from analytics_service.supervisor import Child, Program, Supervisor, running, start_python

log = logging.getLogger(__name__)

_SOURCE_OF_EMPTY = "simulated"
# How long a start waits for the check of what the store has lost, seconds.
_CHECK_SECONDS = 5.0
# How long the end waits for a rewrite that is being completed, seconds.
_LAST_SECONDS = 5.0


def up(settings: Settings, command: str, orders: Orders, *, replace_source: bool = False) -> None:
    """Run the complete service until this process is told to stop. AnalyticsError if a part cannot be started."""
    require_keys(settings)
    with ExitStack() as stack:
        sockets = stack.enter_context(bound(settings))
        reached = stack.enter_context(clickhouse(settings, command, attach=False))
        with closing(Store(reached)) as store:
            bring_up_to_date(store, settings, replace_source=replace_source)
            _check_losses(store)
            choice = choose_source(store, settings, empty=_SOURCE_OF_EMPTY, replace_source=replace_source)
            source = choice.source
            if source is not None:
                stack.enter_context(closing(source))
                take_first_snapshots(reached, source, store)
            has_prices = ASSETS_FAMILY in read_heads(store)
        reached = replace(reached, source=choice.spec)
        children: list[Supervisor] = []
        variables = {}
        if source is not None:
            folder = new_folder()
            stack.callback(shutil.rmtree, folder, ignore_errors=True)
            variables = {JOBS_FOLDER: folder}
            children = [Supervisor(_Scheduler(reached, folder))]
        service = HttpService(reached, sockets, variables)
        meanwhile = filling_past(reached, source) if source else completing_rewrites(reached)
        with running([*children, service]), meanwhile:
            tell(welcome(reached, choice, has_prices=has_prices))
            service.follow(orders)


@contextmanager
def completing_rewrites(settings: Settings, every: float = LOOK_SECONDS) -> Iterator[None]:
    """Complete interrupted rewrites in a thread, for the duration of the block, as a scheduler does where there is one.
    A look each `every` seconds."""
    # What is left at the end comes with the next start.
    with (
        closing(Store(settings)) as store,
        beside("rewrites", lambda stop: keep_complete(store, stop, every), _LAST_SECONDS),
    ):
        yield


class _Scheduler(Program):
    """A scheduler. One that is restarted continues the metrics in the folder."""

    name = "scheduler"
    grace = 30.0

    def __init__(self, settings: Settings, metrics: str) -> None:
        self._environ = {**settings.to_environment(os.environ), FOUND: "true", FOLDER: metrics, WRITER: self.name}

    def launch(self) -> Child:
        return start_python(("-m", "analytics_service.cli", "jobs", "run"), self._environ)


def bring_up_to_date(store: Store, settings: Settings, *, replace_source: bool) -> None:
    """Bring the schema up to date. An embedded store of an earlier simulation is emptied first if its source is to be
    replaced; else SourceRefused before anything is changed."""
    is_embedded = settings.clickhouse_url is None
    try:
        require_continued(store)
    except SourceRefused:
        if not (replace_source and is_embedded):
            raise
        log.warning("The simulated data of an earlier version is deleted.")
        store.execute(f"DROP DATABASE `{store.database}` SYNC", in_database=False)
    migrate(store, is_alone=is_embedded)
    require_all_tables(store)


def _check_losses(store: Store) -> None:
    """Find out what the store has lost before anybody reads it, unless it is so large that the scheduler does it."""
    try:
        with within(_CHECK_SECONDS, gate=None):
            check(store)
    except AnalyticsError as error:
        log.info("The scheduler finds out what the store has lost. %s", error)
