"""`jobs backfill`: snapshots of the past, of one dataset or of all."""

import logging
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, cast

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
from analytics_service.cli.recompute import dependent_units, suggest_recompute
from analytics_service.cli.signals import explaining_stop
from analytics_service.clickhouse.connection import Store
from analytics_service.config.settings import without_credentials
from analytics_service.errors import AnalyticsError, SourceError
from analytics_service.history.times import Edge
from analytics_service.logs import echo
from analytics_service.market.instants import EPOCH, format_instant, unix_second
from analytics_service.sources.base import Source
from analytics_service.store.commits import begin
from analytics_service.store.datasets.assets import read_assets
from analytics_service.store.datasets.observations import read_last_prices
from jobs import runner
from jobs.recompute import BackfillUnit, plan, replace_snapshots
from jobs.registry import JOBS, Job

log = logging.getLogger(__name__)

_ALL = "all"
# The dataset whose snapshots are not taken anew.
_CHANGES = "positions"
# The dataset whose values others are made with.
_PRICES = "prices"


@click.command("backfill", epilog=TIMES)
@click.argument("name", type=click.Choice([_ALL, *JOBS]))
@time_option(Edge.START, "First second.", required=True)
@time_option(Edge.END, "Last second, itself included.", required=True)
@click.option(
    "--every",
    "interval",
    type=value_type(parse_duration),
    metavar="DURATION",
    default="1h",
    show_default=True,
    help="Time between snapshots, such as 15min or 1d; they are taken at its multiples since 1970.",
)
@click.option("--again", is_flag=True, help="Take those anew that are there already, and no others.")
@click.option("--dry-run", is_flag=True, help="Say how much there is to take; stop there.")
@data_dir_option
@source_option
def jobs_backfill(
    name: str, start: datetime, end: datetime, interval: timedelta, again: bool, dry_run: bool, **overrides: Any
) -> None:
    """Take the snapshots of a range that are not there yet: of one dataset, or of all.

    With --again only those that are there are replaced by what the source says now, and so are all events of the range
    if they are those of loans. Positions stay, and their risk is computed again. Without it all stay as they are.
    Of single datasets, take prices first: values of the others are made with those that are stored by then.
    DURATION is a number and s, min, h or d. From another deployment, snapshots are taken a second before the multiples,
    as buckets of its history end. A dataset of whose past the source cannot tell keeps none of the others back.

    May be interrupted and run again: it continues where it stopped. Example:

    \b
        analytics-service jobs backfill all --start 2026-01-01 --end 2026-02-28 --every 1h
    """
    if again and name == _CHANGES:
        raise click.UsageError(
            "Positions are stored as changes from one snapshot to the next, so those that are there are not taken "
            f"anew. `analytics-service remove positions --start {format_instant(start)}` takes out all from then on; "
            "then take them without --again."
        )
    require_range(start, end)
    now = datetime.now(UTC)
    require_past("--start", start, now)
    settings, end = load_job_settings(**overrides), past_end(end, now)
    names = [*JOBS] if name == _ALL else [name]
    with filled_store(settings, dry_run=dry_run) as store, closing(require_source(settings, store)) as source:
        instants = [] if again else runner.instants_to_fill(start, end, interval, at_ends=source.at_ends)
        anew = {name: plan(store, name, start, end) for name in names if again}
        tasks = [_task(store, JOBS[name], instants, anew.get(name, ())) for name in names]
        click.echo(f"Snapshots come from {without_credentials(source.spec)}.")
        for task in tasks:
            click.echo(task.cost)
            for day, count in task.days.items() if dry_run else ():
                click.echo(f"  {day}: {count:,} anew")
        if not dry_run and [*_failures(tasks, source, store, instants)]:
            raise SystemExit(SourceError.exit_code)
        if name == _PRICES and not dry_run and (tasks[0].missing or tasks[0].units):
            suggest_recompute(dependent_units(store, _new_prices(store, start, end)))


def _new_prices(store: Store, start: datetime, end: datetime) -> dict[str, tuple[int, int]]:
    """The first and the last second with a price of each asset that is priced in [start, end)."""
    first, last = unix_second(start), unix_second(end) - 1
    prices = read_last_prices(store, read_assets(store), [last])
    seconds = {asset_id: unix_second(of[last].observed_at) for asset_id, of in prices.items() if last in of}
    return {asset_id: (first, second) for asset_id, second in seconds.items() if second >= first}


@dataclass(frozen=True, slots=True)
class _Task:
    """What there is to take of a dataset: `missing` snapshots, or those of `units` anew."""

    job: Job
    missing: int
    units: Sequence[BackfillUnit]

    @property
    def days(self) -> Counter[str]:
        """The number of those anew, by day."""
        return Counter(f"{at:%Y-%m-%d}" for unit in self.units for at in unit.instants)

    @property
    def cost(self) -> str:
        """In words."""
        count, anew = (self.days.total(), " anew") if self.units else (self.missing, "")
        return f"{self.job.name}: {count:,} snapshots to take{anew}."


def _task(store: Store, job: Job, instants: Sequence[datetime], units: Sequence[BackfillUnit]) -> _Task:
    seconds = {unix_second(at) for at in instants}
    there = begin(store, job.dataset, min(seconds), max(seconds) + 1).completed if seconds else frozenset()
    return _Task(job, len(seconds - there), units)


class _Asked:
    """A source, and the instant as of which it was asked last."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self.at = EPOCH

    def __getattr__(self, name: str) -> Any:
        member = getattr(self._source, name)
        return partial(self._ask, member) if callable(member) else member

    def _ask(self, method: Callable[..., Any], *instants: datetime) -> Any:
        self.at = max(instants, default=self.at)
        return method(*instants)


def _failures(
    tasks: Sequence[_Task], source: Source, store: Store, instants: Sequence[datetime]
) -> Iterator[Exception]:
    """Take the snapshots of all datasets; what the source cannot tell of one is said, and those of the next follow."""
    for task in tasks:
        asked = _Asked(source)
        try:
            _take(task, cast(Source, asked), store, instants)
        except SourceError as error:
            echo(f"{task.job.name}: {error}", is_error=True)
            yield error
        except AnalyticsError:
            raise
        # Any exception, because the source may come from another package.
        except Exception as error:
            at = format_instant(asked.at)
            log.error("%s: asked as of %s, the source failed unexpectedly", task.job.name, at, exc_info=error)
            yield error


def _take(task: _Task, source: Source, store: Store, instants: Sequence[datetime]) -> None:
    job = task.job
    with click.progressbar(length=len(task.units) + len(instants), label=f"Backfill of {job.name}") as bar:
        for unit in task.units:
            # Of loans, what a source states at the snapshots of the whole range comes after all events.
            where = "the same" if job.name == "loans" else f"from {format_instant(unit.first_instant)}"
            begun = unit is not task.units[0]
            with explaining_stop(f"Stopped. Run {where} again to go on.", begun=begun):
                replace_snapshots(job, source, store, unit)
            bar.update(1)
        with explaining_stop("The backfill was stopped. When it is run again, it continues where it was."):
            written = runner.backfill(job, source, store, instants, progress=bar.update)
    taken = f"{written} snapshots taken, {len(instants) - written} were there already"
    click.echo(f"{job.name}: {f'{task.days.total()} snapshots taken anew' if task.units else taken}.")
