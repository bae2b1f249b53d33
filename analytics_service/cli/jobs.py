"""`jobs`: snapshots on schedule, once, or for a range of the past."""

import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing
from datetime import UTC, datetime, timedelta
from typing import Any

import click

from analytics_service.cli.context import filled_store, load_job_settings, open_store, require_source
from analytics_service.cli.options import (
    TIMES,
    data_dir_option,
    parse_duration,
    replace_source_option,
    require_range,
    source_option,
    time_option,
    value_type,
)
from analytics_service.cli.recompute import jobs_recompute
from analytics_service.cli.signals import explaining_stop, set_on_signals, stopping_normally
from analytics_service.config.settings import without_credentials
from analytics_service.embedded.clickhouse import ending_with_holder
from analytics_service.history.times import Edge
from analytics_service.http.instruments import Instruments
from analytics_service.market.instants import shown
from analytics_service.processes.child import end_with_parent
from jobs import runner, scheduler
from jobs.again import Portion, backfill_risk, plan, retake
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

    Two schedulers may run side by side. The one that came second gives the first a head start of half an interval, at
    most 10 seconds, and takes only what is not there by then. Example:

    \b
        analytics-service jobs run --source simulated:7
    """
    stop = threading.Event()
    end_with_parent()
    settings = load_job_settings(**overrides)
    with (
        stopping_normally(),
        open_store(settings, on_failure=stop.set) as store,
        ending_with_holder(settings, stop.set),
        closing(require_source(settings, store)) as source,
    ):
        # From now on, runs in progress finish their attempt.
        set_on_signals(stop)
        scheduler.run(settings, source, store, stop, measure=Instruments().job)


@jobs.command("once", epilog=TIMES)
@click.argument("name", type=click.Choice(sorted(JOBS)))
@time_option(Edge.AT, "Instant of the snapshot.  [default: now]")
@data_dir_option
@source_option
@replace_source_option
def jobs_once(name: str, at: datetime | None, replace_source: bool, **overrides: Any) -> None:
    """Take one snapshot. An instant whose snapshot is complete is left as it is.

    Example:

    \b
        analytics-service jobs once prices --at 2026-03-01T00:00Z
    """
    settings = load_job_settings(**overrides)
    now = datetime.now(UTC).replace(microsecond=0)
    at = at or now
    _require_past("--at", at, now)
    with (
        open_store(settings) as store,
        closing(require_source(settings, store, replace_source=replace_source)) as source,
    ):
        outcome = runner.run_once(JOBS[name], source, store, at)
    click.echo(f"{name} at {shown(at)}: {outcome}.")


@jobs.command("backfill", epilog=TIMES)
@click.argument("name", type=click.Choice(sorted(JOBS)))
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
@click.option("--again", is_flag=True, help="Also take all snapshots of the range anew that are there already.")
@click.option("--dry-run", is_flag=True, help="With --again: say what would be taken, of which days; stop there.")
@data_dir_option
@source_option
def jobs_backfill(
    name: str, start: datetime, end: datetime, interval: timedelta, again: bool, dry_run: bool, **overrides: Any
) -> None:
    """Take the snapshots of a range that are not there yet.

    With --again those that are there are replaced by what the source says now, and so are all events of the range if
    they are those of loans. Without it they stay as they are.
    DURATION is a number and s, min, h or d. From another deployment, snapshots are taken a second before the multiples,
    as buckets of its history end; of positions, the histories of risk only.

    May be interrupted and run again: it continues where it stopped. Example:

    \b
        analytics-service jobs backfill prices --start 2026-01-01 --end 2026-02-28 --every 1h
    """
    if again and name == "positions":
        raise click.UsageError(
            "Positions are stored as changes from one snapshot to the next, so those that are there are not taken "
            f"anew. `analytics-service remove positions --start {shown(start)}` takes out all from then on; then take "
            "them without --again."
        )
    if dry_run and not again:
        raise click.UsageError("--dry-run is for --again; without it nothing changes that is there.")
    require_range(start, end)
    now = datetime.now(UTC)
    _require_past("--start", start, now)
    settings = load_job_settings(**overrides)
    job = JOBS[name]
    with filled_store(settings, dry_run=dry_run) as store, closing(require_source(settings, store)) as source:
        instants = runner.instants_to_fill(start, min(end, now), interval, at_ends=source.at_ends)
        portions = plan(store, name, start, min(end, now)) if again else []
        replaced = sum(len(portion.instants) for portion in portions)
        if again:
            click.echo(f"Snapshots come from {without_credentials(source.spec)}.")
        if dry_run:
            for line in _planned(instants, portions):
                click.echo(line)
            return
        with click.progressbar(length=len(portions) + len(instants), label=f"Backfill of {name}") as bar:
            for portion in portions:
                # Of loans, what a source states at the snapshots of the whole range comes after all events.
                where = "the same" if name == "loans" else f"from {shown(portion.start)}"
                with explaining_stop(f"Stopped. Run {where} again to go on."):
                    retake(job, source, store, portion)
                bar.update(1)
            with explaining_stop("The backfill was stopped. When it is run again, it continues where it was."):
                # A source that states the number of users states their risk, too, if it can.
                is_stated = name == "positions" and source.activity(now) is not None
                fill = backfill_risk if is_stated else runner.backfill
                written = fill(job, source, store, instants, progress=bar.update)
    unknown = ", or are not known" if name == "positions" else ""
    there = f"{replaced} taken anew" if again else f"{len(instants) - written} were there already{unknown}"
    click.echo(f"{name}: {written} snapshots taken, {there}.")


def _planned(instants: Sequence[datetime], portions: Sequence[Portion]) -> Iterator[str]:
    """What a backfill that takes snapshots again would take."""
    there = [at for portion in portions for at in portion.instants]
    added = len({*instants} - {*there})
    yield f"Dry run: {len(there):,} snapshots would be taken anew, and {added:,} that are not there."
    for day, count in Counter(f"{at:%Y-%m-%d}" for at in there).items():
        yield f"  {day}: {count:,} anew"


def _require_past(option: str, instant: datetime, now: datetime) -> None:
    """UsageError for an instant in the future, whose snapshot would hide all others until then."""
    if instant > now:
        raise click.UsageError(f"{option} {shown(instant)} lies in the future; `now` is {shown(now)}.")


jobs.add_command(jobs_recompute)
