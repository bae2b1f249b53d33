"""`import HISTORY`: one history from files as people have them."""

from collections.abc import Callable, Mapping
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar, cast

import click

from analytics_service.cli.context import ProgressBars, import_store, load_settings
from analytics_service.cli.import_report import ORDER_HELP, SKIP, report, understood
from analytics_service.cli.options import data_dir_option, value_type
from analytics_service.config.values import zone
from analytics_service.imports.files import expanded
from analytics_service.imports.history_files import HistoryRequest, load_history
from analytics_service.imports.layout import Choice
from analytics_service.imports.numerals import Mark, NumberRules
from analytics_service.imports.opening import within_memory
from analytics_service.imports.times import ORDERS, UNITS, TimeRules
from analytics_service.store.connection import Store
from analytics_service.store.histories import History

_DESCRIBE = (
    "New assets have the symbol as their name, and as many decimals as their values. `analytics-service import assets` "
    "describes them properly, as does a source."
)
_Command = TypeVar("_Command", bound=Callable[..., Any])


def _history_options(command: _Command) -> _Command:
    """The arguments of imports of a history."""
    file = click.Path(exists=True, dir_okay=False, path_type=Path)
    for decorate in (
        data_dir_option,
        click.option("--dry-run", is_flag=True, help="Show what was understood and what would be written; stop there."),
        click.option("--skip-invalid", is_flag=True, help=SKIP),
        click.option(
            "--new-assets", is_flag=True, help="Add symbols that nobody knows as assets native;SYMBOL, ids as they are."
        ),
        click.option("--assets", type=file, help="File of addresses, symbols and decimals of assets."),
        click.option("--percent/--fraction", "percent", default=None, help="Whether rates are in percent."),
        click.option(
            "--decimal-comma/--decimal-point", "comma", default=None, help="Mark between whole numbers and decimals."
        ),
        click.option("--date-order", "order", type=click.Choice(list(ORDERS)), help=ORDER_HELP),
        click.option(
            "--time-unit", "unit", type=click.Choice(list(UNITS)), help="Unit of unix times, whatever their size."
        ),
        click.option("--zone", type=value_type(zone), metavar="ZONE", help="Zone of times that name none."),
        click.option("--wide", is_flag=True, help="Each column but the time is an asset, named by its symbol or id."),
        click.option("--symbol", metavar="SYMBOL", help="Symbol or id of the asset, if the files are of one asset."),
        click.option("--asset", metavar="COLUMN", help="Column with the symbols, ids or addresses of assets."),
        click.option("--value", metavar="COLUMN", help="Column with the values."),
        click.option("--time", metavar="COLUMN", help="Column with the times."),
        click.argument("files", nargs=-1, required=True),
    ):
        command = decorate(command)
    return command


def history_command(history: History) -> click.Command:
    """The command that imports a history."""

    @_history_options
    def import_history(**options: Any) -> None:
        _import_history(history, **options)

    import_history.__doc__ = f"""Import the history {history.slug}, all or nothing.

    Values: {history.meaning}.

    FILES are files, folders or globs: CSV with any delimiter, JSON lines, Parquet or Arrow, packed with gzip, zstd or
    not; also what this service answers in any format. Columns are found by their usual names. What was understood is
    shown before anything is written. What could be read in two ways is refused, with the option that chooses. Example:

    \b
        analytics-service import {history.slug} data/*.csv --zone UTC --dry-run
    """
    return click.command(history.slug, short_help=history.meaning)(import_history)


def _import_history(history: History, **options: Any) -> None:
    dry_run, settings = options["dry_run"], load_settings(data_dir=options["data_dir"])
    request = _history_request(history, options)
    with closing(ProgressBars()) as bars, import_store(settings, dry_run=dry_run) as store:
        content = load_history(store, request, datetime.now(UTC), bars, keep_rejected=not dry_run)
        bars.close()
        for line in understood(content):
            click.echo(line)
        summary = content.loaded.compare(store, bars) if dry_run else content.loaded.write(cast(Store, store), bars)
    report(summary, settings, dry_run)
    if content.loaded.new and request.new_assets:
        click.echo(_DESCRIBE)


def _history_request(history: History, options: Mapping[str, Any]) -> HistoryRequest:
    comma, percent = options["comma"], options["percent"]
    mark = None if comma is None else Mark.COMMA if comma else Mark.POINT
    return HistoryRequest(
        history,
        within_memory(expanded(options["files"])),
        Choice(options["time"], options["value"], options["asset"], options["symbol"], options["wide"]),
        TimeRules(options["zone"], options["unit"], options["order"]),
        NumberRules(mark, bool(percent)),
        percent is False,
        options["assets"],
        options["new_assets"],
        options["skip_invalid"],
    )
