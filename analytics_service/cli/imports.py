"""`import`: read histories, events and assets from files."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar, cast

import click
import polars as pl

from analytics_service.cli.context import (
    ProgressBars,
    follow_up,
    import_store,
    load_settings,
    open_store,
    store_location,
)
from analytics_service.cli.options import data_dir_option, value_type
from analytics_service.cli.recompute import suggest_recompute
from analytics_service.clickhouse.connection import Store
from analytics_service.config.parsers import zone
from analytics_service.config.settings import Settings
from analytics_service.history.formats.base import decimal_strings
from analytics_service.importing.assets import define_assets
from analytics_service.importing.column_mapping import ColumnChoice
from analytics_service.importing.events import EventRequest, LoadedEvents, load_events
from analytics_service.importing.history import Loaded, load_history
from analytics_service.importing.numbers import may_be_percent
from analytics_service.importing.publication import publish
from analytics_service.importing.rows import SHOWN, HistoryRequest
from analytics_service.importing.time_parsing import UNITS, TimeRules, parse_format
from analytics_service.importing.timestamps import STAMPS, Timestamps, parse_interval
from analytics_service.market.events import Event
from analytics_service.market.instants import format_instant, from_unix
from analytics_service.market.validation import list_in_words
from analytics_service.store.datasets.histories import HISTORIES, PRICES, History
from analytics_service.store.ledger import first_moment, read_head

_Command = TypeVar("_Command", bound=Callable[..., Any])
_FIRST = 3
_DESCRIBE = "New assets have no decimals yet, which events need. Set them with `analytics-service import assets`."
_COLUMNS = ("time", "asset_column", "value", "asset", "symbol_from", "wide", "candles")
_OPTIONS = (
    click.option("--time", metavar="COLUMN", help="Column of times.  [default: time]"),
    click.option("--value", metavar="COLUMN", help="Column of values.  [default: value]"),
    click.option("--time-unit", type=click.Choice(list(UNITS)), help="Unit of unix times."),
    click.option("--time-format", type=value_type(parse_format), metavar="FORMAT", help="As in strptime: %d.%m.%Y."),
    click.option(
        "--zone", type=value_type(zone), default="UTC", metavar="ZONE", help="Zone of times without an offset."
    ),
    click.option("--decimal", type=click.Choice([".", ","]), default=".", help="Decimal mark."),
    click.option("--stamp", type=click.Choice(STAMPS), help="Whether a time begins or ends its interval."),
    click.option("--interval", type=value_type(parse_interval), metavar="LENGTH", help="Such as 15min, 1h, 1d, 1mo."),
    click.option("--last-wins", is_flag=True, help="Take the later of conflicting rows."),
)
_PERCENT = click.option("--percent", is_flag=True, help="Values are in percent: divide them by 100.")


def parse_separator(text: str) -> str:
    """A separator of CSV fields; \\t is a tab."""
    if text.replace(r"\t", "\t") not in (",", ";", "\t", "|"):
        raise ValueError(r"must be one of , ; | and \t")
    return text.replace(r"\t", "\t")


def import_options(*options: Callable[..., Any]) -> Callable[[_Command], _Command]:
    """The argument `files`, the command's `options`, and the options of all imports."""
    file = click.Path(exists=True, dir_okay=False, path_type=Path)
    shared: tuple[Callable[..., Any], ...] = (
        click.option(
            "--separator", type=value_type(parse_separator), default=",", metavar="MARK", help=r"For CSV: , ; | or \t."
        ),
        click.option("--assets", type=file, help="File that describes new assets."),
        click.option("--skip-invalid", is_flag=True, help="Reject bad rows, show the first, import the others."),
        click.option("--dry-run", is_flag=True, help="Show what would be written; write nothing."),
        data_dir_option,
    )

    def decorated(command: _Command) -> _Command:
        for decorate in reversed((click.argument("files", nargs=-1, required=True, type=file), *options, *shared)):
            command = decorate(command)
        return command

    return decorated


def count_noun(count: int) -> str:
    return "row" if count == 1 else "rows"


def _pattern(text: str) -> str:
    if text.count("SYMBOL") != 1:
        raise ValueError("must contain SYMBOL once, in place of the symbol in file names")
    return text


_ASSETS = (
    click.option("--asset-column", metavar="COLUMN", help="Column of assets.  [default: asset]"),
    click.option("--asset", metavar="ASSET", help="Symbol or id of the asset of all rows."),
    click.option(
        "--symbol-from", type=value_type(_pattern), metavar="PATTERN", help="Symbol in file names: 'SYMBOL-1d*.csv'."
    ),
    click.option("--wide", is_flag=True, help="Every column except the time is an asset."),
    click.option("--candles", is_flag=True, help="Import open, high, low and close."),
    click.option("--new-assets", is_flag=True, help="Make an asset native;SYMBOL for each new symbol."),
)


def history_command(history: History) -> click.Command:
    """The command that imports a history."""
    assets, percent = _ASSETS if history.by_asset else (), (_PERCENT,) if may_be_percent(history) else ()

    @import_options(*_OPTIONS, *assets, *percent)
    def import_history(**options: Any) -> None:
        _import_history(history, options)

    columns = "time, asset and value" if history.by_asset else "time and value"
    import_history.__doc__ = f"""\b
    Import {columns} from files, all or nothing:
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
        if not dry_run:
            publish(cast(Store, store), content, bars)
            bars.close()
        for line in _outcome(content, settings, dry_run=dry_run):
            click.echo(line)
        if history is PRICES and store and not dry_run:
            suggest_recompute(store, *content.span)
    if not all(asset.is_described for asset in content.new):
        click.echo(_DESCRIBE)


def _request(history: History, options: Mapping[str, Any]) -> HistoryRequest:
    named = [
        f"--{name.replace('_', '-')}" for name in ("asset", "symbol_from", "asset_column", "wide") if options.get(name)
    ]
    if len(named) > 1:
        raise click.UsageError(f"{named[0]} and {named[1]} exclude each other.")
    if options.get("wide") and (options["value"] or options["candles"]):
        raise click.UsageError("--wide excludes --value and --candles: every column except the time is an asset.")
    return HistoryRequest(
        history,
        options["files"],
        ColumnChoice(**{name: options[name] for name in _COLUMNS if name in options}),
        TimeRules(options["zone"], options["time_unit"], options["time_format"]),
        Timestamps(options["stamp"], options["interval"]),
        separator=options["separator"],
        comma=options["decimal"] == ",",
        **{name: options.get(name, False) for name in ("percent", "assets", "new_assets", "last_wins", "skip_invalid")},
    )


def _understood(content: Loaded) -> Iterator[str]:
    """The range, the assets, the skipped columns, and the first rows as they will be stored."""
    rows = content.rows
    yield "Range: {} to {}".format(*(format_instant(from_unix(second)) for second in content.span))
    symbols = [content.symbols.get(asset_id, asset_id) for asset_id in rows["asset"].unique().cast(pl.String).sort()]
    if any(symbols):
        yield f"Assets: {_listed(symbols)}"
    if content.new:
        yield f"New assets: {_listed([f'{asset.id} ({asset.symbol})' for asset in content.new])}"
    beside = dict.fromkeys(column for file in content.files for column in file.mapping.beside)
    if beside:
        yield f"Skipped columns: {', '.join(beside)}. --candles imports them, at seconds within each interval."
    yield "First rows as stored:"
    values = decimal_strings(rows["value"].head(_FIRST))
    for asset_id, second, value in zip(rows["asset"], rows["observed_at"], values, strict=False):
        yield f"  {format_instant(from_unix(second))}  {value}  {asset_id}".rstrip()


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:SHOWN]) + (f" and {len(names) - SHOWN:,} more" if len(names) > SHOWN else "")


def _outcome(content: Loaded, settings: Settings, *, dry_run: bool) -> Iterator[str]:
    """The result of an import or a dry run, in words."""
    read, rejected, empty = (content.count(name) for name in ("read", "rejected", "empty"))
    values = f"{content.rows.height:,} value{'' if content.rows.height == 1 else 's'}"
    yield f"Read {read:,} {count_noun(read)}: {values}, {rejected:,} rejected, {empty:,} without a value."
    yield from (f"  {rejection}" for rejection in content.rejections)
    if rejected > len(content.rejections):
        yield f"  and {rejected - len(content.rejections):,} more"
    yield f"{'Nothing was written' if dry_run else 'Written'} into {store_location(settings)}."


@click.command("events")
@import_options()
def import_events_command(dry_run: bool, data_dir: Path | None, **options: Any) -> None:
    """Import events of addresses, all or nothing.

    FILES have columns of the view `events`: time, action, address, asset_id or symbol, amount_denom or units.
    Optional: usd, price, tx_hash, id, leg, account_index, contract and destination. Sums of loans and liquidations and
    the histories of addresses are updated. An event without usd is valued at the price of its time. An event that is
    already stored, by id or content, is corrected if its values differ. Example:

    \b
        analytics-service import events loans.csv --assets assets.csv
    """
    settings = load_settings(data_dir=data_dir)
    with closing(ProgressBars()) as bars, import_store(settings, dry_run=dry_run) as store:
        content = load_events(store, EventRequest(**options), datetime.now(UTC), bars)
        bars.close()
        for line in _described(content, has_prices=store is not None):
            click.echo(line)
        if not dry_run:
            content.write(cast(Store, store))
    click.echo("Nothing was written." if dry_run else f"Written into {store_location(settings)}.")


def _described(content: LoadedEvents, *, has_prices: bool) -> Iterator[str]:
    events, reader = content.events, content.reader
    first, last = (format_instant(pick(event.at for event in events)) for pick in (min, max))
    yield f"Range: {first} to {last}"
    actions = Counter(event.action for event in events)
    yield f"Actions: {', '.join(f'{count:,} {action}' for action, count in actions.most_common())}"
    unknown = sum(event.usd is None and event.amount is not None for event in events)
    if unknown and has_prices:
        yield f"Events without a USD value, because there is no price at their time: {unknown:,}"
    yield "First events as stored:"
    yield from (f"  {_shown(event, content.symbols[event.asset_id])}" for event in events[:_FIRST])
    new = reader.read - content.changed - content.known - reader.empty - reader.rejected
    counts = f"{new:,} new, {content.changed:,} changed, {content.known:,} known, {reader.rejected:,} rejected"
    yield f"Read {reader.read:,} {count_noun(reader.read)}: {counts}, {reader.empty:,} without an amount."
    yield from (f"  {rejection}" for rejection in reader.rejections)


def _shown(event: Event, symbol: str) -> str:
    usd = "unknown USD" if event.usd is None else f"{event.usd:f} USD"
    amount = "" if event.amount is None else f" {event.amount} denom units of"
    return f"{format_instant(event.at)}  {event.address}  {event.action}{amount} {symbol}, {usd}"


@click.group("import")
def import_group() -> None:
    """Import a history, events of addresses, or descriptions of assets from files.

    The README of the commands describes the shape of files; `example recipes` shows how to convert other files.
    Example:

    \b
        analytics-service import price prices.csv --asset ETH --new-assets --dry-run
    """


@import_group.command("assets")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@data_dir_option
def import_assets_command(file: Path, data_dir: Path | None) -> None:
    """Describe assets, including assets of --new-assets.

    FILE is CSV with the columns symbol, address or asset_id (such as native;uatom), decimals, and optionally name. If
    a source describes the same assets, its next snapshot of prices replaces these descriptions. Example:

    \b
        analytics-service import assets assets.csv
    """
    settings = load_settings(data_dir=data_dir)
    with open_store(settings) as store:
        changed, corrected = define_assets(store, file)
        first, head = (first_moment(store, "markets"), read_head(store, "markets")) if corrected else (None, None)
    click.echo(f"{changed:,} asset descriptions changed in {store_location(settings)}.")
    if first is not None and head is not None:
        span = f"--start {format_instant(from_unix(first))} --end {format_instant(from_unix(head.newest))}"
        click.echo(
            f"The decimals of {list_in_words(corrected)} have changed. Recompute the values stored with them: "
            f"`{follow_up(f'jobs recompute {span}')}`. To take from the source what was rejected because of them: "
            f"`{follow_up(f'jobs backfill all --again {span}')}`."
        )


import_group.add_command(import_events_command)
for _history in HISTORIES:
    import_group.add_command(history_command(_history))
