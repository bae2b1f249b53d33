"""gunicorn's configuration: `gunicorn -c python:analytics_service.server.gunicorn_conf analytics_service.wsgi:app`.

It follows the ANALYTICS_* settings; GUNICORN_CMD_ARGS and gunicorn's own options take precedence.
"""

import gc
import os
import sys
import time
from importlib import import_module
from typing import Any

from gunicorn import glogging

from analytics_service import logs
from analytics_service.config.settings import WORKER_THREADS, Settings
from analytics_service.embedded.clickhouse import FOUND, require_attachable
from analytics_service.errors import AnalyticsError
from analytics_service.http.api_keys import keys_at_start
from analytics_service.server.address import SOCKETS
from analytics_service.server.metrics_folder import (  # noqa: F401 - gunicorn finds the hooks here
    MEMORY,
    begin_metrics,
    child_exit,
    on_exit,
    post_fork,
    pre_fork,
)
from analytics_service.server.warm import warm_for_a_while
from analytics_service.supervisor import end_with_parent

logs.begin_logging(os.environ)
try:
    _settings = require_attachable(Settings.from_environment(os.environ))
    if _settings.api_keys_file is not None:
        keys_at_start(_settings.api_keys_file)
except AnalyticsError as error:
    logs.echo(str(error), is_error=True)
    sys.exit(error.exit_code)
os.environ[FOUND] = "true"
_inherited = os.environ.get(SOCKETS, "").split()

proc_name = "analytics-service"
bind = [f"fd://{number}" for number in _inherited] or list(_settings.binds)
workers = _settings.workers
# The worker needs epoll and eventfd, which only Linux has.
worker_class = "analytics_service.server.worker.Worker" if sys.platform == "linux" else "gthread"
threads = WORKER_THREADS
# All gunicorns of one user would share a single control socket.
control_socket_disable = True
# Polars and HTTP clients hang in the workers if they are used before the fork.
preload_app = False
timeout = _settings.worker_timeout
graceful_timeout = _settings.graceful_timeout
# Seconds; nginx closes idle connections before (`example nginx`).
keepalive = 15
# Replacing workers bounds leaks. It is rare, because a new worker has an empty cache, and at different times.
max_requests = 1_000_000
max_requests_jitter = 100_000
# On a slow disk, heartbeats would be late and healthy workers killed.
worker_tmp_dir = MEMORY
# By default a client on this machine could override the path of the request line.
forwarder_headers = ""
# No answer depends on the scheme. By default, requests with contradictory headers about it are refused.
secure_scheme_headers: dict[str, str] = {}
# Enough for long lists of percent-encoded asset ids.
limit_request_line = 8190
# Only the owner and the group may use a Unix socket.
umask = 0o117

errorlog = "-"
loglevel = _settings.log_level
logconfig_dict = logs.logging_configuration(_settings.log_level, _settings.log_format)


class logger_class(glogging.Logger):  # type: ignore[misc]  # noqa: N801 - a setting of gunicorn
    """Turns off the access log, for which gunicorn would collect 50 details of each request. The application logs
    requests."""

    access_log_enabled = False


def on_starting(server: Any) -> None:
    """Called in the arbiter before it forks. Workers end with the arbiter, and the arbiter with its parent."""
    end_with_parent()
    # gunicorn must not remove the paths of inherited Unix sockets, as it does not with systemd's.
    server.systemd = bool(_inherited)
    if _settings.metrics_endpoint is not None:
        begin_metrics(server)
    # Workers share the memory of imported code. Each creates its own application, which has threads and connections.
    # Without `up` or `serve`, workers import the code themselves, so that a HUP takes newly installed code.
    if _inherited:
        import_module("analytics_service.app")
        gc.freeze()


def post_worker_init(worker: Any) -> None:
    """Called in a worker before it takes requests. Only our own application is warmed."""
    if worker.alive and hasattr(worker.wsgi, "heads"):
        warm_for_a_while(worker.wsgi, int(time.time()))
