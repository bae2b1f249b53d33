"""`source`: try a source."""

import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import click

from analytics_service.cli.context import load_settings, open_store_to_read, store_location
from analytics_service.cli.options import data_dir_option
from analytics_service.clickhouse.connection import Store
from analytics_service.config.settings import Settings
from analytics_service.errors import SettingError
from analytics_service.market.instants import MINUTE, floor_to
from analytics_service.sources.registry import SQL, open_source
from jobs.check import Finding, Level, Plan, check, scratch_store


@click.group()
def source() -> None:
    """Try a source of snapshots.

    Example:

    \b
        analytics-service source check simulated
    """


@source.command("check")
@click.argument("spec")
@click.option(
    "--minutes",
    type=click.FloatRange(0, 60),
    default=1,
    show_default=True,
    help="Minutes until the source is asked again.",
)
@data_dir_option
def source_check(spec: str, minutes: float, **overrides: Any) -> None:
    """Check a source: take snapshots for now, an hour ago and a day ago, then ask again.

    SPEC is as in --source. Snapshots go into a temporary store. Prints rejected and suspicious values, changes of the
    past, and how long each answer took. Exits with 1 after errors. Example:

    \b
        analytics-service source check sql:research_mine --minutes 5
    """
    settings = load_settings(**overrides)
    end = time.monotonic() + minutes * MINUTE

    def pause() -> None:
        if (rest := end - time.monotonic()) > 0:
            click.echo(f"Asking again in {rest:.0f} s ...")
            time.sleep(rest)

    with _store_of(spec, settings) as store:
        opened = open_source(spec, settings, store)
        if opened is None:
            raise SettingError("The source is none, so there is nothing to check.")
        # Jobs ask for multiples of their intervals. Events have the longest interval, and a source may lag by it.
        now = floor_to(datetime.now(UTC), timedelta(seconds=settings.every.loans))
        with closing(opened), scratch_store() as scratch:
            findings: dict[Finding, None] = {}
            for step in check(opened, scratch, Plan(now, settings, pause)):
                if isinstance(step, Finding):
                    findings[step] = None
                else:
                    click.echo(step)
    _report(list(findings))


@contextmanager
def _store_of(spec: str, settings: Settings) -> Iterator[Store]:
    """The store that the source reads. ClickHouse is started only for a source that reads views."""
    if spec.partition(":")[0] != SQL:
        with closing(Store(settings)) as store:
            yield store
        return
    with open_store_to_read(settings) as reached:
        if reached is None:
            raise SettingError(f"{spec} has no views, because there is no data in {store_location(settings)}.")
        yield reached


def _report(findings: list[Finding]) -> None:
    """Print all findings, the worst first. Exit with 1 if there are errors."""
    click.echo()
    for level in Level:
        for finding in findings:
            if finding.level is level:
                click.echo(f"{level}: {finding.message}")
    counts = {level: sum(finding.level is level for finding in findings) for level in (Level.ERROR, Level.WARNING)}
    if not any(counts.values()):
        click.echo("Nothing is wrong with this source.")
        return
    click.echo(", ".join(f"{count} {level}{'' if count == 1 else 's'}" for level, count in counts.items()) + ".")
    if counts[Level.ERROR]:
        sys.exit(1)
