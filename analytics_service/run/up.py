"""`up`: ClickHouse, the scheduler and gunicorn as one service on one machine."""

import http.client
import os
import threading
import time
from contextlib import ExitStack, closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import click

from analytics_service.config import Settings
from analytics_service.embedded.clickhouse import clickhouse
from analytics_service.errors import ProcessError
from analytics_service.history.catalogue import HISTORIES
from analytics_service.http.instruments import FOLDER, JOBS_FOLDER, WRITER
from analytics_service.market.instants import floored, multiples
from analytics_service.processes.program import PythonProgram
from analytics_service.processes.restarts import Restarts
from analytics_service.processes.supervisor import Supervisor
from analytics_service.processes.watch import running
from analytics_service.run.address import local_address, require_free
from analytics_service.run.metrics_folder import temporary_folder
from analytics_service.run.serve import http_service
from analytics_service.run.welcome import welcome
from analytics_service.sources.base import Source
from analytics_service.sources.choice import choose_source
from analytics_service.store.connection import Store
from analytics_service.store.migrations import migrate
from jobs.registry import JOBS, Job
from jobs.runner import backfill, run_once

_SCHEDULER = ("-m", "analytics_service.cli", "jobs", "run")
_SOURCE_OF_EMPTY = "simulated"
_HISTORY_STEP = timedelta(hours=1)
_SCHEDULER_GRACE = 30.0
_FIRST_ANSWER_SECONDS = 60.0


def up(settings: Settings, command: str) -> None:
    """Run the whole service until this process is told to stop. AnalyticsError when a part cannot be kept running."""
    require_free(settings)
    failed = threading.Event()
    with ExitStack() as stack:
        reached = stack.enter_context(clickhouse(settings, command, attach=False, on_failure=failed.set))
        with closing(Store(reached)) as store:
            migrate(store)
            choice = choose_source(store, settings.source, empty=_SOURCE_OF_EMPTY)
            source = choice.source
            if source is not None:
                stack.enter_context(closing(source))
                _fill(reached, source, store)
        reached = replace(reached, source=choice.spec)
        services = [http_service(reached)]
        if source is not None:
            folder = str(stack.enter_context(temporary_folder()))
            services = [http_service(reached, **{JOBS_FOLDER: folder}), _scheduler(reached, folder)]
        with running(services, failed.set):
            if _wait_for_first_answer(reached.bind, failed):
                click.echo(welcome(reached, choice, embedded=settings.clickhouse_url is None))
            failed.wait()


def _scheduler(settings: Settings, metrics: str) -> Supervisor:
    """A supervisor of the scheduler. One that is started again goes on with the metrics in the folder."""
    environ = {**os.environ, **settings.to_environment(), FOLDER: metrics, WRITER: "scheduler"}
    return Supervisor(PythonProgram("scheduler", _SCHEDULER, environ, _SCHEDULER_GRACE), Restarts())


def _fill(settings: Settings, source: Source, store: Store) -> None:
    """Take a first snapshot of everything, and what pages of history show where the source has it at no cost."""
    now = datetime.now(UTC)
    for job in JOBS.values():
        if instants := past_instants(source, job, now):
            with click.progressbar(length=len(instants), label=f"History of {job.name}") as bar:
                backfill(job, source, store, instants, progress=bar.update)
        run_once(job, source, store, floored(now, timedelta(seconds=job.every(settings))))


def past_instants(source: Source, job: Job, now: datetime) -> list[datetime]:
    """The instants, oldest first, whose snapshots `up` takes: each hour of the source's history.

    For prices also each midnight before, since the source's beginning.
    """
    if source.history is None or job.family not in {history.family for history in HISTORIES}:
        return []
    start = now - source.history
    hours = multiples(start, now, _HISTORY_STEP)
    if job.name != "prices" or source.since is None:
        return hours
    return sorted({*multiples(source.since, start, timedelta(days=1)), *hours})


def _wait_for_first_answer(bind: str, failed: threading.Event) -> bool:
    """Whether the service answers; False when a part of it failed before that. ProcessError after a minute."""
    deadline = time.monotonic() + _FIRST_ANSWER_SECONDS
    while not failed.wait(0.1):
        if _answers(bind):
            return True
        if time.monotonic() > deadline:
            raise ProcessError(f"The HTTP service did not answer on {bind} in {_FIRST_ANSWER_SECONDS:.0f} s.")
    return False


def _answers(bind: str) -> bool:
    connection = http.client.HTTPConnection(*local_address(bind), timeout=5)
    try:
        connection.request("GET", "/healthz")
        return connection.getresponse().status == http.client.OK
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()
