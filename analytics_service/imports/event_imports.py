"""Imports of events from files: reads them all, then writes them with everything that follows from them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from analytics_service.clickhouse.connection import Store
from analytics_service.clickhouse.retries import Reporter
from analytics_service.errors import ImportRefused
from analytics_service.imports.assets_file import listed_assets, notes_on_symbols, registered_assets
from analytics_service.imports.event_content import publish_events, valued
from analytics_service.imports.event_files import EventFile, EventRequest, open_events, read_events
from analytics_service.imports.names import AssetNames
from analytics_service.imports.opening import open_table
from analytics_service.imports.rejected import read_all, require_rows
from analytics_service.market.assets import Asset
from analytics_service.market.events import Event
from analytics_service.market.instants import shown
from analytics_service.store.datasets.known_events import KnownEvent, compare_filed, content_id, read_of, respelled

_CURE = "describe it in such a file, with the columns symbol, address and decimals"


@dataclass(frozen=True, slots=True)
class LoadedEvents:
    """The events of files, with their values, in the order of the files; the new assets among theirs, the numbers of
    rows that were read, whose events were known already, that were rejected, and that are left out because they are
    without an amount, and notes on what may not be meant."""

    files: Sequence[EventFile]
    events: Sequence[Event]
    new: Sequence[Asset]
    symbols: Mapping[str, str]
    read: int
    known: int
    rejected: int
    empty: int
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

    SourceRefused when the store holds simulated data (rule 8.7); ImportRefused when a file can be read in two ways or
    not at all, no row is left, an id has two contents, or (without `skip_invalid`) a row is bad.
    """
    registered = registered_assets(store)
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
    distinct = _distinct(rows)
    stored = read_of(store, distinct) if store is not None else []
    _require_same(distinct, stored)
    known = read - rejected - len(compare_filed(stored, distinct).new)
    events = valued(store, distinct, assets) if store is not None else distinct
    used = {event.asset_id for event in events}
    new = [asset for asset in listed.values() if asset.id in used and asset.id not in described]
    symbols = {asset_id: assets[asset_id].symbol for asset_id in used}
    notes, empty = notes_on_symbols(new, registered.values()), sum(file.empty for file in files)
    return LoadedEvents(files, events, new, symbols, read, known, rejected, empty, rejected_files, notes)


def _distinct(events: Sequence[Event]) -> list[Event]:
    """One event of each id. ImportRefused if an id stands for different events."""
    distinct: dict[str, Event] = {}
    for event in events:
        if (same := distinct.setdefault(event.id, event)) != respelled(event, same):
            raise _two_events(same, event)
    return list(distinct.values())


def _require_same(events: Sequence[Event], stored: Sequence[KnownEvent]) -> None:
    """ImportRefused if an id stands for another event in the store. Its time may be another, and so may what it was
    worth, which depends on what prices were known."""
    by_id = {event.id: event for event in events}
    for known in stored:
        event = by_id.get(known.event.id)
        if event and content_id(respelled(event, known.event)) != content_id(replace(known.event, at=event.at)):
            raise _two_events(known.event, event)


def _two_events(one: Event, other: Event) -> ImportRefused:
    return ImportRefused(
        f"The id {one.id[:80]!r} stands for two events, {_shown(one)} and {_shown(other)}, so nothing was written. "
        "Name a column that tells all events apart with --column id=COLUMN, or import without ids."
    )


def _shown(event: Event) -> str:
    tx = f" in {event.tx_hash[:20]}" if event.tx_hash else ""
    return f"{event.action} of {event.amount} at {shown(event.at)}{tx}"
