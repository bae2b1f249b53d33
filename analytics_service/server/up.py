"""`up`: ClickHouse, the scheduler and gunicorn as one service on one machine."""

import logging
import os
import shutil
from contextlib import ExitStack, closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial

from analytics_service.config.settings import Settings
from analytics_service.embedded.clickhouse import FOUND, clickhouse
from analytics_service.errors import (
    AccessRefused,
    AnalyticsError,
    DiskFull,
    SchemaError,
    SourceError,
    SourceRefused,
    StoreUnavailable,
)
from analytics_service.http.api_keys import require_keys
from analytics_service.http.instruments import FOLDER, JOBS_FOLDER, WRITER
from analytics_service.logs import tell
from analytics_service.market.instants import floored, instant
from analytics_service.market.share import within
from analytics_service.server.address import require_free
from analytics_service.server.http_service import HttpService, Orders
from analytics_service.server.metrics_folder import new_folder
from analytics_service.server.past import LATER, FillingPast, fill, reason_of
from analytics_service.server.welcome import welcome
from analytics_service.sources.base import Source
from analytics_service.sources.registry import choose_source
from analytics_service.store.assets import ASSETS_FAMILY
from analytics_service.store.connection import Store
from analytics_service.store.ledger import read_heads, read_ledger, without_future
from analytics_service.store.loss_check import check
from analytics_service.store.migrations import migrate
from analytics_service.store.schema import require_all_tables
from analytics_service.supervisor import Child, Program, Restarts, Supervised, Supervisor, running, start_python
from jobs.registry import JOBS, Job
from jobs.runner import run_once

log = logging.getLogger(__name__)

_SOURCE_OF_EMPTY = "simulated"
# How long a start waits for the check of what the store has lost, seconds.
_CHECK_SECONDS = 5.0


def up(settings: Settings, command: str, orders: Orders, *, replace_source: bool = False) -> None:
    """Run the complete service until this process is told to stop. AnalyticsError if a part cannot be kept running."""
    require_free(settings)
    require_keys(settings)
    fail = partial(orders.put, None)
    with ExitStack() as stack:
        reached = stack.enter_context(clickhouse(settings, command, attach=False, on_failure=fail))
        with closing(Store(reached)) as store:
            migrate(store, is_alone=settings.clickhouse_url is None)
            require_all_tables(store)
            _check_losses(store)
            choice = choose_source(store, settings, empty=_SOURCE_OF_EMPTY, replace_source=replace_source)
            source = choice.source
            if source is not None:
                stack.enter_context(closing(source))
                take_first_snapshots(reached, source, store)
            prices = without_future(store, read_ledger(store)).heads.get(ASSETS_FAMILY)
        reached = replace(reached, source=choice.spec)
        services: list[Supervised] = []
        variables = {}
        if source is not None:
            folder = str(new_folder())
            stack.callback(shutil.rmtree, folder, ignore_errors=True)
            variables = {JOBS_FOLDER: folder}
            services = [Supervisor(_Scheduler(reached, folder), Restarts())]
        service = HttpService(reached, variables)
        # What is left of the past is filled in until everything else has stopped.
        past = stack.enter_context(FillingPast(reached, source))
        with running([service, *services], fail):
            tell(welcome(reached, choice, instant(prices.last_observed_at) if prices else None))
            past.begin()
            service.follow(orders)


class _Scheduler(Program):
    """A scheduler. One that is restarted continues the metrics in the folder."""

    name = "scheduler"
    grace = 30.0
    trial_seconds = 60.0

    def __init__(self, settings: Settings, metrics: str) -> None:
        self._environ = {**settings.to_environment(os.environ), FOUND: "true", FOLDER: metrics, WRITER: self.name}

    def launch(self) -> Child:
        return start_python(("-m", "analytics_service.cli", "jobs", "run"), self._environ)


def _check_losses(store: Store) -> None:
    """Find out what the store has lost before anybody reads it, unless it is so large that the scheduler does it."""
    try:
        with within(_CHECK_SECONDS, gate=None):
            check(store)
    except AnalyticsError as error:
        log.info("The scheduler finds out what the store has lost. %s", error)


def take_first_snapshots(settings: Settings, source: Source, store: Store) -> None:
    """Take a first snapshot of every family, and fill in history if it is cheap for the source, but that of positions.

    If the source cannot provide a family now, the scheduler tries again, and the other families are served. SourceError
    if no family can be served. A source that may hang keeps nobody from data that is there, unless its history is said
    to be cheap: the scheduler begins with snapshots of now, too.
    """
    if source.may_hang and source.history is None and read_heads(store):
        return
    failed: list[tuple[str, Exception]] = []
    # All history comes first. The scheduler then continues soon after the current snapshots, and misses no instant.
    for failure, act in (
        ("its history could not be filled", partial(_fill, source, store)),
        ("there is no snapshot of now; the scheduler goes on trying", partial(_take_now, settings, source, store)),
    ):
        now = datetime.now(UTC)
        for job in JOBS.values():
            try:
                act(job, now)
            except DiskFull as error:
                if not read_heads(store):
                    raise
                log.error("There are no first snapshots; the scheduler goes on trying. %s", error)
                return
            except (StoreUnavailable, AccessRefused, SchemaError, SourceRefused):
                raise
            except Exception as error:
                log.debug("%s: %s", job.name, failure, exc_info=error)
                failed.append((f"{job.name}: {failure}.", error))
    served = read_heads(store) if failed else {}
    for failure, cause in failed:
        if not served:
            raise SourceError(f"{failure} {reason_of(cause)}") from cause
        log.error("%s %s", failure, reason_of(cause))


def _take_now(settings: Settings, source: Source, store: Store, job: Job, now: datetime) -> None:
    run_once(job, source, store, floored(now, timedelta(seconds=job.interval(settings))))


def _fill(source: Source, store: Store, job: Job, now: datetime) -> None:
    if job.name != LATER:
        fill(source, store, job, now)
