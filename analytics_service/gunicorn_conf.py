"""gunicorn's configuration: `gunicorn -c python:analytics_service.gunicorn_conf analytics_service.wsgi:app`.

It follows the ANALYTICS_* settings; GUNICORN_CMD_ARGS and gunicorn's own options go before it.
"""

import ctypes
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

from analytics_service import logs, supervised
from analytics_service.config import Settings
from analytics_service.errors import SettingError

try:
    _settings = Settings.from_environment(os.environ)
except SettingError as error:
    sys.exit(f"Error: {error}")
_shared_memory = Path("/dev/shm")  # noqa: S108 - a heartbeat file, made by gunicorn with a random name
# From malloc.h.
_M_MMAP_THRESHOLD = -3
_STOPS = (signal.SIGTERM, signal.SIGINT, signal.SIGQUIT)

proc_name = "analytics-service"
bind = _settings.bind
workers = _settings.workers
worker_class = "analytics_service.gunicorn_worker.Worker"
threads = _settings.threads
# Its socket would be shared by all gunicorns of a user.
control_socket_disable = True
# Queries and clients made before the fork would hang in the workers.
preload_app = False

# A query ends by its own limit first, then the client, and the worker last.
timeout = _settings.query_timeout + 15
graceful_timeout = _settings.query_timeout + 10
keepalive = 15
# Workers are replaced now and then, so that no leak lasts; not all at once. A new one begins with nothing rendered,
# and thousands of requests a second are not uncommon.
max_requests = 1_000_000
max_requests_jitter = 100_000
# A heartbeat on a slow disk would get healthy workers killed.
worker_tmp_dir = str(_shared_memory) if _shared_memory.is_dir() else None
# Long lists of asset ids, percent-encoded.
limit_request_line = 8190

accesslog = None
errorlog = "-"
loglevel = _settings.log_level
logconfig_dict = logs.configuration(_settings.log_level)


def on_starting(server: Any) -> None:
    """Called in the arbiter, before it forks: workers end with the arbiter, and the arbiter with `up`."""
    supervised.end_with_supervisor()
    # Until it has handlers of its own, a worker has the arbiter's: they put a signal into a queue that nobody reads
    # there, and the arbiter would wait for that worker as long as for the slowest request.
    os.register_at_fork(before=_hold_stops, after_in_parent=_release_stops, after_in_child=_end_on_stops)


def post_worker_init(worker: Any) -> None:
    """Called in a worker, before it takes requests. Another application than ours is left alone."""
    _give_back_large_blocks()
    # One that was told to stop while it was loading will take none.
    if worker.alive and hasattr(worker.wsgi, "warm"):
        worker.wsgi.warm(int(time.time()))


def _give_back_large_blocks() -> None:
    """Have glibc return memory of a MiB or more to the system as soon as it is freed.

    By itself it goes on to keep, for each thread, as much as the largest page that was ever freed; other libraries
    have no such option.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_M_MMAP_THRESHOLD, 2**20)


def _hold_stops() -> None:
    signal.pthread_sigmask(signal.SIG_BLOCK, _STOPS)


def _release_stops() -> None:
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _STOPS)


def _end_on_stops() -> None:
    for number in _STOPS:
        signal.signal(number, signal.SIG_DFL)
    _release_stops()
