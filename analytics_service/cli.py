"""The commands."""

import os
import shlex
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import FrameType
from typing import Any, Literal

import click

from analytics_service import logs, supervised
from analytics_service import up as service
from analytics_service.cli_parts import Bars, Commands, import_options, option, setting_option
from analytics_service.cli_values import parse_duration, parse_instant
from analytics_service.config import Settings, table
from analytics_service.errors import SchemaError, SettingError
from analytics_service.imports.families import PRICES, RATES, Family
from analytics_service.imports.run import Request, import_files
from analytics_service.market.instants import multiples, shown
from analytics_service.sources.base import Source
from analytics_service.sources.registry import open_source
from analytics_service.status import report
from analytics_service.store.connection import Store
from analytics_service.store.embedded import attached, clickhouse
from analytics_service.store.migrations import migrate, pending
from jobs import runner, scheduler
from jobs.registry import JOBS

_instant = option(parse_instant)


bind_option = setting_option("bind", "HOST:PORT")
data_dir_option = setting_option("data_dir", "DIR")
source_option = setting_option("source", "SPEC")
workers_option = setting_option("workers", "N")


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="analytics-service", prog_name="analytics-service")
def cli() -> None:
    """Time-series analytics of a lending-and-borrowing protocol.

    Everything on this machine, with made-up data, answering on http://127.0.0.1:8000:

    \b
        analytics-service up

    Settings are environment variables; `analytics-service settings` lists them.
    """


@cli.command()
@bind_option
@data_dir_option
@source_option
@workers_option
def up(**overrides: Any) -> None:
    """Run everything on this machine, until Ctrl-C.

    Starts ClickHouse (an embedded one, unless ANALYTICS_CLICKHOUSE_URL names another), brings its schema up to date,
    takes a first snapshot, then runs the scheduler and the HTTP service and restarts what dies. Example:

    \b
        analytics-service up --bind 127.0.0.1:8001 --data-dir ./data
    """
    with _stopped_quietly():
        service.up(_settings(**overrides), _command_line())


@cli.command()
@bind_option
@workers_option
def serve(**overrides: Any) -> None:
    """Run the HTTP service only, under gunicorn, until SIGTERM.

    GUNICORN_CMD_ARGS may hold further options of gunicorn. Example:

    \b
        analytics-service serve --bind 0.0.0.0:8000 --workers 4
    """
    settings = _settings(**overrides)
    reached = attached(settings)
    if reached is None:
        with _stopped_quietly():
            service.serve(settings, _command_line())
        return
    service.require_free(settings.bind)
    supervised.replace_process(service.GUNICORN, {**os.environ, **reached.to_environment()})


@cli.group()
def jobs() -> None:
    """Take snapshots: on schedule, once, or for a range of the past.

    Example:

    \b
        analytics-service jobs once prices
    """


@jobs.command("run")
@source_option
def jobs_run(**overrides: Any) -> None:
    """Run all jobs at their instants, until SIGTERM.

    Two schedulers may run side by side: what one has completed the other leaves alone. Example:

    \b
        analytics-service jobs run --source simulated:7
    """
    stop = threading.Event()
    _set_on_signals(stop)
    supervised.end_with_supervisor()
    settings = _settings(**overrides)
    with closing(_source(settings)) as source, _store(settings, on_failure=stop.set) as store:
        scheduler.run(settings, source, store, stop)


@jobs.command("once")
@click.argument("name", type=click.Choice(sorted(JOBS)))
@click.option("--at", type=_instant, metavar="TIME", help="Instant of the snapshot.  [default: now]")
@source_option
def jobs_once(name: str, at: datetime | None, **overrides: Any) -> None:
    """Take one snapshot. An instant whose snapshot is complete is left as it is.

    TIME is in unix seconds, or like 2026-03-01T00:00:00Z; a date alone is its midnight, UTC. Example:

    \b
        analytics-service jobs once prices --at 2026-03-01
    """
    settings = _settings(**overrides)
    with closing(_source(settings)) as source:
        now = datetime.now(UTC).replace(microsecond=0)
        at = at or now
        _require_past("--at", at, now)
        with _store(settings) as store:
            outcome = runner.run_once(JOBS[name], source, store, at)
    click.echo(f"{name} at {shown(at)}: {outcome}.")


@jobs.command("backfill")
@click.argument("name", type=click.Choice(sorted(name for name, job in JOBS.items() if job.history)))
@click.option("--start", type=_instant, metavar="TIME", required=True, help="First instant.")
@click.option("--end", type=_instant, metavar="TIME", required=True, help="Last instant, itself included.")
@click.option(
    "--every",
    type=option(parse_duration),
    metavar="DURATION",
    default="1h",
    show_default=True,
    help="Distance between snapshots, such as 15m or 1d; they lie at its multiples since 1970.",
)
@source_option
def jobs_backfill(name: str, start: datetime, end: datetime, every: timedelta, **overrides: Any) -> None:
    """Take the snapshots of a range that are not there yet.

    May be broken off and run again: it goes on where it was. Example:

    \b
        analytics-service jobs backfill prices --start 2026-01-01 --end 2026-03-01 --every 1h
    """
    if start > end:
        raise click.UsageError("--start is later than --end.")
    _require_past("--end", end, datetime.now(UTC))
    settings = _settings(**overrides)
    instants = multiples(start, end, every)
    with (
        closing(_source(settings)) as source,
        _store(settings) as store,
        click.progressbar(length=len(instants), label=f"Backfill of {name}") as bar,
    ):
        written = runner.backfill(JOBS[name], source, store, instants, progress=bar.update)
    click.echo(f"{name}: {written} snapshots taken, {len(instants) - written} were there already.")


@cli.command("migrate")
def migrate_command() -> None:
    """Bring the schema of the database up to date.

    Applies the numbered scripts that the database has not seen; running it again changes nothing. Example:

    \b
        ANALYTICS_CLICKHOUSE_URL=http://clickhouse:8123 analytics-service migrate
    """
    with clickhouse(_settings(), _command_line()) as reached, closing(Store(reached)) as store:
        applied = migrate(store)
    for migration in applied:
        click.echo(f"Applied {migration.name}.")
    if not applied:
        click.echo("The schema is up to date.")


@cli.command()
def status() -> None:
    """Say where ClickHouse is, whether its schema is up to date, and how old the newest data is.

    Exit code 1 when ClickHouse does not answer or migrations are pending. Example:

    \b
        analytics-service status
    """
    lines, healthy = report(_settings(), datetime.now(UTC))
    click.echo("\n".join(lines))
    if not healthy:
        sys.exit(1)


@cli.command("settings")
def settings_command() -> None:
    """List all settings: environment variable, value now, default and meaning.

    Options of a command go before them. Example:

    \b
        ANALYTICS_TZ=Europe/London analytics-service settings
    """
    settings = _settings()
    for row in table():
        value, default = getattr(settings, row.name), "unset" if row.default in (None, "") else row.default
        shown = "(hidden)" if "password" in row.name and value else "unset" if value in (None, "") else value
        click.echo(f"{row.variable}={shown}\n    {row.help} Default: {default}.\n")


@cli.group("import")
def import_group() -> None:
    """Bring in history from files.

    Example:

    \b
        analytics-service import prices prices.csv.gz --assets assets.csv
    """


@import_group.command("prices")
@import_options
def import_prices_command(**options: Any) -> None:
    """Import price observations, all or nothing.

    May be run again: observations that are there already are replaced by themselves. Example:

    \b
        analytics-service import prices prices_*.csv.gz --assets assets.csv --time-unit ms
    """
    _import(PRICES, **options)


@import_group.command("rates")
@import_options
def import_rates_command(**options: Any) -> None:
    """Import lend and borrow rates, all or nothing.

    Each row names its asset by asset_address, symbol and decimals, so no assets file is needed. Example:

    \b
        analytics-service import rates rates_daily.csv.gz
    """
    _import(RATES, **options)


def _import(
    family: Family, files: tuple[Path, ...], assets: Path | None, unit: Literal["s", "ms"], skip_invalid: bool
) -> None:
    request = Request(family, files, assets, unit, skip_invalid)
    with _store(_settings()) as store, closing(Bars()) as bars:
        done = import_files(store, request, datetime.now(UTC), bars)
    click.echo(
        f"Read {done.read} rows: {done.written} new observations, {done.replaced} replaced, {done.rejected} rejected."
    )
    for path in done.rejected_files:
        click.echo(f"Rejected rows are in {path}.")


def _require_past(name: str, instant: datetime, now: datetime) -> None:
    """Nothing can have been observed yet at a future instant, and a snapshot of it would hide those until then."""
    if instant > now:
        raise click.UsageError(f"{name} {shown(instant)} lies in the future; it is {shown(now)} now.")


def _settings(**overrides: object) -> Settings:
    settings = Settings.from_environment(os.environ, **overrides)
    logs.set_up(settings.log_level)
    return settings


def _source(settings: Settings) -> Source:
    source = open_source(settings.source)
    if source is None:
        raise SettingError("The source is none, so there is nothing to take snapshots of. Name one with --source.")
    return source


@contextmanager
def _store(settings: Settings, on_failure: Callable[[], None] = lambda: None) -> Iterator[Store]:
    """A store to write to. The embedded server's schema is brought up to date; another server's only by `migrate`."""
    with clickhouse(settings, _command_line(), on_failure=on_failure) as reached, closing(Store(reached)) as store:
        if settings.clickhouse_url is None:
            migrate(store)
        elif missing := pending(store):
            names = ", ".join(migration.name for migration in missing)
            raise SchemaError(f"The database lacks {names}; run `analytics-service migrate`.")
        yield store


def _command_line() -> str:
    return shlex.join(["analytics-service", *sys.argv[1:]])


@contextmanager
def _stopped_quietly() -> Iterator[None]:
    """SIGTERM and Ctrl-C are how a service is stopped: exit code 0."""
    signal.signal(signal.SIGINT, _terminate)
    try:
        yield
    except SystemExit as stopped:
        if stopped.code != _TERMINATED:
            raise


_TERMINATED = 128 + signal.SIGTERM


def _terminate(number: int, frame: FrameType | None) -> None:
    """Unwind the command, once; a second signal must not break off what the first one began."""
    for each in (signal.SIGTERM, signal.SIGINT):
        signal.signal(each, signal.SIG_IGN)
    sys.exit(_TERMINATED)


def _set_on_signals(stop: threading.Event) -> None:
    """Set an event on SIGTERM and Ctrl-C, from a thread: a signal's handler may not touch what it interrupts."""
    heard, told = os.pipe()
    os.set_blocking(told, False)
    signal.set_wakeup_fd(told)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: None)

    def wait() -> None:
        os.read(heard, 1)
        stop.set()

    threading.Thread(target=wait, name="signal-watcher", daemon=True).start()


def main() -> None:
    """Entry point of `analytics-service`."""
    signal.signal(signal.SIGTERM, _terminate)
    cli(prog_name="analytics-service")


if __name__ == "__main__":
    main()
