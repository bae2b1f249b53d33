"""Events of files in the store: their values, and the sums of loans and liquidations.

Sums are those of all events, so they are made anew from the first event of the import on. They go on from imported
values, which stay as they are.
"""

import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
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
from analytics_service.importing.publication import files_number, names_of, resumable, write_retries
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
from analytics_service.store.ledger import LedgerRow, new_version, read_state
from analytics_service.store.ownership import read_owner, take_ownership
from analytics_service.store.rewrite import staging

DATASET = "loans"


@dataclass(frozen=True, slots=True)
class EventRequest:
    """Files of events; `separator` is that of CSV, `assets` a file that describes assets."""

    files: Sequence[Path]
    assets: Path | None = None
    separator: str = ","
    skip_invalid: bool = False


@dataclass(frozen=True, slots=True)
class LoadedEvents:
    """The events of files, each once, with their values, and the new assets among theirs. `changed` counts those of
    which the store has other values, `known` rows whose event the store or an earlier row has as it is; `reader` has
    counted the others."""

    files: Sequence[Path]
    events: Sequence[Event]
    new: Sequence[Asset]
    symbols: Mapping[str, str]
    changed: int
    known: int
    reader: EventReader

    def write(self, store: Store) -> None:
        """Write the events, all at once. StoreUnavailable when ClickHouse stays away; then the same import may be
        repeated."""
        _publish(store, self)


def load_events(store: Store | None, request: EventRequest, at: datetime, reporter: Reporter) -> LoadedEvents:
    """Read all files; None means an empty store, `at` is the present instant.

    SourceRefused when the store holds simulated data (rule 8.7); ImportRefused when a file or a row differs from the
    shape, no event is left, or an id has two contents.
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
        of_file = [*reader.rows(table, reporter.advance)]
        for row, event in zip(of_file, with_ids(row.event for row in of_file), strict=True):
            row.event = event
        rows += of_file
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
    """The rows with prices and USD values. Those that cannot be stored are rejected."""
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
    """The event with its price and USD value: as the file says, or else by the price of its time, if there is one."""
    price = price if event.price is None else event.price
    if event.usd is not None or price is None or event.amount is None:
        return replace(event, price=price)
    return replace(event, price=price, usd=usd_value(event.amount, asset.decimals_denom, price))


def _distinct(rows: Sequence[EventRow], stored: Sequence[StoredEvent]) -> list[Event]:
    """One event of each id. ImportRefused if an id stands for different events, in the files or the store. Other values
    of a stored event that files have brought are a correction; those of a source's event would not count."""
    distinct: dict[str, EventRow] = {}
    for row in rows:
        first = distinct.setdefault(row.event.id, row).event
        if first != with_renamed_ids(row.event, first):
            raise _two_events(row, first)
    for known in stored:
        found = distinct.get(known.event.id)
        if found and not is_alike(found.event, known.event):
            if not has_id_of(found.event, known.event):
                raise _two_events(found, known.event)
            if EventOrigin.SOURCE in known.origin:
                advice = f"is the id of an event of the source, {_described(known.event)}, which counts; leave it out"
                raise found.table.refused(found.line, "id", found.event.id, advice)
    return [row.event for row in distinct.values()]


def _two_events(row: EventRow, other: Event) -> UserError:
    advice = (
        f"is the id of another event, {_described(other)}; write ids that tell all events apart, or leave the column "
        "out. A correction needs the transaction or the time of the event that it corrects"
    )
    return row.table.refused(row.line, "id", row.event.id, advice)


def _described(event: Event) -> str:
    tx = f" in {event.tx_hash[:20]}" if event.tx_hash else ""
    return f"{event.action} of {event.amount} at {format_instant(event.at)}{tx}"


@resumable()
def _publish(store: Store, loaded: LoadedEvents, wait: Callable[[float], bool | None] = time.sleep) -> None:
    """Write events, with everything that follows from them, and new assets: all at once, or nothing."""
    retry, events, files = write_retries(wait), loaded.events, loaded.files
    version = retry(lambda: new_version(store))
    retry(lambda: take_ownership(store, read_owner(store), ledger.IMPORTED))
    with staging(store, DATASET, version, retry, what="import", expected=len(events)) as staged:
        seconds = [unix_second(event.at) for event in events]
        head = retry(lambda: read_state(store, DATASET))
        first, last = min(seconds), max(*seconds, head.at if head else 0)
        changes = compare_events(events, retry(lambda: read_stored_events(store, events)), EventOrigin.FILE)
        sums = retry(lambda: _sums(store, changes, first))
        definitions = retry(lambda: changed_assets(store, loaded.new))
        run = LedgerRow(
            DATASET, last, "import", first, last, len(events), names_of(files), version, files_id=files_number(files)
        )
        for table, rows in {OBSERVATIONS: sums.added, EVENTS: changes_frame(changes), ASSETS: definitions}.items():
            retry(lambda table=table, rows=rows: staged.insert(table, with_version(rows, version)))  # type: ignore[misc]
        retry(lambda: staged.remove(sums.removed))
        rewrite.publish(store, staged, [run], retry)


def _sums(store: Store, changes: EventChanges, first: int) -> SumChanges:
    """What changes in sums from the first event of an import, or the first that it moves. ImportRefused says by how
    much one would fall, or that it would be too large."""
    first = min([first, *summed_seconds(changes)])
    ticks = {first: TOTALS}
    start = unsettled_from(store, first)
    try:
        return changed_sums(store, start, changes, ticks=ticks, refused=UserError)
    except OutOfRange as error:
        raise UserError(f"Sums of the events cannot be stored: {error} Correct the events' values.") from error
