"""Imports of events from files: reads them all, then writes them with everything that follows from them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from analytics_service.errors import ImportRefused
from analytics_service.imports.assets_file import listed_assets, notes_on_symbols, registered_assets
from analytics_service.imports.event_content import publish_events, require_no_jobs, valued
from analytics_service.imports.event_files import EventFile, EventRequest, open_events, read_events
from analytics_service.imports.names import AssetNames
from analytics_service.imports.opening import open_table
from analytics_service.imports.rejected import read_all, require_rows
from analytics_service.market.assets import Asset
from analytics_service.market.events import Event
from analytics_service.market.instants import shown, unix_second
from analytics_service.store.connection import Store
from analytics_service.store.events import read_events_since
from analytics_service.store.retries import Reporter

_CURE = "describe it in such a file, with the columns symbol, address and decimals"


@dataclass(frozen=True, slots=True)
class LoadedEvents:
    """The events of files, with their values, in the order of the files; the new assets among theirs, the numbers of
    rows that were read, whose events were known already, and that were rejected, and notes on what may not be meant."""

    files: Sequence[EventFile]
    events: Sequence[Event]
    new: Sequence[Asset]
    symbols: Mapping[str, str]
    read: int
    known: int
    rejected: int
    rejected_files: Sequence[Path]
    notes: Sequence[str]

    def write(self, store: Store) -> None:
        """Write the events, all at once. StoreUnavailable when ClickHouse stays away; then the same import may be
        repeated."""
        publish_events(store, self.events, self.new, [file.table.path for file in self.files])


def load_events(
    store: Store | None, request: EventRequest, at: datetime, reporter: Reporter, *, keep_rejected: bool
) -> LoadedEvents:
    """Read all files; rows with the same id are one event. `at` is the present instant.

    SourceRefused when the store holds simulated data (rule 8.7), or events of a source; ImportRefused when a file can
    be read in two ways or not at all, no row is left, an id has two contents, or (without `skip_invalid`) a row is bad.
    """
    registered = registered_assets(store)
    if store is not None:
        require_no_jobs(store)
    listed = {asset.id: asset for asset in listed_assets(request.assets, registered)}
    described = {asset_id: asset for asset_id, asset in registered.items() if asset.is_described}
    assets = {**registered, **listed, **described}
    names = AssetNames(listed.values(), registered.values(), add_new=False, cure=_CURE)
    files = [open_events(open_table(path, request.tables), request, at) for path in request.files]
    rejected_files = read_all(
        files,
        lambda file, reject: read_events(file, names, assets, reject, reporter.advance),
        reporter, skip=request.skip_invalid, keep=keep_rejected,
    )  # fmt: skip
    rows = [event for file in files for event in file.events]
    require_rows(files, len(rows), rejected_files)
    read, rejected = sum(file.read for file in files), sum(file.rejected for file in files)
    stored = _stored(store, rows)
    merged = {_id_now(event): event_id for event_id, event in stored.items()}
    rows = [replace(event, id=merged.get(event.id, event.id)) for event in rows]
    distinct = _distinct(stored, rows)
    known = read - rejected - sum(event.id not in stored for event in distinct)
    events = valued(store, distinct, assets) if store is not None else distinct
    used = {event.asset_id for event in events}
    new = [asset for asset in listed.values() if asset.id in used and asset.id not in described]
    symbols = {asset_id: assets[asset_id].symbol for asset_id in used}
    notes = notes_on_symbols(new, registered.values())
    return LoadedEvents(files, events, new, symbols, read, known, rejected, rejected_files, notes)


def _stored(store: Store | None, events: Sequence[Event]) -> Mapping[str, Event]:
    """The stored events of the addresses of events, by id."""
    addresses = sorted({event.address for event in events})
    return {event.id: event for event in read_events_since(store, addresses, 0)} if store is not None else {}


def _id_now(event: Event) -> str:
    """The id that a file without ids gives an event now: it names the asset, whose own id a merge may have changed."""
    second, *parts = event.id.split(";")
    is_made = second == f"{unix_second(event.at)}" and len(parts) > 6
    return ";".join((second, *parts[:4], event.asset_id, *parts[6:])) if is_made else event.id


def _distinct(stored: Mapping[str, Event], events: Sequence[Event]) -> list[Event]:
    """One event of each id. ImportRefused if an id stands for different events, in the files or in the store."""
    distinct: dict[str, Event] = {}
    for event in events:
        same = distinct.setdefault(event.id, event)
        before = stored.get(event.id)
        # What an event was worth depends on what prices were known.
        if before is not None and before != replace(event, usd=before.usd, price=before.price):
            same = before
        if same != event:
            raise ImportRefused(
                f"The id {event.id[:80]!r} stands for two events, {_shown(same)} and {_shown(event)}, so nothing was "
                "written. Name a column that tells all events apart with --column id=COLUMN, or import without ids."
            )
    return list(distinct.values())


def _shown(event: Event) -> str:
    tx = f" in {event.tx_hash[:20]}" if event.tx_hash else ""
    return f"{event.action} of {event.amount} at {shown(event.at)}{tx}"
