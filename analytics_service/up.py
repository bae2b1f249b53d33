"""`up`: ClickHouse, the scheduler and gunicorn as one service on one machine."""

import http.client
import os
import socket
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from datetime import UTC, datetime, timedelta

import click

from analytics_service.config import Settings
from analytics_service.errors import SettingError
from analytics_service.market.instants import floored, multiples
from analytics_service.processes import Process, ProcessError, tend
from analytics_service.sources.base import Sample, Source
from analytics_service.sources.registry import open_source
from analytics_service.store.connection import Store
from analytics_service.store.embedded import clickhouse
from analytics_service.store.migrations import migrate
from jobs.registry import JOBS
from jobs.runner import backfill, run_once

GUNICORN = ("-m", "gunicorn", "-c", "python:analytics_service.gunicorn_conf", "analytics_service.wsgi:app")
_SCHEDULER = ("-m", "analytics_service.cli", "jobs", "run")
_HISTORY_STEP = timedelta(hours=1)
_SAMPLE_PATHS = {
    Sample.RICH_ACCOUNT: "users/{}/user?with_text=true&with_value=true",
    Sample.EMPTY_ACCOUNT: "users/{}/user",
    Sample.SWAP_CONTRACT: "swap/routes/all?contract_address={}",
}
_SCHEDULER_GRACE = 30.0
_ANSWER_SECONDS = 60.0


def up(settings: Settings, command: str) -> None:
    """Run the whole service until this process is told to stop. AnalyticsError when a part cannot be kept running."""
    require_free(settings.bind)
    failed = threading.Event()
    with ExitStack() as stack:
        source = open_source(settings.source)
        if source is not None:
            stack.enter_context(closing(source))
        reached = stack.enter_context(clickhouse(settings, command, attach=False, on_failure=failed.set))
        with closing(Store(reached)) as store:
            migrate(store)
            if source is not None:
                _fill(reached, source, store)
        with _running(processes(reached, scheduler=source is not None)) as running:
            if _wait_answering(reached.bind, running, failed):
                click.echo(_welcome(reached, source, embedded=settings.clickhouse_url is None))
            tend(running, failed)


def serve(settings: Settings, command: str) -> None:
    """Run gunicorn until this process is told to stop, with a ClickHouse of its own."""
    require_free(settings.bind)
    failed = threading.Event()
    with clickhouse(settings, command, on_failure=failed.set) as reached:
        with closing(Store(reached)) as store:
            migrate(store)
        with _running(processes(reached, scheduler=False)) as running:
            tend(running, failed)


def processes(settings: Settings, *, scheduler: bool) -> list[Process]:
    """The service's processes, in the order in which they are stopped."""
    environ = {**os.environ, **settings.to_environment()}
    # gunicorn gives its workers their graceful timeout; see gunicorn_conf.
    gunicorn = Process("HTTP service", GUNICORN, environ, grace=settings.query_timeout + 15)
    if not scheduler:
        return [gunicorn]
    return [gunicorn, Process("scheduler", _SCHEDULER, environ, grace=_SCHEDULER_GRACE)]


def require_free(bind: str) -> None:
    """SettingError when nothing can listen on `host:port`."""
    host, port = _split(bind)
    try:
        socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET).close()
    except OSError as error:
        raise SettingError(
            f"Nothing can listen on {bind} ({error.strerror}). "
            f"Stop what does, or name another address, such as --bind 127.0.0.1:{port % 65535 + 1}."
        ) from error


@contextmanager
def _running(members: Sequence[Process]) -> Iterator[Sequence[Process]]:
    try:
        for process in members:
            process.start()
        yield members
    finally:
        for process in members:
            process.stop()


def _fill(settings: Settings, source: Source, store: Store) -> None:
    """A first snapshot of everything; where the past costs nothing, history too."""
    now = datetime.now(UTC)
    for job in JOBS.values():
        if job.history and source.history:
            instants = multiples(now - source.history, now, _HISTORY_STEP)
            with click.progressbar(length=len(instants), label=f"History of {job.name}") as bar:
                backfill(job, source, store, instants, progress=bar.update)
        run_once(job, source, store, floored(now, timedelta(seconds=job.every(settings))))


def _wait_answering(bind: str, running: Sequence[Process], failed: threading.Event) -> bool:
    """Whether the service answers; False when ClickHouse failed before it did."""
    deadline = time.monotonic() + _ANSWER_SECONDS
    while not failed.wait(0.1):
        for process in running:
            process.tend()
        if _answers(bind):
            return True
        if time.monotonic() > deadline:
            raise ProcessError(f"The HTTP service did not answer on {bind} in {_ANSWER_SECONDS:.0f} s.")
    return False


def _answers(bind: str) -> bool:
    connection = http.client.HTTPConnection(*_split(_reachable(bind)), timeout=5)
    try:
        connection.request("GET", "/healthz")
        return connection.getresponse().status == http.client.OK
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def _welcome(settings: Settings, source: Source | None, *, embedded: bool) -> str:
    base = f"http://{_reachable(settings.bind)}"
    now = datetime.now(UTC).replace(minute=0, second=0, microsecond=0)
    week = f"start={int((now - timedelta(days=7)).timestamp())}&end={int(now.timestamp())}"
    lines = [
        "",
        f"The service is up at {base}. Try:",
        "",
        f"  {base}/api/v1/assets",
        f"  {base}/api/v1/assets/prices?with_text=true",
        f"  {base}/api/v1/assets/price-history?{week}&period=d",
        f"  {base}/docs",
        "",
        *_samples(source, base),
        f"SQL   {settings.clickhouse_url}/play as user {settings.clickhouse_user}",
    ]
    if embedded:
        lines += [f"      (its password is in {settings.data_dir.absolute() / 'password'})"]
        lines += [f"Data  {settings.data_dir.absolute()}"]
    return "\n".join([*lines, "Stop  Ctrl-C", ""])


def _samples(source: Source | None, base: str) -> list[str]:
    """Sample addresses of the source, if it has any."""
    if source is None or not source.samples:
        return []
    paths = {one: _SAMPLE_PATHS[one].format(address) for one, address in source.samples.items()}
    lines = [f"  {one:17} {base}/api/v1/{path}" for one, path in paths.items()]
    return ["Sample addresses of the simulated protocol:", "", *lines, ""]


def _reachable(bind: str) -> str:
    """Where this machine reaches a service that listens there."""
    host, port = _split(bind)
    return {"0.0.0.0": f"127.0.0.1:{port}", "::": f"[::1]:{port}"}.get(host, bind)  # noqa: S104 - a name only


def _split(bind: str) -> tuple[str, int]:
    host, _, port = bind.rpartition(":")
    return host.strip("[]"), int(port)
