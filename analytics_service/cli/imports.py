"""`import`: history from files."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

import click

from analytics_service.cli.context import load_settings, open_store, open_store_to_read, store_location
from analytics_service.cli.options import data_dir_option
from analytics_service.cli.progress import ProgressBars
from analytics_service.cli.signals import explaining_stop
from analytics_service.config.settings import Settings
from analytics_service.imports.families import PRICES, RATES, Family
from analytics_service.imports.run import SHOWN, Request, Summary, import_files, try_import, with_rest
from analytics_service.market.assets import Asset

_STOPPED = (
    "The import was stopped. Either nothing was written or, if its rows were being put in place, the service or the "
    "next command completes it. The same command may be run again: it ends in the same state."
)
_Command = TypeVar("_Command", bound=Callable[..., Any])


def _import_options(command: _Command) -> _Command:
    """The arguments of all imports: files, assets, unit, skip_invalid, dry_run, data_dir."""
    file = click.Path(exists=True, dir_okay=False, path_type=Path)
    skip = "Import the good rows; write the others to FILE.rejected.csv."
    assets = "File of addresses, symbols and decimals; prices need it for assets that the service does not know yet."
    unit = "Unit of the files' timestamps: seconds or milliseconds."
    dry_run = "Read and check everything, write nothing, and say what would be written."
    for decorate in (
        data_dir_option,
        click.option("--dry-run", is_flag=True, help=dry_run),
        click.option("--skip-invalid", is_flag=True, help=skip),
        click.option("--time-unit", "unit", type=click.Choice(["s", "ms"]), default="s", show_default=True, help=unit),
        click.option("--assets", type=file, help=assets),
        click.argument("files", nargs=-1, required=True, type=file),
    ):
        command = decorate(command)
    return command


@click.group("import")
def import_group() -> None:
    """Bring in history from files.

    Example:

    \b
        analytics-service import prices prices.csv.gz --assets assets.csv
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


def _import(family: Family, dry_run: bool, data_dir: Path | None, **options: Any) -> None:
    """Import files. `options` are the other fields of a Request."""
    request = Request(family, **options)
    settings = load_settings(data_dir=data_dir)
    with closing(ProgressBars()) as bars:
        if dry_run:
            with open_store_to_read(settings) as existing:
                summary = try_import(existing, request, datetime.now(UTC), bars)
        else:
            with open_store(settings) as store, explaining_stop(_STOPPED):
                summary = import_files(store, request, datetime.now(UTC), bars)
    click.echo(_outcome(summary, settings, dry_run))
    for line in _conflicts(summary.kept):
        click.echo(line)
    for path in summary.rejected_files:
        click.echo(f"Rejected rows are in {path}.")


def _outcome(summary: Summary, settings: Settings, dry_run: bool) -> str:
    """The result of an import, or of its dry run, in words."""
    if dry_run:
        rows = f"would write {summary.written:,} new ones, replace {summary.replaced:,} and reject {summary.rejected:,}"
        where = f"Nothing was written. Without --dry-run the import writes into {store_location(settings)}"
    else:
        rows = f"{summary.written:,} new, {summary.replaced:,} replaced, {summary.rejected:,} rejected"
        where = f"Written into {store_location(settings)}"
    brought = ", ".join(_counted(history, count) for history, count in summary.observations.items() if count)
    return f"Read {summary.read:,} rows: {rows}.\n" + (f"{where}: {brought}." if brought else "Nothing was written.")


def _counted(history: str, count: int) -> str:
    """A number of observations in words, such as `2 lend rates`."""
    return f"{count:,} {history.replace('_', ' ')}{'' if count == 1 else 's'}"


def _conflicts(assets: Sequence[Asset]) -> Iterator[str]:
    """Lines about assets that the assets file describes differently from the store, which keeps its descriptions."""
    if assets:
        yield "The assets file describes these assets differently from the store, which keeps its descriptions:"
    named = [f"  {asset.id}: {asset.symbol}, {asset.decimals_denom} decimals" for asset in assets[:SHOWN]]
    yield from with_rest(named, len(assets))
