"""What a quiet `up` costs: its first start, the statements it sends, its processor time, and its tables."""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from analytics_service.config.settings import Settings
from tests.benchmarks.bench import Bench
from tests.benchmarks.gunicorn import wait_until_ready
from tests.benchmarks.harness import Figure
from tests.clickhouse import client
from tests.processes import free_port

# After the start, the past is filled in and workers load what they serve; then ticks of two intervals of five minutes
# are watched.
_CALM_SECONDS, _WATCHED_MINUTES = 30, 5
_STATEMENTS = """
SELECT count(), countIf(query_kind IN ('Create', 'Alter', 'Drop', 'Rename', 'Optimize'))
FROM system.query_log
WHERE type = 'QueryStart' AND is_initial_query
  AND toUnixTimestamp64Micro(event_time_microseconds) BETWEEN {since:UInt64} AND {until:UInt64}
"""
# Seconds since the last snapshot of the past; 0 before the first.
_FILLED = """
SELECT if(count() = 0, 0, now() - max(fromUnixTimestamp64Nano(version)))
FROM snapshot
WHERE kind = 'backfill'
"""
_TABLES = "SELECT count() FROM system.tables WHERE database = currentDatabase() AND engine LIKE '%MergeTree'"


def run(bench: Bench) -> Iterator[Figure]:
    """A service of the simulated source in a new folder, with two workers and the default intervals."""
    with tempfile.TemporaryDirectory() as folder:
        settings = Settings(data_dir=Path(folder))
        begun = time.monotonic()
        with _up(settings) as pid:
            yield Figure("first start", time.monotonic() - begun, "s", at_most=10)
            _wait_until_filled(settings)
            filled = time.monotonic() - begun - _CALM_SECONDS
            yield Figure("first start, until 90 days of history are there", filled, "s", at_most=40)
            since, used = time.time_ns() // 1000, _processor_seconds(pid)
            time.sleep(_WATCHED_MINUTES * 60)
            until, used = time.time_ns() // 1000, _processor_seconds(pid) - used
            with client(settings) as own:
                own.command("SYSTEM FLUSH LOGS")
                all_, ddl = own.query(_STATEMENTS, parameters={"since": since, "until": until}).first_row
                tables = own.query(_TABLES).first_row[0]
    yield Figure("statements a minute", all_ / _WATCHED_MINUTES, "", at_most=100)
    yield Figure("CREATE, ALTER, DROP and the like a minute", ddl / _WATCHED_MINUTES, "", at_most=0)
    yield Figure("processor time of all processes", 100 * used / (_WATCHED_MINUTES * 60), "% of one", at_most=4)
    yield Figure("tables", tables, "", at_most=26)


@contextmanager
def _up(settings: Settings) -> Iterator[int]:
    """A running `up`, once it is ready: its process id."""
    own = replace(settings, bind=f"127.0.0.1:{free_port()}", metrics_bind="none", log_level="warning")
    process = subprocess.Popen(
        [sys.executable, "-m", "analytics_service.cli", "up"],
        env=own.to_environment(os.environ),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
    )
    try:
        wait_until_ready(f"http://{own.bind}/readyz", process)
        yield process.pid
    finally:
        process.terminate()
        process.wait()


def _wait_until_filled(settings: Settings) -> None:
    """Until no snapshot of the past has come for a while."""
    with client(settings) as own:
        while own.query(_FILLED).first_row[0] < _CALM_SECONDS:
            time.sleep(1)


def _processor_seconds(pid: int) -> float:
    """What a process and all below it have used so far, with those that have ended (proc(5))."""
    own = Path(f"/proc/{pid}/stat").read_text("utf-8").rpartition(")")[2].split()
    below = Path(f"/proc/{pid}/task/{pid}/children").read_text("ascii").split()
    used = sum(int(ticks) for ticks in own[11:15]) / os.sysconf("SC_CLK_TCK")
    return used + sum(_processor_seconds(int(child)) for child in below)
