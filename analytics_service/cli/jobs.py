"""`jobs`: snapshots on schedule, once, or for a range of the past."""

import threading
from contextlib import closing
from datetime import UTC, datetime
from typing import Any

import click

from analytics_service.cli.backfill import jobs_backfill
from analytics_service.cli.context import load_job_settings, open_store, require_source
from analytics_service.cli.options import (
    TIMES,
    data_dir_option,
    replace_source_option,
    require_past,
    source_option,
    time_option,
)
from analytics_service.cli.recompute import jobs_recompute
from analytics_service.cli.signals import set_on_signals, stopping_normally
from analytics_service.history.times import Edge
from analytics_service.http.instruments import Instruments
from analytics_service.market.instants import format_instant
from analytics_service.supervisor import end_with_parent
from jobs import runner, scheduler
from jobs.registry import JOBS


@click.group()
def jobs() -> None:
    """Take snapshots: on schedule, once, or for a range of the past.

    Example:

    \b
        analytics-service jobs once prices
    """


@jobs.command("run")
@data_dir_option
@source_option
def jobs_run(**overrides: Any) -> None:
    """Run all jobs on schedule, until SIGTERM.

    Two schedulers may run side by side: the first to finish stores the snapshot, the other finds it complete. Example:

    \b
        analytics-service jobs run --source simulated:7
    """
    stop = threading.Event()
    end_with_parent()
    settings = load_job_settings(**overrides)
    with (
        stopping_normally(),
        open_store(settings) as store,
        closing(require_source(settings, store)) as source,
    ):
        # From now on, snapshots in progress finish their attempt.
        set_on_signals(stop)
        scheduler.run(settings, source, store, stop, measure=Instruments().job)


@jobs.command("once", epilog=TIMES)
@click.argument("name", type=click.Choice(sorted(JOBS)))
@time_option(Edge.AT, "Instant of the snapshot.  [default: now]")
@data_dir_option
@source_option
@replace_source_option
def jobs_once(name: str, at: datetime | None, replace_source: bool, **overrides: Any) -> None:
    """Take one snapshot, unless it is already complete.

    Example:

    \b
        analytics-service jobs once prices --at 2026-03-01T00:00Z
    """
    settings = load_job_settings(**overrides)
    now = datetime.now(UTC).replace(microsecond=0)
    at = at or now
    require_past("--at", at, now)
    with (
        open_store(settings) as store,
        closing(require_source(settings, store, replace_source=replace_source)) as source,
    ):
        taken = runner.take_snapshot(JOBS[name], source, store, at)
    click.echo(f"{name} at {format_instant(at)}: {'done' if taken else 'already done'}.")


jobs.add_command(jobs_backfill)
jobs.add_command(jobs_recompute)
