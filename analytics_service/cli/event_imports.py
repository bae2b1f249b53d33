"""`import events`: loans, repayments, deposits, liquidations and all other actions of addresses."""

from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import click

from analytics_service.cli.context import ProgressBars, import_store, load_settings, store_location
from analytics_service.cli.import_options import import_options, plural
from analytics_service.clickhouse.connection import Store
from analytics_service.importing.events import EventRequest, LoadedEvents, load_events
from analytics_service.importing.files import find_files
from analytics_service.market.events import Event
from analytics_service.market.instants import shown

_FIRST = 3


@click.command("events")
@import_options()
def import_events_command(dry_run: bool, data_dir: Path | None, **options: Any) -> None:
    """Import events of addresses, all or nothing.

    FILES have columns of the view `events`: time, action, address, asset_id or symbol, amount_denom or units, and
    perhaps usd, price, tx_hash, id, leg, account_index, contract and destination. Sums of loans and liquidations and
    the histories of addresses follow. Without usd, the price at its time values an event. An event that is known, by
    its id or its content, is corrected if its values differ. Example:

    \b
        analytics-service import events loans.csv --assets assets.csv
    """
    settings, files = load_settings(data_dir=data_dir), find_files(options.pop("files"))
    with closing(ProgressBars()) as bars, import_store(settings, dry_run=dry_run) as store:
        content = load_events(store, EventRequest(files, **options), datetime.now(UTC), bars)
        bars.close()
        for line in _described(content, has_prices=store is not None):
            click.echo(line)
        if not dry_run:
            content.write(cast(Store, store))
    click.echo("Nothing was written." if dry_run else f"Written into {store_location(settings)}.")


def _described(content: LoadedEvents, *, has_prices: bool) -> Iterator[str]:
    """What files of events have, in words."""
    events, reader = content.events, content.reader
    yield f"Range: {shown(min(event.at for event in events))} to {shown(max(event.at for event in events))}"
    actions = Counter(event.action for event in events)
    yield f"Actions: {', '.join(f'{count:,} {action}' for action, count in actions.most_common())}"
    unknown = sum(event.usd is None and event.amount is not None for event in events)
    if unknown and has_prices:
        yield f"Of unknown USD value, because there is no price at their time: {unknown:,}"
    yield "First events as stored:"
    yield from (f"  {_shown(event, content.symbols[event.asset_id])}" for event in events[:_FIRST])
    new = reader.read - content.changed - content.known - reader.empty - reader.rejected
    counts = f"{new:,} new, {content.changed:,} changed, {content.known:,} known, {reader.rejected:,} left out as bad"
    yield f"Read {reader.read:,} {plural(reader.read)}: {counts}, {reader.empty:,} without an amount."
    yield from (f"  {rejection}" for rejection in reader.rejections)


def _shown(event: Event, symbol: str) -> str:
    usd = "unknown USD" if event.usd is None else f"{event.usd:f} USD"
    amount = "" if event.amount is None else f" {event.amount} denom units of"
    return f"{shown(event.at)}  {event.address[:20]}  {event.action}{amount} {symbol}, {usd}"
