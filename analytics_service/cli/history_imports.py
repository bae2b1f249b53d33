"""`import HISTORY`: history from files as people have them."""

from collections.abc import Mapping
from contextlib import closing
from datetime import UTC, datetime
from typing import Any, cast

import click
import polars as pl

from analytics_service.cli.context import ProgressBars, import_store, load_settings
from analytics_service.cli.import_command import import_options, table_rules
from analytics_service.cli.import_report import report, understood
from analytics_service.cli.options import value_type
from analytics_service.cli.recompute import compute, following, suggest
from analytics_service.clickhouse.connection import Store
from analytics_service.imports.files import expanded
from analytics_service.imports.history_files import load_history
from analytics_service.imports.holding import STAMPS, Holding, parse_interval
from analytics_service.imports.layout import ColumnChoice
from analytics_service.imports.numerals import Mark, NumberRules
from analytics_service.imports.opening import within_memory
from analytics_service.imports.presets import Preset
from analytics_service.imports.publishing import compare, publish
from analytics_service.imports.reading import HistoryRequest
from analytics_service.imports.times import TimeRules

_DESCRIBE = (
    "Nobody has stated the decimals of new assets, which events need. `analytics-service import assets` states them."
)


def _pattern(text: str) -> str:
    if text.count("SYMBOL") != 1:
        raise ValueError("must have SYMBOL once, where names of files have the symbol")
    return text


_CHOICE = ("time", "value", "asset", "symbol", "wide", "candles", "symbol_from")
_OPTIONS = (
    click.option("--time", metavar="COLUMN", help="Column of times, or several: Date,Time."),
    click.option("--value", metavar="COLUMN", help="Column of values."),
    click.option("--asset", metavar="COLUMN", help="Column of symbols, ids or addresses."),
    click.option("--symbol", metavar="SYMBOL", help="Symbol or id, if all is of one asset."),
    click.option(
        "--symbol-from", type=value_type(_pattern), metavar="PATTERN", help="The same, from names: 'SYMBOL-1d*.csv'."
    ),
    click.option("--wide", is_flag=True, help="Each column but the time is an asset."),
    click.option("--decimal-comma/--decimal-point", "comma", default=None, help="Mark before decimals."),
    click.option("--percent/--fraction", "percent", default=None, help="Whether rates are in percent."),
    click.option("--stamp", type=click.Choice(STAMPS), help="Which end of its interval a time names."),
    click.option("--interval", type=value_type(parse_interval), metavar="LENGTH", help="Its length, as 1h, 1d or 1mo."),
    click.option("--candles", is_flag=True, help="Bring in open, high and low, too."),
    click.option("--last-wins", is_flag=True, help="Take the later of rows that disagree."),
    click.option("--new-assets", is_flag=True, help="Make assets native;SYMBOL of new symbols."),
)

_RECOMPUTE = click.option("--recompute", is_flag=True, help="Then compute again what follows from the prices.")


def history_command(preset: Preset) -> click.Command:
    """The command that imports the histories of a preset."""

    @import_options(*_OPTIONS, *((_RECOMPUTE,) if preset.family == "prices" else ()))
    def import_history(**options: Any) -> None:
        _import_history(preset, options)

    columns = ", ".join([*preset.columns.values(), *preset.switches.values()])
    import_history.__doc__ = f"""Import {preset.name}, all or nothing.

    Values: {preset.meaning}.

    FILES are files, folders or globs: CSV and its relatives, JSON, xlsx, Parquet or Arrow, packed or not, and what
    this service writes. Columns are {columns or "found by their usual names"}. What could be read in two ways is
    refused, with the option that chooses. Example:

    \b
        analytics-service import {preset.name} data/*.csv --zone UTC --dry-run
    """
    return click.command(preset.name, short_help=preset.meaning)(import_history)


def _import_history(preset: Preset, options: Mapping[str, Any]) -> None:
    dry_run, settings = options["dry_run"], load_settings(data_dir=options["data_dir"])
    request = _history_request(preset, options)
    with closing(ProgressBars()) as bars, import_store(settings, dry_run=dry_run) as store:
        content = load_history(store, request, datetime.now(UTC), bars, keep_rejected=not dry_run)
        bars.close()
        for line in understood(content):
            click.echo(line)
        summary = compare(store, content, bars) if dry_run else publish(cast(Store, store), content, bars)
        report(summary, settings, dry_run)
        if preset.family == "prices" and store and not dry_run:
            portions = following(store, _spans(content.rows))
            if options["recompute"] and portions:
                compute(store, portions)
            else:
                suggest(portions)
    if content.new and request.new_assets:
        click.echo(_DESCRIBE)


def _spans(rows: pl.DataFrame) -> dict[str, tuple[int, int]]:
    """The first and the last unix second of imported rows by asset."""
    by_asset = rows.group_by(pl.col("asset").cast(pl.String))
    spans = by_asset.agg(pl.min("observed_at"), last=pl.max("observed_at"))
    return {asset: (first, last) for asset, first, last in spans.iter_rows()}


def _history_request(preset: Preset, options: Mapping[str, Any]) -> HistoryRequest:
    comma, percent = options["comma"], options["percent"]
    mark = None if comma is None else Mark.COMMA if comma else Mark.POINT
    tables = table_rules(options, options["time"])
    return HistoryRequest(
        preset,
        within_memory(expanded(options["files"]), tables),
        ColumnChoice(*(options[name] for name in _CHOICE)),
        TimeRules(options["zone"], options["time_unit"], options["date_order"]),
        NumberRules(mark, bool(percent)),
        percent is False,
        options["assets"],
        options["new_assets"],
        options["skip_invalid"],
        Holding(options["stamp"], options["interval"]),
        options["last_wins"],
        tables=tables,
    )
