"""Imports of one history from files as people have them: any usual format, columns found by name, times in any unit."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import polars as pl

from analytics_service.clickhouse.connection import Store
from analytics_service.clickhouse.retries import Reporter
from analytics_service.errors import ImportRefused
from analytics_service.imports.assets_file import differ, listed_assets, notes_on_symbols, registered_assets
from analytics_service.imports.disagreeing import disagreement
from analytics_service.imports.falling import first_fall, refusal
from analytics_service.imports.layout import lay_out
from analytics_service.imports.merging import merged
from analytics_service.imports.names import AssetNames
from analytics_service.imports.opening import open_table
from analytics_service.imports.presets import Preset
from analytics_service.imports.reading import HistoryRequest, ReadFile, read_history, require_dollars
from analytics_service.imports.rejected import read_all, require_rows
from analytics_service.market.assets import Asset
from analytics_service.market.instants import instant, shown, unix_second
from analytics_service.store.datasets.observations import read_series
from analytics_service.store.ledger import read_state


@dataclass(frozen=True, slots=True)
class Summary:
    """The result of an import, or of trying it, in rows: read = written + replaced + rejected + empty, but of candles.

    `written` counts rows whose asset and second were not in the store; `replaced` counts rows that replaced a row in
    the store or an earlier row of the import. `observations` counts the import's observations by history, as the ledger
    and `status` do: a row of a file of rates has up to two. `rejected_files` contain the rejected rows, a file for each
    input. `kept` are the assets whose description in the assets file differs from that in the store, which is kept.
    """

    read: int
    written: int
    replaced: int
    rejected: int
    observations: Mapping[str, int]
    rejected_files: tuple[Path, ...] = ()
    kept: tuple[Asset, ...] = ()
    empty: int = 0


@dataclass(frozen=True, slots=True)
class Loaded:
    """The content of files, and how each was read: the merged good rows, the assets that they bring, and those that
    keep the store's description although the assets file has a different one. `symbols` are those of the rows' assets,
    by id, `notes` say what may not be meant, and `offered` are the rows before they were merged, four for each
    candle."""

    preset: Preset
    files: Sequence[ReadFile]
    rows: pl.DataFrame
    rejected_files: Sequence[Path]
    new: Sequence[Asset]
    kept: Sequence[Asset]
    symbols: Mapping[str, str]
    notes: Sequence[str]
    offered: int

    def summary(self, already_stored: int) -> Summary:
        """The summary, given the number of rows that the store already had."""
        read, rejected = sum(file.read for file in self.files), sum(file.rejected for file in self.files)
        written = self.rows.height - already_stored
        observations = self.preset.observations(self.rows)
        files, kept = tuple(self.rejected_files), tuple(self.kept)
        empty = sum(file.empty for file in self.files)
        return Summary(read + empty, written, self.offered - written, rejected, observations, files, kept, empty)


def load_history(
    store: Store | None, request: HistoryRequest, at: datetime, reporter: Reporter, *, keep_rejected: bool
) -> Loaded:
    """Read all files; None means an empty store. Of ticks of an asset within a second the last one wins, over all
    files in their order. `at` is the present instant: observations more than a day later are refused.

    Writes only files of rejected rows, with `keep_rejected`. SourceRefused when the store holds simulated data (rule
    8.7), ImportRefused when a file can be read in two ways or not at all, a cumulative history would
    fall, or (without `skip_invalid`) a row is bad.
    """
    preset, registered = request.preset, registered_assets(store)
    listed = listed_assets(request.assets, registered)
    kept = [stored for asset in listed if (stored := registered.get(asset.id)) and differ(asset, stored)]
    names = AssetNames(listed, registered.values(), add_new=request.new_assets, pairs=request.is_price)
    same: dict[str, tuple[ReadFile, tuple[int, str]]] = {}
    tables = (open_table(path, request.tables) for path in request.files)
    laid_out = ((table, lay_out(table, preset, request.choice.of(table.path))) for table in tables)
    files = [ReadFile(table, layout, request, at, named=same) for table, layout in laid_out]
    rejected_files = read_all(
        files,
        lambda file, reject: read_history(file, names, reject, reporter.advance),
        reporter, skip=request.skip_invalid, keep=keep_rejected,
    )  # fmt: skip
    offered = sum(block.height for file in files for block in file.good)
    rows, found = merged(_with_ids(files, names.ids), _begun(store, preset))
    if found and not request.last_wins:
        raise disagreement(files, names, found)
    require_dollars(files)
    require_rows(files, rows.height, rejected_files)
    _require_going_on(rows, registered)
    if fall := first_fall(store, preset, rows):
        raise refusal(preset, fall, files, names)
    used = set(rows["asset"].unique())
    made = [asset for asset in names.new.values() if asset.id in used]
    described = {asset.id for asset in registered.values() if asset.is_described}
    new = [asset for asset in listed if asset.id not in described and asset.id in used]
    new += made
    symbols = {asset.id: asset.symbol for asset in [*registered.values(), *listed, *new] if asset.id in used}
    notes = notes_on_symbols(new, registered.values())
    return Loaded(preset, files, rows, rejected_files, new, kept, symbols, notes, offered)


def _require_going_on(rows: pl.DataFrame, registered: Mapping[str, Asset]) -> None:
    """ImportRefused when an asset has ended before one of its rows, which nobody would be shown."""
    for asset_id, last in rows.group_by("asset").agg(pl.col("observed_at").max()).iter_rows():
        asset = registered.get(asset_id)
        if asset and asset.ended_at and last > unix_second(asset.ended_at):
            raise ImportRefused(
                f"{asset.symbol} ({asset_id}) ended at {shown(asset.ended_at)}, and there are values up to "
                f"{shown(instant(last))}, so nothing was written. `analytics-service assets end '{asset_id}' --undo` "
                "takes the end back; or leave these values out."
            )


def _begun(store: Store | None, preset: Preset) -> Mapping[str, Collection[str]]:
    """The ids of the assets that have values in the store, by each of the preset's switches."""
    head = read_state(store, preset.family) if store and preset.switches else None
    if store is None or head is None:
        return dict.fromkeys(preset.switches, ())
    return {name: read_series(store, preset.histories[name], head.last_observed_at) for name in preset.switches}


def _with_ids(files: Sequence[ReadFile], ids: Sequence[str]) -> Sequence[ReadFile]:
    """The files, with ids in place of the codes of assets."""
    dtype, codes = pl.Enum(sorted(ids)), pl.Series(range(len(ids)), dtype=pl.UInt32)
    named = pl.col("asset").replace_strict(codes, pl.Series(ids, dtype=dtype), return_dtype=dtype)
    for file in files:
        file.good = [block.with_columns(named) for block in file.good]
    return files
