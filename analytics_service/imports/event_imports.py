"""Imports of events from files: reads them all, then writes them with everything that follows from them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from analytics_service.imports.assets_file import as_registered, notes_on_symbols, read_assets_file
from analytics_service.imports.event_content import publish_events, require_no_jobs, valued
from analytics_service.imports.event_files import AmountUnit, EventFile, EventRules, open_events, read_events
from analytics_service.imports.names import AssetNames
from analytics_service.imports.opening import open_table
from analytics_service.imports.rejected import rejections
from analytics_service.imports.times import TimeRules
from analytics_service.market.assets import Asset
from analytics_service.market.events import Action, Event
from analytics_service.store.admission import require_admitted
from analytics_service.store.assets import read_assets
from analytics_service.store.connection import Store
from analytics_service.store.ledger import IMPORTED
from analytics_service.store.progress import Reporter

_CURE = "describe it in such a file, with the columns symbol, address and decimals"


@dataclass(frozen=True, slots=True)
class EventRequest:
    """Files of events to import, and what the caller says about them: names of columns by role, what words for actions
    mean, and the unit of amounts. `assets` is an assets file."""

    files: Sequence[Path]
    columns: Mapping[str, str] = field(default_factory=dict)
    actions: Mapping[str, Action] = field(default_factory=dict)
    times: TimeRules = field(default_factory=TimeRules)
    unit: AmountUnit | None = None
    assets: Path | None = None
    skip_invalid: bool = False


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
    if store is not None:
        require_admitted(store, IMPORTED)
        require_no_jobs(store)
    registered = read_assets(store) if store is not None else {}
    described = read_assets_file(request.assets) if request.assets else []
    listed = {asset.id: asset for asset in (as_registered(asset, registered) for asset in described)}
    assets = {**listed, **registered}
    names = AssetNames(listed.values(), registered.values(), add_new=False, cure=_CURE)
    rules = EventRules(request.columns, request.actions, request.times, request.unit, at)
    files = [open_events(open_table(path), rules) for path in request.files]
    with rejections([file.table for file in files], skip=request.skip_invalid, keep=keep_rejected) as rejects:
        for index, file in enumerate(files):
            reporter.stage(f"Reading {file.table.path.name}", file.table.size)
            read_events(file, names, assets, rejects.of(file.table, index), reporter.advance)
        rejected = sum(file.rejected for file in files)
        rejected_files = rejects.finish(sum(file.read for file in files), rejected)
    last = {event.id: event for file in files for event in file.events}
    events = valued(store, list(last.values()), assets) if store is not None else list(last.values())
    used = {event.asset_id for event in events}
    new = [asset for asset in listed.values() if asset.id in used and asset.id not in registered]
    symbols = {asset_id: assets[asset_id].symbol for asset_id in used}
    notes = notes_on_symbols(new, registered.values())
    return LoadedEvents(files, events, new, symbols, rejected, rejected_files, notes)
