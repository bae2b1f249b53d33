"""Imports events from files, with their values and the sums of loans and liquidations.

Sums are over all events, so they are recomputed from the import's first event on. They continue from imported sums,
which stay unchanged.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal
from pathlib import Path

from analytics_service.clickhouse.columns import with_version
from analytics_service.clickhouse.connection import Store
from analytics_service.clickhouse.errors import Reporter
from analytics_service.errors import OutOfRange, UserError
from analytics_service.importing.asset_names import AssetNames
from analytics_service.importing.assets import listed_assets, registered_assets
from analytics_service.importing.event_rows import EventReader, EventRow, Fault, open_events, storable
from analytics_service.importing.publication import names_of, resumable
from analytics_service.market.assets import Asset
from analytics_service.market.decimals import usd_value
from analytics_service.market.event_changes import (
    EventChanges,
    EventOrigin,
    StoredEvent,
    compare_events,
    has_id_of,
    is_alike,
    with_ids,
    with_renamed_ids,
)
from analytics_service.market.events import Event
from analytics_service.market.instants import format_instant, from_unix, unix_second
from analytics_service.store import ledger, rewrite
from analytics_service.store.datasets.assets import ASSETS, changed_assets
from analytics_service.store.datasets.events import EVENTS, changes_frame, read_stored_events
from analytics_service.store.datasets.observations import OBSERVATIONS, read_last_prices
from analytics_service.store.datasets.sums import TOTALS, SumChanges, changed_sums, summed_seconds, unsettled_from
from analytics_service.store.ledger import LedgerRow, new_version, read_head
from analytics_service.store.ownership import read_owner, take_ownership
from analytics_service.store.rewrite import staging

DATASET = "loans"


@dataclass(frozen=True, slots=True)
class EventRequest:
    """Files of events; `separator` is for CSV, `assets` is a file that describes assets."""

    files: Sequence[Path]
    assets: Path | None = None
    separator: str = ","
    skip_invalid: bool = False


@dataclass(frozen=True, slots=True)
class LoadedEvents:
    """The events of files, each once, with their values, and new assets. `changed` counts events with other values in
    the store, `known` counts rows whose event the store or an earlier row already has, `reader` counts other rows."""

    files: Sequence[Path]
    events: Sequence[Event]
    new: Sequence[Asset]
    symbols: Mapping[str, str]
    changed: int
    known: int
    reader: EventReader

    def write(self, store: Store) -> None:
        """Write the events at once. StoreUnavailable if ClickHouse stays away; the import can then be repeated."""
        _publish(store, self)


def load_events(store: Store | None, request: EventRequest, at: datetime, reporter: Reporter) -> LoadedEvents:
    """Read all files. A `store` of None is empty; `at` is the present instant.

    SourceMismatch if the store has simulated data (rule 8.7, one source). UserError if a file or a row is invalid, no
    event remains, or two events have one id.
    """
    registered = registered_assets(store)
    listed = {asset.id: asset for asset in listed_assets(request.assets, registered)}
    described = {asset_id: asset for asset_id, asset in registered.items() if asset.is_described}
    assets = {**registered, **listed, **described}
    names = AssetNames(listed.values(), registered.values(), add_new=False, cure="describe it with --assets")
    reader = EventReader(names, assets, at, request.skip_invalid)
    rows: list[EventRow] = []
    for table in [open_events(path, request.separator) for path in request.files]:
        reporter.stage(f"Reading {table.path.name}", table.size)
        file_rows = [*reader.rows(table, reporter.advance)]
        for row, event in zip(file_rows, with_ids(row.event for row in file_rows), strict=True):
            row.event = event
        rows += file_rows
    rows = _valued_rows(rows, store, reader)
    if not rows:
        raise UserError("\n".join([f"{request.files[0]}: there are no events to import.", *reader.rejections]))
    stored = read_stored_events(store, [row.event for row in rows]) if store is not None else []
    events = _distinct(rows, stored)
    used = {event.asset_id for event in events}
    new = [asset for asset in listed.values() if asset.id in used and asset.id not in described]
    symbols = {asset_id: assets[asset_id].symbol for asset_id in used}
    changes = compare_events(events, stored, EventOrigin.FILE)
    known = len(rows) - len(changes.new) - changes.altered
    return LoadedEvents(request.files, events, new, symbols, changes.altered, known, reader)


def _valued_rows(rows: Sequence[EventRow], store: Store | None, reader: EventReader) -> list[EventRow]:
    """The rows with prices and USD values. Rejects rows that cannot be stored."""
    seconds: dict[str, set[int]] = defaultdict(set)
    for row in rows:
        seconds[row.event.asset_id].add(unix_second(row.event.at))
    prices = {
        (asset_id, second): price.usd
        for asset_id, at in seconds.items()
        if store
        for second, price in read_last_prices(store, [asset_id], [*at])[asset_id].items()
        if from_unix(second) - price.observed_at <= store.price_max_age
    }
    valued = []
    for row in rows:
        asset_id, second = row.event.asset_id, unix_second(row.event.at)
        try:
            row.event = storable(_valued(row.event, prices.get((asset_id, second)), reader.assets[asset_id]))
            valued.append(row)
        except Fault as fault:
            reader.reject(row.table, row.line, fault)
    return valued


def _valued(event: Event, price: Decimal | None, asset: Asset) -> Event:
    """The event with its price and USD value, from the file or else from the price of its time."""
    price = price if event.price is None else event.price
    if event.usd is not None or price is None or event.amount is None:
        return replace(event, price=price)
    return replace(event, price=price, usd=usd_value(event.amount, asset.decimals_denom, price))


def _distinct(rows: Sequence[EventRow], stored: Sequence[StoredEvent]) -> list[Event]:
    """One event for each id. UserError if an id stands for different events in the files or the store. Different values
    of a stored event correct an imported event, but are an error for a source's event."""
    distinct: dict[str, EventRow] = {}
    for row in rows:
        first = distinct.setdefault(row.event.id, row).event
        if first != with_renamed_ids(row.event, first):
            raise _two_events(row, first)
    for known in stored:
        row_of_id = distinct.get(known.event.id)
        if row_of_id and not is_alike(row_of_id.event, known.event):
            if not has_id_of(row_of_id.event, known.event):
                raise _two_events(row_of_id, known.event)
            if EventOrigin.SOURCE in known.origin:
                advice = f"is the id of an event of the source, {_described(known.event)}; remove the row"
                raise row_of_id.table.refused(row_of_id.line, "id", row_of_id.event.id, advice)
    return [row.event for row in distinct.values()]


def _two_events(row: EventRow, other: Event) -> UserError:
    advice = (
        f"is the id of another event, {_described(other)}; give each event its own id, or remove the column. A "
        "correction needs the transaction or the time of the event that it corrects"
    )
    return row.table.refused(row.line, "id", row.event.id, advice)


def _described(event: Event) -> str:
    tx = f" in {event.tx_hash[:20]}" if event.tx_hash else ""
    return f"{event.action} of {event.amount} at {format_instant(event.at)}{tx}"


@resumable()
def _publish(store: Store, loaded: LoadedEvents) -> None:
    """Write events, their sums and new assets, all or nothing."""
    events, files, version = loaded.events, loaded.files, new_version(store)
    take_ownership(store, read_owner(store), ledger.IMPORTED)
    with staging(store, DATASET, version, what="import", expected=len(events)) as staged:
        seconds = [unix_second(event.at) for event in events]
        head = read_head(store, DATASET)
        first, last = min(seconds), max(*seconds, head.at if head else 0)
        changes = compare_events(events, read_stored_events(store, events), EventOrigin.FILE)
        sums, definitions = _sums(store, changes, first), changed_assets(store, loaded.new)
        commit = LedgerRow(
            DATASET, last, "import", first, last, len(events), names_of(files), version, import_id=version
        )
        for table, rows in {OBSERVATIONS: sums.added, EVENTS: changes_frame(changes), ASSETS: definitions}.items():
            staged.insert(table, with_version(rows, version))
        staged.remove(sums.removed)
        rewrite.publish(store, staged, [commit])


def _sums(store: Store, changes: EventChanges, first: int) -> SumChanges:
    """The changes of sums from the first imported or moved event on. UserError if a sum would decrease, or would be too
    large."""
    first = min([first, *summed_seconds(changes)])
    ticks = {first: TOTALS}
    start = unsettled_from(store, first)
    try:
        return changed_sums(store, start, changes, ticks=ticks)
    except OutOfRange as error:
        raise UserError(f"Sums of the events cannot be stored: {error} Correct the events' values.") from error
