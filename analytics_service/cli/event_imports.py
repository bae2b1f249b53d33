"""`import events`: loans, repayments, deposits and liquidations of addresses."""

from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import click

from analytics_service.cli.context import ProgressBars, import_store, load_settings, store_location
from analytics_service.cli.import_command import import_options, table_rules
from analytics_service.cli.import_report import plural
from analytics_service.cli.options import value_type
from analytics_service.clickhouse.connection import Store
from analytics_service.imports.event_files import ROLES, EventRequest
from analytics_service.imports.event_imports import LoadedEvents, load_events
from analytics_service.imports.files import expanded
from analytics_service.imports.opening import within_memory
from analytics_service.imports.times import TimeRules
from analytics_service.market.events import Action, Event
from analytics_service.market.instants import shown

_FIRST = 3


def _pair(text: str) -> tuple[str, str]:
    name, separator, value = text.partition("=")
    if not separator or not name or not value:
        raise ValueError("must look like name=value")
    return name, value


def _action(text: str) -> tuple[str, Action]:
    """A word and what it means; the empty word stands for all events."""
    word, action = _pair(text) if "=" in text else ("", text)
    if action not in set(Action):
        raise ValueError(f"must name one of {', '.join(Action)}, perhaps with WORD= before it")
    return word.lower().replace(" ", "_").replace("-", "_"), Action(action)


@click.command("events")
@import_options(
    click.option(
        "--column", "roles", type=value_type(_pair), multiple=True, metavar="ROLE=COLUMN",
        help=f"Column of a role: {', '.join(ROLES)}.",
    ),
    click.option(
        "--action", "actions", type=value_type(_action), multiple=True, metavar="[WORD=]ACTION",
        help="What a word for an action means, such as deposit=lend, or what all events are.",
    ),
    click.option(
        "--amounts", "unit", type=click.Choice(["units", "denom"]), help="Whether amounts are in standard units."
    ),
)  # fmt: skip
def import_events_command(dry_run: bool, data_dir: Path | None, **options: Any) -> None:
    """Import events of addresses, all or nothing: loans, repayments, deposits, liquidations and others.

    FILES have the columns time, address, action, asset and amount, and may have usd, tx_hash, id, account_index and
    leg; exports of `events` are read as they are. The histories of loans and liquidations and the histories of
    addresses follow. Without a USD value, the price at the time values an event. Importing an event again, with the
    same id or the same content, changes nothing; an id of two events is refused. An event that a source lists, too, is
    one event. Example:

    \b
        analytics-service import events loans.csv --amounts units --action deposit=lend
    """
    settings = load_settings(data_dir=data_dir)
    request = _request(**options)
    with closing(ProgressBars()) as bars, import_store(settings, dry_run=dry_run) as store:
        content = load_events(store, request, datetime.now(UTC), bars, keep_rejected=not dry_run)
        bars.close()
        for line in _understood(content, has_prices=store is not None):
            click.echo(line)
        if not dry_run:
            content.write(cast(Store, store))
    new = content.read - content.known - content.rejected
    counts = f"{new:,} new, {content.known:,} known, {content.rejected:,} rejected"
    counts += f"; {content.empty:,} without an amount are left out" if content.empty else ""
    click.echo(f"Read {content.read + content.empty:,} {plural(content.read + content.empty)}: {counts}.")
    click.echo("Nothing was written." if dry_run else f"Written into {store_location(settings)}.")
    for path in content.rejected_files:
        click.echo(f"Rejected rows are in {path}.")


def _request(files: tuple[str, ...], **options: Any) -> EventRequest:
    tables = table_rules(options, dict(options["roles"]).get("time"))
    return EventRequest(
        within_memory(expanded(files), tables),
        dict(options["roles"]),
        {word: action for word, action in options["actions"] if word},
        dict(options["actions"]).get(""),
        TimeRules(options["zone"], options["time_unit"], options["date_order"]),
        options["unit"],
        options["assets"],
        options["skip_invalid"],
        tables=tables,
    )


def _understood(content: LoadedEvents, *, has_prices: bool) -> Iterator[str]:
    """What was understood of files of events, in words."""
    for file in content.files:
        columns = (f"{role}: {file.table.title(name)}" for role, name in file.fields.items())
        yield f"{file.table.path.name}: {file.table.format}"
        yield f"  columns: {', '.join(columns)}"
        if file.ignored:
            yield f"  ignored: {', '.join(file.ignored)}"
        yield f"  time: {', '.join(file.kinds) or 'no rows'}"
        yield f"  amounts: {'standard units' if file.unit == 'units' else 'denom units'}"
    yield from content.notes
    events = content.events
    if not events:
        return
    yield f"Range: {shown(min(event.at for event in events))} to {shown(max(event.at for event in events))}"
    actions = Counter(event.action for event in events)
    yield f"Actions: {', '.join(f'{count:,} {action}' for action, count in actions.most_common())}"
    unknown = sum(event.usd is None and event.amount is not None for event in events)
    if unknown and has_prices:
        yield f"Of unknown USD value, because there is no price at their time: {unknown:,}"
    yield "First events as stored:"
    for event in events[:_FIRST]:
        yield f"  {_shown(event, content.symbols[event.asset_id])}"


def _shown(event: Event, symbol: str) -> str:
    usd = "unknown USD" if event.usd is None else f"{event.usd:f} USD"
    amount = "" if event.amount is None else f" {event.amount} denom units of"
    return f"{shown(event.at)}  {event.address[:20]}  {event.action}{amount} {symbol}, {usd}"
