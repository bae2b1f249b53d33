"""`jobs backfill`: take snapshots of the past."""

import logging
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import click

from analytics_service.cli.context import filled_store, load_job_settings, require_source
from analytics_service.cli.options import (
    TIMES,
    data_dir_option,
    parse_duration,
    past_end,
    require_past,
    require_range,
    source_option,
    time_option,
    value_type,
)
from analytics_service.cli.recompute import suggest_recompute
from analytics_service.cli.signals import explaining_stop
from analytics_service.clickhouse.connection import Store
from analytics_service.config.settings import without_credentials
from analytics_service.errors import AnalyticsError, SourceError
from analytics_service.history.times import Edge
from analytics_service.logs import echo
from analytics_service.market.instants import format_instant, unix_second
from analytics_service.sources.base import Source
from analytics_service.store.commits import begin
from jobs import runner
from jobs.recompute import BackfillUnit, plan, replace_snapshots
from jobs.registry import JOBS, Job

log = logging.getLogger(__name__)

_ALL = "all"
# Stored as changes from one snapshot to the next, so its snapshots cannot be replaced.
_POSITIONS = "positions"
_PRICES = "prices"


@click.command("backfill", epilog=TIMES)
@click.argument("name", type=click.Choice([_ALL, *JOBS]))
@time_option(Edge.START, "First second.", required=True)
@time_option(Edge.END, "Last second, inclusive.", required=True)
@click.option(
    "--every",
    "interval",
    type=value_type(parse_duration),
    metavar="DURATION",
    default="1h",
    show_default=True,
    help="Time between snapshots, such as 15min or 1d. Snapshots are at its multiples since 1970.",
)
@click.option("--again", is_flag=True, help="Replace stored snapshots, and take no others.")
@click.option("--dry-run", is_flag=True, help="Show how many snapshots would be taken; write nothing.")
@data_dir_option
@source_option
def jobs_backfill(
    name: str, start: datetime, end: datetime, interval: timedelta, again: bool, dry_run: bool, **overrides: Any
) -> None:
    """Take the missing snapshots of a range, for one dataset or for all.

    Stored snapshots stay as they are. --again replaces them with the source's present answers, whatever --every says,
    and for loans, all events of the range. With `all`, positions keep their amounts; their risk is recomputed. Take
    prices before other single datasets, which use the stored prices. DURATION is a number and s, min, h or d. Another
    deployment is asked for the second before each multiple, where its buckets end. Datasets without a past are skipped;
    the others are backfilled.

    It can be interrupted and run again: it continues where it stopped. Example:

    \b
        analytics-service jobs backfill all --start 2026-01-01 --end 2026-02-28 --every 1h
    """
    if again and name == _POSITIONS:
        raise click.UsageError(
            "Positions are stored as changes from one snapshot to the next, so --again cannot replace them. Remove all "
            f"from then on with `analytics-service remove positions --start {format_instant(start)}`, and run the "
            "backfill without --again."
        )
    require_range(start, end)
    now = datetime.now(UTC)
    require_past("--start", start, now)
    settings, end = load_job_settings(**overrides), past_end(end, now)
    names = [*JOBS] if name == _ALL else [name]
    with filled_store(settings, dry_run=dry_run) as store, closing(require_source(settings, store)) as source:
        instants = [] if again else runner.instants_to_fill(start, end, interval, at_ends=source.at_ends)
        replaced = {name: plan(store, name, start, end) for name in names if again}
        tasks = [_task(store, JOBS[name], instants, replaced.get(name, ())) for name in names]
        click.echo(f"Snapshots come from {without_credentials(source.spec)}.")
        for task in tasks:
            click.echo(task.cost)
        if not dry_run and [*_failures(tasks, source, store, instants)]:
            raise SystemExit(SourceError.exit_code)
        if name == _PRICES and not dry_run and (tasks[0].missing or tasks[0].units):
            suggest_recompute(store, unix_second(start), unix_second(end) - 1)


@dataclass(frozen=True, slots=True)
class _Task:
    """The work for a dataset: a number of `missing` snapshots to take, or `units` to replace."""

    job: Job
    missing: int
    units: Sequence[BackfillUnit]

    @property
    def replaced(self) -> int:
        """The number of snapshots to replace."""
        return sum(len(unit.instants) for unit in self.units)

    @property
    def cost(self) -> str:
        count, verb = (self.replaced, "replace") if self.units else (self.missing, "take")
        return f"{self.job.name}: {count:,} snapshots to {verb}."


def _task(store: Store, job: Job, instants: Sequence[datetime], units: Sequence[BackfillUnit]) -> _Task:
    seconds = {unix_second(at) for at in instants}
    completed = begin(store, job.dataset, min(seconds), max(seconds) + 1).completed if seconds else frozenset()
    return _Task(job, len(seconds - completed), units)


def _failures(
    tasks: Sequence[_Task], source: Source, store: Store, instants: Sequence[datetime]
) -> Iterator[Exception]:
    """Take the snapshots of all datasets. Prints and yields each failure of the source, and goes on with the next."""
    for task in tasks:
        try:
            _take(task, source, store, instants)
        except SourceError as error:
            echo(f"{task.job.name}: {error}", is_error=True)
            yield error
        except AnalyticsError:
            raise
        # Any exception, because the source may come from another package.
        except Exception as error:
            log.error("%s: the source failed unexpectedly", task.job.name, exc_info=error)
            yield error


def _take(task: _Task, source: Source, store: Store, instants: Sequence[datetime]) -> None:
    job = task.job
    with click.progressbar(length=len(task.units) + len(instants), label=f"Backfill of {job.name}") as bar:
        for unit in task.units:
            # A backfill of loans replaces all events first, then the snapshots of the whole range.
            command = "the same command" if job.name == "loans" else f"it from {format_instant(unit.first_instant)}"
            begun = unit is not task.units[0]
            with explaining_stop(f"Stopped. Run {command} again to continue.", begun=begun):
                replace_snapshots(job, source, store, unit)
            bar.update(1)
        with explaining_stop("The backfill was stopped. Run it again to continue where it stopped."):
            written = runner.backfill(job, source, store, instants, progress=bar.update)
    taken = f"{written} snapshots taken, {len(instants) - written} already stored"
    click.echo(f"{job.name}: {f'{task.replaced} snapshots replaced' if task.units else taken}.")
