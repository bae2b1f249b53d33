"""`import HISTORY`: one history from files of the stated shape."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from datetime import UTC, datetime
from typing import Any, cast

import click
import polars as pl

from analytics_service.cli.context import ProgressBars, import_store, load_settings, store_location
from analytics_service.cli.import_options import import_options, plural
from analytics_service.cli.options import value_type
from analytics_service.cli.recompute import following, suggest
from analytics_service.clickhouse.connection import Store
from analytics_service.config.settings import Settings
from analytics_service.config.values import zone
from analytics_service.history.formats.base import decimal_strings
from analytics_service.importing.columns import ColumnChoice
from analytics_service.importing.files import find_files
from analytics_service.importing.history import Loaded, Summary, load_history
from analytics_service.importing.publishing import compare, publish
from analytics_service.importing.rows import SHOWN, HistoryRequest
from analytics_service.importing.stamps import STAMPS, Stamps, parse_interval
from analytics_service.importing.times import UNITS, TimeRules, parse_format
from analytics_service.importing.values import may_be_percent
from analytics_service.market.instants import instant, shown
from analytics_service.store.datasets.histories import PRICES, History

_ROWS = 3
_DESCRIBE = (
    "Nobody has stated the decimals of new assets, which events need. `analytics-service import assets` states them."
)


def _pattern(text: str) -> str:
    if text.count("SYMBOL") != 1:
        raise ValueError("must have SYMBOL once, where names of files have the symbol")
    return text


_COLUMNS = ("time", "asset_column", "value", "asset", "symbol_from", "wide", "candles")
_OPTIONS = (
    click.option("--time", metavar="COLUMN", help="Column of times.  [default: time]"),
    click.option("--value", metavar="COLUMN", help="Column of values.  [default: value]"),
    click.option("--time-unit", type=click.Choice(list(UNITS)), help="Unit of unix times."),
    click.option("--time-format", type=value_type(parse_format), metavar="FORMAT", help="As strptime: %d.%m.%Y."),
    click.option("--zone", type=value_type(zone), default="UTC", metavar="ZONE", help="Of times without an offset."),
    click.option("--decimal", type=click.Choice([".", ","]), default=".", help="Mark before decimals."),
    click.option("--stamp", type=click.Choice(STAMPS), help="Which end of its interval a time names."),
    click.option("--interval", type=value_type(parse_interval), metavar="LENGTH", help="Such as 15min, 1h, 1d, 1mo."),
    click.option("--last-wins", is_flag=True, help="Take the later of rows that disagree."),
)
_ASSETS = (
    click.option("--asset-column", metavar="COLUMN", help="Column of assets.  [default: asset]"),
    click.option("--asset", metavar="ASSET", help="Symbol or id of the asset of all rows."),
    click.option(
        "--symbol-from", type=value_type(_pattern), metavar="PATTERN", help="From file names: 'SYMBOL-1d*.csv'."
    ),
    click.option("--wide", is_flag=True, help="Each column but the time is an asset."),
    click.option("--candles", is_flag=True, help="Bring in open, high, low and close."),
    click.option("--new-assets", is_flag=True, help="Make assets native;SYMBOL of new symbols."),
)
_PERCENT = click.option("--percent", is_flag=True, help="Values are in percent: divide them by 100.")


def history_command(history: History) -> click.Command:
    """The command that imports a history."""
    assets, percent = _ASSETS if history.by_asset else (), (_PERCENT,) if may_be_percent(history) else ()

    @import_options(*_OPTIONS, *assets, *percent)
    def import_history(**options: Any) -> None:
        _import_history(history, options)

    columns = "time, asset and value" if history.by_asset else "time and value"
    import_history.__doc__ = f"""\b
    Import {columns} from files, folders or globs, all or nothing:
        analytics-service import {history.slug} data/*.csv --dry-run
    """
    return click.command(history.slug, short_help=history.meaning)(import_history)


def _import_history(history: History, options: Mapping[str, Any]) -> None:
    dry_run, settings = options["dry_run"], load_settings(data_dir=options["data_dir"])
    request = _request(history, options)
    with closing(ProgressBars()) as bars, import_store(settings, dry_run=dry_run) as store:
        content = load_history(store, request, datetime.now(UTC), bars)
        bars.close()
        for line in _understood(content):
            click.echo(line)
        summary = compare(store, content, bars) if dry_run else publish(cast(Store, store), content, bars)
        bars.close()
        for line in _outcome(summary, history, settings, dry_run=dry_run):
            click.echo(line)
        if history is PRICES and store and not dry_run:
            suggest(following(store, _spans(content.rows)))
    if content.new and request.new_assets:
        click.echo(_DESCRIBE)


def _request(history: History, options: Mapping[str, Any]) -> HistoryRequest:
    named = [
        f"--{name.replace('_', '-')}" for name in ("asset", "symbol_from", "asset_column", "wide") if options.get(name)
    ]
    if len(named) > 1:
        raise click.UsageError(f"{named[0]} and {named[1]} exclude each other.")
    if options.get("wide") and (options["value"] or options["candles"]):
        raise click.UsageError("With --wide each column but the time is an asset, so leave out --value and --candles.")
    return HistoryRequest(
        history,
        find_files(options["files"]),
        ColumnChoice(**{name: options[name] for name in _COLUMNS if name in options}),
        TimeRules(options["zone"], options["time_unit"], options["time_format"]),
        Stamps(options["stamp"], options["interval"]),
        separator=options["separator"],
        comma=options["decimal"] == ",",
        **{name: options.get(name, False) for name in ("percent", "assets", "new_assets", "last_wins", "skip_invalid")},
    )


def _spans(rows: pl.DataFrame) -> dict[str, tuple[int, int]]:
    """The first and the last unix second of imported rows by asset."""
    spans = rows.group_by("asset").agg(pl.min("observed_at"), last=pl.max("observed_at"))
    return {str(asset): (first, last) for asset, first, last in spans.iter_rows()}


def _understood(content: Loaded) -> Iterator[str]:
    """The range, the assets, what is left out, and the first rows as they will be stored."""
    rows = content.rows
    first, last = rows.select(first=pl.col("observed_at").min(), last=pl.col("observed_at").max()).row(0)
    yield f"Range: {shown(instant(first))} to {shown(instant(last))}"
    symbols = [content.symbols.get(asset_id, asset_id) for asset_id in rows["asset"].unique().cast(pl.String).sort()]
    if any(symbols):
        yield f"Assets: {_listed(symbols)}"
    if content.new:
        yield f"New assets: {_listed([f'{asset.id} ({asset.symbol})' for asset in content.new])}"
    yield from content.notes
    beside = dict.fromkeys(column for file in content.files for column in file.layout.beside)
    if beside:
        yield f"Left out: {', '.join(beside)}. --candles brings them in, at seconds within each interval."
    yield "First rows as stored:"
    values = decimal_strings(rows["value"].head(_ROWS))
    for asset_id, second, value in zip(rows["asset"], rows["observed_at"], values, strict=False):
        yield f"  {shown(instant(second))}  {value}  {asset_id}".rstrip()


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:SHOWN]) + (f" and {len(names) - SHOWN:,} more" if len(names) > SHOWN else "")


def _outcome(summary: Summary, history: History, settings: Settings, *, dry_run: bool) -> Iterator[str]:
    """The result of an import, or of its dry run, in words."""
    would = "would be " if dry_run else ""
    rows = f"{summary.written:,} {would}new, {summary.replaced:,} at known times, {summary.rejected:,} left out as bad"
    yield f"Read {summary.read:,} {plural(summary.read)}: {rows}, {summary.empty:,} without a value."
    yield from (f"  {rejection}" for rejection in summary.rejections)
    if summary.rejected > len(summary.rejections):
        yield f"  and {summary.rejected - len(summary.rejections):,} more"
    for asset in summary.kept:
        yield (
            f"The store describes {asset.id} otherwise than the assets file, as {asset.symbol} with "
            f"{asset.decimals_denom} decimals, and keeps that."
        )
    if dry_run:
        yield f"Nothing was written. Without --dry-run the import writes into {store_location(settings)}."
    else:
        many = f"{summary.observations:,} value{'' if summary.observations == 1 else 's'}"
        yield f"Written into {store_location(settings)}: {many} of {history.name.replace('_', ' ')}."
