"""gunicorn's configuration: which sockets it listens on, and what its arbiter imports before it forks."""

import os
import subprocess
import sys

import pytest

from analytics_service.server.address import SOCKETS

# What gunicorn does before it forks workers, and then what a worker does. Prints what gunicorn listens on, the threads
# that were there before, of Python and of Polars' pool, and whether the worker imports the code itself.
FORK = """
import re, sys, threading
from pathlib import Path
from types import SimpleNamespace
from analytics_service.server.gunicorn_conf import bind, on_starting
server = SimpleNamespace()
on_starting(server)
names = [path.read_text("utf-8").strip() for path in Path("/proc/self/task").glob("*/comm")]
print(*bind, server.systemd)
print(threading.active_count(), sum(bool(re.fullmatch(r"polars-\\d+", name)) for name in names))
before = set(sys.modules)
import analytics_service.wsgi
loaded = {name for name in set(sys.modules) - before if name.startswith(("analytics_service.", "polars."))}
print(loaded != {"analytics_service.wsgi"})
"""


@pytest.mark.parametrize(
    ("inherited", "binds"), [("5 7", ["fd://5", "fd://7", "True"]), ("", ["127.0.0.1:8000", "False"])]
)
def test_gunicorn_listens_on_the_sockets_that_it_is_given_and_then_imports_code_once(
    inherited: str, binds: list[str]
) -> None:
    """Else each worker imports it, so that HUP loads new code. No query of Polars and no client of ClickHouse comes
    before the fork: both hang in workers."""
    settings = {"ANALYTICS_CLICKHOUSE_URL": "http://127.0.0.1:1", "ANALYTICS_METRICS_BIND": "none"}
    environ = {**os.environ, **settings, SOCKETS: inherited}
    done = subprocess.run([sys.executable, "-c", FORK], env=environ, capture_output=True, text=True, check=True)
    assert done.stdout.split() == [*binds, "1", "0", str(not inherited)]
