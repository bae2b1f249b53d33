"""What an import has understood of its files, and what came of it, in words."""

import re
from collections.abc import Iterator, Sequence

import click
import polars as pl

from analytics_service.cli.context import store_location
from analytics_service.config.settings import Settings
from analytics_service.history.formats.base import decimal_strings
from analytics_service.imports.history_files import Loaded, Summary
from analytics_service.imports.layout import TableFields
from analytics_service.imports.reading import ReadFile
from analytics_service.imports.rejected import SHOWN, with_rest
from analytics_service.market.assets import Asset
from analytics_service.market.instants import instant, shown

_ROWS = 3


def understood(content: Loaded) -> Iterator[str]:
    """The format, columns, units and zone of each file; then the range, the assets, and the first rows as they will be
    stored. Files that were read in the same way are named together."""
    alike: dict[tuple[str, ...], list[str]] = {}
    for file in content.files:
        alike.setdefault(tuple(_reading(file)), []).append(file.table.path.name)
    for lines, names in alike.items():
        yield f"{_listed(names, len(names))}:"
        yield from lines
    rows = content.rows
    if not rows.height:
        return
    first, last = rows.select(first=pl.col("observed_at").min(), last=pl.col("observed_at").max()).row(0)
    yield f"Range: {shown(instant(first))} to {shown(instant(last))}"
    symbols = [content.symbols.get(asset_id, asset_id) for asset_id in rows["asset"].unique().cast(pl.String).sort()]
    if any(symbols):
        yield f"Assets: {_listed(symbols, len(symbols))}"
    new = [f"{asset.id} ({asset.symbol}, {_decimals(asset)})" for asset in content.new]
    if new:
        yield f"New assets: {_listed(new, len(new))}"
    yield from content.notes
    yield "First rows as stored:"
    yield from _first_rows(rows.head(_ROWS))


def _reading(file: ReadFile) -> Iterator[str]:
    table, layout = file.table, file.layout
    yield f"  format: {table.format}"
    kinds = ", ".join(file.kinds)
    yield f"  time: column {table.title(layout.time)!r}, {kinds or 'no rows'}{file.zone}"
    yield from _held(file)
    yield f"  value: {_values(file)}"
    yield f"  asset: {_asset(layout, file)}"
    if layout.ignored:
        ignored = [name or "a column without a name" for name in layout.ignored]
        yield f"  ignored: {_listed(ignored, len(ignored))}"


def _values(file: ReadFile) -> str:
    titles = [file.table.title(field) for _, fields in file.layout.values for field in fields.values()]
    column = f"column {titles[0]!r}" if len(titles) == 1 else f"{len(titles)} columns"
    return f"{column}{file.notation}"


def _asset(layout: TableFields, file: ReadFile) -> str:
    if layout.asset is not None:
        return f"column {file.table.title(layout.asset)!r}"
    names = [name for name, _ in layout.values if name is not None]
    return _listed(names, len(names)) if names else "none: the sum over all assets"


def _decimals(asset: Asset) -> str:
    return f"{asset.decimals_denom} decimals" if asset.is_described else "unknown decimals"


def _held(file: ReadFile) -> Iterator[str]:
    """When values hold, where that is not their time, and what is left out of candles."""
    if file.layout.opening:
        yield f"  beginning: column {file.table.title(file.layout.opening)!r}"
    if file.interval and file.stamp == "begin":
        yield f"  held: from the last second of intervals of {re.sub('m$', 'min', file.interval)} that begin then"
    elif not file.is_clocked:
        hint = "; --stamp begin is for dates that name the beginning of a week or month" if file.apart else ""
        yield f"  held: from the last second of each date{hint}"
    left = [file.table.title(field) for field in file.layout.candle.values()]
    if left and not file.rules.choice.candles:
        yield f"  left out: {', '.join(left)}; --candles brings them in, at seconds within each interval"


def _listed(names: Sequence[str], count: int) -> str:
    shown_names = ", ".join(names[:SHOWN])
    return shown_names if count <= SHOWN else f"{shown_names} and {count - SHOWN:,} more"


def _first_rows(rows: pl.DataFrame) -> Iterator[str]:
    columns = [decimal_strings(rows[name]).fill_null("-") for name in rows.columns[2:]]
    for asset_id, second, *values in zip(rows["asset"], rows["observed_at"], *columns, strict=True):
        yield f"  {shown(instant(second))}  {'  '.join(values)}  {asset_id}".rstrip()


def report(summary: Summary, settings: Settings, dry_run: bool) -> None:
    """Print the result of an import."""
    click.echo(_outcome(summary, settings, dry_run))
    for line in _conflicts(summary.kept):
        click.echo(line)
    for path in summary.rejected_files:
        click.echo(f"Rejected rows are in {path}.")


def _outcome(summary: Summary, settings: Settings, dry_run: bool) -> str:
    """The result of an import, or of its dry run, in words."""
    if dry_run:
        rows = f"would write {summary.written:,} new, replace {summary.replaced:,} and reject {summary.rejected:,}"
        where = f"Nothing was written. Without --dry-run the import writes into {store_location(settings)}"
    else:
        rows = f"{summary.written:,} new, {summary.replaced:,} replaced, {summary.rejected:,} rejected"
        where = f"Written into {store_location(settings)}"
    rows += f"; {summary.empty:,} without a value are left out" if summary.empty else ""
    brought = ", ".join(_counted(history, count) for history, count in summary.observations.items() if count)
    return f"Read {summary.read:,} {plural(summary.read)}: {rows}.\n" + (
        f"{where}: {brought}." if brought else "Nothing was written."
    )


def plural(count: int) -> str:
    """The unit of a number of rows."""
    return "row" if count == 1 else "rows"


def _counted(history: str, count: int) -> str:
    """A number of observations in words, such as `2 values of lend rate`."""
    return f"{count:,} value{'' if count == 1 else 's'} of {history.replace('_', ' ')}"


def _conflicts(assets: Sequence[Asset]) -> Iterator[str]:
    """Lines about assets that the assets file describes differently from the store, which keeps its descriptions."""
    if assets:
        yield "The assets file describes these assets differently from the store, which keeps its descriptions:"
    named = [f"  {asset.id}: {asset.symbol}, {asset.decimals_denom} decimals" for asset in assets[:SHOWN]]
    yield from with_rest(named, len(assets))
