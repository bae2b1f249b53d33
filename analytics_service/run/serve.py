"""`serve`: the HTTP service alone, under gunicorn."""

import os
import threading
from contextlib import closing

from analytics_service.config import Settings
from analytics_service.embedded.clickhouse import attached, clickhouse
from analytics_service.processes.child import replace_process
from analytics_service.processes.program import PythonProgram
from analytics_service.processes.restarts import Restarts
from analytics_service.processes.supervisor import Supervisor
from analytics_service.processes.watch import running
from analytics_service.run.address import require_free
from analytics_service.store.connection import Store
from analytics_service.store.migrations import migrate

_GUNICORN = ("-m", "gunicorn", "-c", "python:analytics_service.run.gunicorn_conf", "analytics_service.wsgi:app")


def serve(settings: Settings, command: str) -> None:
    """Run gunicorn until this process is told to stop.

    Where a ClickHouse runs already, this process becomes gunicorn; else it starts an embedded one and supervises both.
    """
    require_free(settings)
    existing = attached(settings)
    if existing is not None:
        replace_process(_GUNICORN, {**os.environ, **existing.to_environment()})
    failed = threading.Event()
    with clickhouse(settings, command, on_failure=failed.set) as reached:
        with closing(Store(reached)) as store:
            migrate(store)
        with running([http_service(reached)], failed.set):
            failed.wait()


def http_service(settings: Settings, **variables: str) -> Supervisor:
    """A supervisor of gunicorn; `variables` are added to its environment."""
    environ = {**os.environ, **settings.to_environment(), **variables}
    # Five seconds more than gunicorn gives its workers; see gunicorn_conf.
    grace = settings.query_timeout + 15
    return Supervisor(PythonProgram("HTTP service", _GUNICORN, environ, grace), Restarts())
