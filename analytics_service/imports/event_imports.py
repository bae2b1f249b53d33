"""Imports of events from files: reads them all, then writes them with everything that follows from them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from analytics_service.imports.assets_file import listed_assets, notes_on_symbols, registered_assets
from analytics_service.imports.event_content import publish_events, require_no_jobs, valued
from analytics_service.imports.event_files import EventFile, EventRequest, open_events, read_events
from analytics_service.imports.names import AssetNames
from analytics_service.imports.opening import open_table
from analytics_service.imports.rejected import read_all
from analytics_service.market.assets import Asset
from analytics_service.market.events import Event
from analytics_service.store.connection import Store
from analytics_service.store.retries import Reporter

_CURE = "describe it in such a file, with the columns symbol, address and decimals"


@dataclass(frozen=True, slots=True)
class LoadedEvents:
    """The events of files, with their values, in the order of the files; the new assets among theirs, the number of
    rows that were rejected, and notes on what may not be meant."""

    files: Sequence[EventFile]
    events: Sequence[Event]
    new: Sequence[Asset]
    symbols: Mapping[str, str]
    rejected: int
    rejected_files: Sequence[Path]
    notes: Sequence[str]

    def write(self, store: Store) -> None:
        """Write the events, all at once. StoreUnavailable when ClickHouse stays away; then the same import may be
        repeated."""
        if self.events:
            publish_events(store, self.events, self.new, [file.table.path for file in self.files])


def load_events(
    store: Store | None, request: EventRequest, at: datetime, reporter: Reporter, *, keep_rejected: bool
) -> LoadedEvents:
    """Read all files; of several rows with the same id the last one counts. `at` is the present instant.

    SourceRefused when the store holds simulated data (rule 8.7), or events of a source; ImportRefused when a file can
    be read in two ways or not at all, or (without `skip_invalid`) a row is bad.
    """
    registered = registered_assets(store)
    if store is not None:
        require_no_jobs(store)
    listed = {asset.id: asset for asset in listed_assets(request.assets, registered)}
    assets = {**listed, **registered}
    names = AssetNames(listed.values(), registered.values(), add_new=False, cure=_CURE)
    files = [open_events(open_table(path, request.tables), request, at) for path in request.files]
    rejected_files = read_all(
        files,
        lambda file, reject: read_events(file, names, assets, reject, reporter.advance),
        reporter, skip=request.skip_invalid, keep=keep_rejected,
    )  # fmt: skip
    rejected = sum(file.rejected for file in files)
    last = {event.id: event for file in files for event in file.events}
    events = valued(store, list(last.values()), assets) if store is not None else list(last.values())
    used = {event.asset_id for event in events}
    new = [asset for asset in listed.values() if asset.id in used and asset.id not in registered]
    symbols = {asset_id: assets[asset_id].symbol for asset_id in used}
    notes = notes_on_symbols(new, registered.values())
    return LoadedEvents(files, events, new, symbols, rejected, rejected_files, notes)
