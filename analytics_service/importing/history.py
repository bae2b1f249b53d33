"""Reads files of one history: their valid rows, merged, and their new assets.

The error about a file names the first invalid row, with the column, the value and what to do.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import polars as pl

from analytics_service.clickhouse.connection import Store
from analytics_service.clickhouse.errors import Reporter
from analytics_service.errors import UserError
from analytics_service.importing.asset_names import AssetNames
from analytics_service.importing.assets import listed_assets, registered_assets
from analytics_service.importing.merge import merge_rows, require_monotonic
from analytics_service.importing.readers import quote_value
from analytics_service.importing.rows import SHOWN, HistoryRequest, ReadFile, open_file, read_rows
from analytics_service.importing.time_parsing import TimeStyle
from analytics_service.importing.timestamps import (
    LEAST,
    candle_rows,
    last_seconds,
    least_bucket,
    least_interval,
    shift_times,
)
from analytics_service.market.assets import Asset
from analytics_service.market.instants import format_instant, from_unix, unix_second
from analytics_service.store.datasets.histories import PRICES


@dataclass(frozen=True, slots=True)
class Loaded:
    """The content of files: merged rows, new assets, and the symbols of the rows' assets by id."""

    request: HistoryRequest
    files: Sequence[ReadFile]
    rows: pl.DataFrame
    new: Sequence[Asset]
    symbols: Mapping[str, str]

    def count(self, name: str) -> int:
        """The number of rows in all files that were `read`, `empty` or `rejected`."""
        return sum(getattr(file, name) for file in self.files)

    @property
    def span(self) -> tuple[int, int]:
        """The first and last unix second of the rows."""
        second = pl.col("observed_at")
        return self.rows.select(first=second.min(), last=second.max()).row(0)

    @property
    def rejections(self) -> Sequence[str]:
        """Descriptions of the first rejected rows."""
        return [text for file in self.files for text in file.rejections][:SHOWN]


def load_history(store: Store | None, request: HistoryRequest, at: datetime, reporter: Reporter) -> Loaded:
    """Read all files, and write nothing. A `store` of None is empty. `at` is the present instant; observations more
    than a day later are invalid.

    SourceMismatch if the store has simulated data (rule 8.7, one source). UserError if a file is invalid, rows
    conflict, no row remains, a cumulative history would decrease, or an asset has ended.
    """
    history, registered = request.history, registered_assets(store)
    listed = listed_assets(request.assets, registered)
    names = AssetNames(listed, registered.values(), add_new=request.new_assets, pairs=history is PRICES)
    files = [open_file(path, request, at) for path in request.files]
    for file in files:
        reporter.stage(f"Reading {file.table.path.name}", file.table.size)
        for rows, size in file.table.batches(file.mapping.columns):
            read_rows(file, rows, names)
            reporter.advance(size)
        _set_timestamps(file)
    if not any(block.height for file in files for block in file.good):
        _refuse_nothing(files)
    rows, conflict = merge_rows(_blocks(files), last_wins=request.last_wins)
    if conflict is not None:
        raise _conflict_error(files, conflict)
    _require_not_ended(rows, registered)
    require_monotonic(store, history, rows)
    used = set(rows["asset"].unique())
    described = {asset.id for asset in registered.values() if asset.is_described}
    new = [asset for asset in listed if asset.id not in described and asset.id in used]
    new += [asset for asset in names.new.values() if asset.id in used]
    symbols = {asset.id: asset.symbol for asset in [*registered.values(), *listed, *new] if asset.id in used}
    return Loaded(request, files, rows, new, symbols)


def _set_timestamps(file: ReadFile) -> None:
    """Set the second from which each value counts. UserError if the options leave it unclear."""
    request = file.request
    stamp, interval = request.stamps.stamp or ("begin" if file.mapping.page else None), request.stamps.interval
    path, is_candles = file.table.path, request.choice.candles
    if file.mapping.is_candle and file.style in (TimeStyle.CLOCK, TimeStyle.NUMBER) and stamp is None:
        raise UserError(
            f"{path}: the time of a candle may be the beginning or the end of its interval, and its close is known "
            "only at the end. Add --stamp begin or --stamp end."
        )
    is_needed = stamp == "begin" or (stamp == "end" and is_candles)
    if interval and not is_needed:
        raise UserError(f"{path}: --interval has no effect here. Add --stamp begin, or leave out --interval.")
    if is_needed and interval is None and any(rows.height for rows in file.good):
        begins = pl.concat([rows.select("asset", "begin") for rows in file.good])
        interval = least_bucket(file.buckets) if file.mapping.page else least_interval(begins, file.times.zone)
        if interval is None:
            raise UserError(f"{path} has only one time for each asset. Add the interval, such as --interval 1d.")
    now, zone = unix_second(file.at), file.times.zone
    for number, rows in enumerate(file.good):
        if interval and stamp == "begin":
            rows = rows.with_columns(observed_at=last_seconds(rows["begin"], interval, zone, now))
        elif interval:
            # An end on a full minute is the first second after the candle.
            rows = rows.with_columns(observed_at=pl.col("observed_at") - (pl.col("observed_at") % 60 == 0))
            ends = rows["observed_at"].cast(pl.Int64) + 1
            rows = rows.with_columns(begin=shift_times(ends, f"-{interval}", zone).cast(pl.UInt32))
        if is_candles and (rows["observed_at"].cast(pl.Int64) - rows["begin"] < LEAST - 1).any():
            raise UserError(f"{path} has candles shorter than {LEAST} seconds. Leave out --candles.")
        file.good[number] = (candle_rows(rows) if is_candles else rows).drop("begin", strict=False)


def _blocks(files: Sequence[ReadFile]) -> list[pl.DataFrame]:
    """The rows of files, with the number of the file."""
    blocks = []
    for number, file in enumerate(files):
        while file.good:
            blocks.append(file.good.pop(0).with_columns(pl.lit(number, pl.UInt16).alias("file")))
    return blocks


def _conflict_error(files: Sequence[ReadFile], conflict: pl.DataFrame) -> UserError:
    places = [
        f"{quote_value(files[row['file']].table.path, files[row['file']].table.label, row['line'], None, None)} "
        f"{row['value']}"
        for row in conflict.iter_rows(named=True)
    ]
    asset, second = conflict["asset"][0] or "the sum", conflict["observed_at"][0]
    return UserError(
        f"Two rows have different values of {asset} at {format_instant(from_unix(second))}: {' and '.join(places)}. "
        "Delete the wrong row, or take the later row with --last-wins."
    )


def _refuse_nothing(files: Sequence[ReadFile]) -> None:
    """UserError: no row remains to import."""
    name = f"{files[0].table.path}{' and the others' if len(files) > 1 else ''}"
    if rejected := sum(file.rejected for file in files):
        first = next(text for file in files for text in file.rejections)
        raise UserError(f"{name}: all {rejected:,} rows with a value are invalid. {first}")
    raise UserError(f"{name}: there are no rows with a value.")


def _require_not_ended(rows: pl.DataFrame, registered: Mapping[str, Asset]) -> None:
    """UserError if an asset has ended before one of its rows, which would not be visible."""
    for asset_id, last in rows.group_by("asset").agg(pl.col("observed_at").max()).iter_rows():
        asset = registered.get(asset_id)
        if asset and asset.ended_at and last > unix_second(asset.ended_at):
            raise UserError(
                f"{asset.symbol} ({asset_id}) ended at {format_instant(asset.ended_at)}, but there are values up to "
                f"{format_instant(from_unix(last))}. Remove these values, or remove the end with `analytics-service "
                f"assets end '{asset_id}' --undo`."
            )
