"""What the supervisor and its gunicorn tell each other."""

import os
import subprocess
import sys

import pytest

from analytics_service.server.handover import all_ready, gunicorn_binds, obstacle, report_ready, variables

# What gunicorn does before it forks workers, and then what a worker does. Prints the threads that were there before, of
# Python and of Polars' pool, and whether the worker imports the code itself.
FORK = """
import re, sys, threading
from pathlib import Path
from types import SimpleNamespace
from analytics_service.server.gunicorn_conf import on_starting
on_starting(SimpleNamespace(START_CTX={}))
names = [path.read_text("utf-8").strip() for path in Path("/proc/self/task").glob("*/comm")]
print(threading.active_count(), sum(bool(re.fullmatch(r"polars-\\d+", name)) for name in names))
before = set(sys.modules)
import analytics_service.wsgi
loaded = {name for name in set(sys.modules) - before if name.startswith(("analytics_service.", "polars."))}
print(loaded != {"analytics_service.wsgi"})
"""


@pytest.mark.parametrize(
    ("reported", "ready"),
    [
        (b"", False),
        (b"2\n", False),
        # The second report has not been read as a whole yet.
        (b"2\n2", False),
        (b"2\n2\n", True),
        (b"1\n", True),
        (b"2\n2\n2\n", True),
    ],
)
def test_a_service_is_ready_when_all_of_its_workers_are(reported: bytes, ready: bool) -> None:
    assert all_ready(reported) is ready
    assert obstacle(reported) == ""


def test_a_worker_reports_how_many_there_are_and_what_it_lacks_and_nobody_need_listen(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    report_ready(2)
    ours, theirs = os.pipe()
    for name, value in variables([5], theirs).items():
        monkeypatch.setenv(name, value)
    report_ready(2)
    assert os.read(ours, 100) == b"2\n"
    report_ready(2)
    report_ready(2, "The database lacks\n0022_next.sql; " + 1_000 * "é")
    reported = os.read(ours, 4_096)
    assert all_ready(reported)
    assert obstacle(reported).startswith("The database lacks 0022_next.sql; éééé")
    # Pipes take so much at once, whoever else writes.
    assert len(reported) < len(b"2 \n") + 1_024
    os.close(ours)
    report_ready(2)
    os.close(theirs)


def test_gunicorn_listens_on_the_sockets_that_it_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that another gunicorn started with SIGUSR2 has its sockets from that one."""
    assert gunicorn_binds(["127.0.0.1:8000"]) == ["127.0.0.1:8000"]
    for name, value in variables([5, 7], 9).items():
        monkeypatch.setenv(name, value)
    assert gunicorn_binds(["127.0.0.1:8000", "127.0.0.1:8001"]) == ["fd://5", "fd://7"]
    monkeypatch.setenv("GUNICORN_FD", "3")
    assert gunicorn_binds(["127.0.0.1:8000"]) == ["127.0.0.1:8000"]


@pytest.mark.parametrize("supervised", [True, False])
def test_workers_import_the_code_themselves_unless_all_of_gunicorn_is_replaced(supervised: bool) -> None:
    """No query of Polars and no client of ClickHouse comes before the fork: both hang in workers."""
    settings = {"ANALYTICS_CLICKHOUSE_URL": "http://127.0.0.1:1", "ANALYTICS_METRICS_BIND": "none"}
    environ = {**os.environ, **settings, **(variables([], 0) if supervised else {})}
    done = subprocess.run([sys.executable, "-c", FORK], env=environ, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["1", "0", str(not supervised)]
