"""Imports of one history from files as people have them: any usual format, columns found by name, times in any unit."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path

import polars as pl

from analytics_service.imports.assets_file import as_registered, differ, notes_on_symbols, read_assets_file
from analytics_service.imports.families import Family
from analytics_service.imports.layout import Choice, lay_out
from analytics_service.imports.loaded import Loaded
from analytics_service.imports.merging import merged
from analytics_service.imports.names import AssetNames
from analytics_service.imports.numerals import NumberRules
from analytics_service.imports.opening import open_table
from analytics_service.imports.reading import ReadFile, ReadingRules, read_file
from analytics_service.imports.rejected import rejections
from analytics_service.imports.times import TimeRules
from analytics_service.market.assets import Asset
from analytics_service.market.values import DECIMALS
from analytics_service.store.admission import require_admitted
from analytics_service.store.assets import read_assets
from analytics_service.store.connection import Store
from analytics_service.store.histories import History
from analytics_service.store.ledger import IMPORTED
from analytics_service.store.observations import TOTAL
from analytics_service.store.progress import Reporter

_DISPLAYED = 6


@dataclass(frozen=True, slots=True)
class HistoryRequest:
    """Files of a history to import, and what the caller says about them.

    `assets` is an assets file. With `new_assets`, assets that neither it nor the store has are made. With
    `skip_invalid` the good rows are imported even if others are bad.
    """

    history: History
    files: Sequence[Path]
    choice: Choice = field(default_factory=Choice)
    times: TimeRules = field(default_factory=TimeRules)
    numbers: NumberRules = field(default_factory=NumberRules)
    fraction: bool = False
    assets: Path | None = None
    new_assets: bool = False
    skip_invalid: bool = False


@dataclass(frozen=True, slots=True)
class LoadedHistory:
    """The content of files of a history, and how each file was read. `symbols` are those of the assets, by
    id, and `notes` say what may not be meant."""

    loaded: Loaded
    files: Sequence[ReadFile]
    symbols: dict[str, str]
    notes: Sequence[str]


def load_history(
    store: Store | None, request: HistoryRequest, at: datetime, reporter: Reporter, *, keep_rejected: bool
) -> LoadedHistory:
    """Read all files. Of several rows for the same asset and second the last one wins, over all files in their order.

    Writes only files of rejected rows, with `keep_rejected`. SourceRefused when the store holds simulated data (rule
    8.7), ImportRefused when a file can be read in two ways or not at all, or (without `skip_invalid`) a row is bad.
    """
    if store is not None:
        require_admitted(store, IMPORTED)
    registered = read_assets(store) if store is not None else {}
    described = read_assets_file(request.assets) if request.assets else []
    listed = [as_registered(asset, registered) for asset in described]
    kept = [stored for asset in listed if (stored := registered.get(asset.id)) and differ(asset, stored)]
    names = AssetNames(listed, registered.values(), add_new=request.new_assets)
    rules = ReadingRules(request.history, request.times, request.numbers, request.fraction, at)
    tables = [open_table(path) for path in request.files]
    files = [ReadFile(table, lay_out(table, request.history, request.choice), rules) for table in tables]
    with rejections(tables, skip=request.skip_invalid, keep=keep_rejected) as rejects:
        for index, file in enumerate(files):
            reporter.stage(f"Reading {file.table.path.name}", file.table.size)
            read_file(file, names, rejects.of(file.table, index), reporter.advance)
        read, rejected = sum(file.read for file in files), sum(file.rejected for file in files)
        rejected_files = rejects.finish(read, rejected)
    family = Family(request.history.family, (), {"value": request.history})
    rows = merged(family, _with_ids(files, names.ids), {})
    used = set(rows["asset"].unique())
    new = [asset for asset in listed if asset.id not in registered and asset.id in used]
    new += _with_decimals([asset for asset in names.new.values() if asset.id in used], rows)
    symbols = {asset.id: asset.symbol for asset in [*registered.values(), *listed, *new] if asset.id in used}
    loaded = Loaded(family, request.files, read, rejected, rejected_files, rows, new, kept)
    return LoadedHistory(loaded, files, symbols, notes_on_symbols(new, registered.values()))


def _with_ids(files: Sequence[ReadFile], ids: Sequence[str]) -> Sequence[ReadFile]:
    """The files, with ids in place of the codes of assets."""
    dtype, codes = pl.Enum(sorted(ids)), pl.Series(range(len(ids)), dtype=pl.UInt32)
    named = pl.col("asset").replace_strict(codes, pl.Series(ids, dtype=dtype), return_dtype=dtype)
    for file in files:
        file.good = [block.with_columns(named) for block in file.good]
    return files


def _with_decimals(assets: Sequence[Asset], rows: pl.DataFrame) -> list[Asset]:
    """New assets, each with as many decimals as its values have at most: nothing else tells."""
    if not assets:
        return []
    decimals = pl.col("value").cast(pl.String).str.strip_chars_end("0").str.extract(r"\.(\d*)$").str.len_chars()
    # As text, all rows would take several times their memory.
    by_asset = [
        block.group_by(pl.col("asset").cast(pl.String)).agg(decimals.max().fill_null(0))
        for block in rows.iter_slices(500_000)
    ]
    most = dict(pl.concat(by_asset).group_by("asset").max().iter_rows())
    return [
        replace(asset, decimals_denom=count, decimals_display=min(count, _DISPLAYED))
        for asset in assets
        for count in (min(most[asset.id], DECIMALS),)
        if asset.id != TOTAL
    ]
