"""`import`: history from files."""

from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

import click

from analytics_service.cli.context import ProgressBars, import_store, load_settings, open_store, store_location
from analytics_service.cli.event_imports import import_events_command
from analytics_service.cli.history_imports import history_command
from analytics_service.cli.import_report import SKIP, report
from analytics_service.cli.options import data_dir_option
from analytics_service.imports.definitions import define_assets
from analytics_service.imports.families import PRICES, RATES, Family
from analytics_service.imports.opening import within_memory
from analytics_service.imports.run import Request, import_files, try_import
from analytics_service.store.histories import HISTORIES

_Command = TypeVar("_Command", bound=Callable[..., Any])


def _import_options(command: _Command) -> _Command:
    """The arguments of all imports: files, assets, unit, skip_invalid, dry_run, data_dir."""
    file = click.Path(exists=True, dir_okay=False, path_type=Path)
    assets = "File of addresses, symbols and decimals; prices need it for assets that the service does not know yet."
    unit = "Unit of the files' timestamps: seconds or milliseconds."
    dry_run = "Read and check everything, write nothing, and say what would be written."
    for decorate in (
        data_dir_option,
        click.option("--dry-run", is_flag=True, help=dry_run),
        click.option("--skip-invalid", is_flag=True, help=SKIP),
        click.option("--time-unit", "unit", type=click.Choice(["s", "ms"]), default="s", show_default=True, help=unit),
        click.option("--assets", type=file, help=assets),
        click.argument("files", nargs=-1, required=True, type=file),
    ):
        command = decorate(command)
    return command


@click.group("import")
def import_group() -> None:
    """Bring in history from files: one history, events of addresses, or descriptions of assets.

    `prices` and `rates` take two fixed layouts; the others take files as people have them. Example:

    \b
        analytics-service import price prices.csv --symbol ETH --new-assets --dry-run
    """


@import_group.command("prices")
@_import_options
def import_prices_command(**options: Any) -> None:
    """Import price observations, all or nothing.

    FILES are CSV, CSV.gz or Parquet with the columns symbol,timestamp,USD_price or asset_id,ts,price. Importing
    them again changes nothing. Example:

    \b
        analytics-service import prices prices_*.csv.gz --assets assets.csv --time-unit ms
    """
    _import(PRICES, **options)


@import_group.command("rates")
@_import_options
def import_rates_command(**options: Any) -> None:
    """Import lend and borrow rates, all or nothing.

    FILES are CSV, CSV.gz or Parquet with the columns timestamp, symbol, asset_address, decimals, borrowing_enabled,
    current_liquidity_rate and current_variable_borrow_rate, so rates need no --assets. Example:

    \b
        analytics-service import rates rates_daily.csv.gz
    """
    _import(RATES, **options)


@import_group.command("assets")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@data_dir_option
def import_assets_command(file: Path, data_dir: Path | None) -> None:
    """Describe assets, also those that an import made of their symbols.

    FILE is CSV with the columns symbol, address (or id, such as native;uatom) and decimals, and perhaps name. Where a
    source describes the same assets, its next snapshot of prices does so again. Example:

    \b
        analytics-service import assets assets.csv
    """
    settings = load_settings(data_dir=data_dir)
    with open_store(settings) as store:
        changed = define_assets(store, file)
    click.echo(f"{changed:,} assets described anew in {store_location(settings)}.")


def _import(family: Family, dry_run: bool, data_dir: Path | None, **options: Any) -> None:
    """Import files. `options` are the other fields of a Request."""
    request = Request(family, **options)
    within_memory(request.files)
    settings = load_settings(data_dir=data_dir)
    now = datetime.now(UTC)
    with closing(ProgressBars()) as bars, import_store(settings, dry_run=dry_run) as store:
        if dry_run or store is None:
            summary = try_import(store, request, now, bars)
        else:
            summary = import_files(store, request, now, bars)
    report(summary, settings, dry_run)


import_group.add_command(import_events_command)
for _history in HISTORIES:
    import_group.add_command(history_command(_history))
