"""Merges the valid rows of all files, sorts them in the order of writing, and requires sums to be monotonic."""

from collections.abc import Sequence
from typing import Any

import polars as pl

from analytics_service.clickhouse.connection import Store
from analytics_service.errors import UserError
from analytics_service.market.decimals import round_decimal, subtract
from analytics_service.market.instants import DAY, format_instant, from_unix
from analytics_service.market.kinds import DECIMAL
from analytics_service.store.datasets.histories import History

_ROWS: dict[str, type[pl.DataType] | pl.DataType] = {"observed_at": pl.UInt32, "value": DECIMAL}
# Rows are sent window by window, so that a batch touches few of the monthly partitions.
_WINDOW = 30 * DAY
_COLUMNS = ("asset", "observed_at", "value")


def require_monotonic(store: Store | None, history: History, rows: pl.DataFrame) -> None:
    """UserError for the first decrease, by asset, that merged rows would cause in a cumulative history. A `store` of
    None is empty."""
    if not history.cumulative:
        return
    for (asset,), part in rows.partition_by("asset", as_dict=True, include_key=False).items():
        imported = part.select(list(_ROWS)).cast(_ROWS)  # type: ignore[arg-type]
        bounds = imported.select(start=pl.col("observed_at").min(), end=pl.col("observed_at").max()).row(0, named=True)
        bound = {"history": history.name, "asset_id": str(asset), **bounds}
        stored = store.query("read_series_around", **bound).cast(imported.schema) if store else imported.clear()
        kept = stored.join(imported, on="observed_at", how="anti").with_columns(is_stored=True)
        series = pl.concat([kept, imported.with_columns(is_stored=False)]).sort("observed_at")
        both = series.with_columns(pl.all().shift(1).name.suffix("_before"))
        # Decreases among stored values are not the import's fault.
        is_new = ~(pl.col("is_stored") & pl.col("is_stored_before"))
        decreases = both.filter((pl.col("value") < pl.col("value_before")) & is_new)
        if decreases.height:
            raise _decrease_error(history, str(asset), decreases.row(0, named=True))


def _decrease_error(history: History, asset_id: str, decrease: dict[str, Any]) -> UserError:
    def moment(suffix: str) -> str:
        where = "store" if decrease[f"is_stored{suffix}"] else "file"
        at = format_instant(from_unix(decrease[f"observed_at{suffix}"]))
        return f"{round_decimal(decrease[f'value{suffix}']):f} USD at {at} in the {where}"

    fall = subtract(decrease["value_before"], decrease["value"])
    return UserError(
        f"{history.slug} of {asset_id or 'all assets'} would fall from {moment('_before')} to {moment('')}, by {fall}. "
        "Correct the file, or see the corrections of loans in the README of the commands."
    )


def merge_rows(blocks: list[pl.DataFrame], *, last_wins: bool) -> tuple[pl.DataFrame, pl.DataFrame | None]:
    """One row for each asset and second, ordered by window, asset and time; and the first two conflicting rows, unless
    `last_wins`. Empties the list of blocks.

    For an asset and second, the latest `tick` wins, then the last row (rule 2.12, whole seconds).
    """
    parts: dict[int, list[pl.DataFrame]] = {}
    empty = blocks[0].select(_COLUMNS).clear()
    while blocks:
        # Freeing blocks and sorting windows one by one keeps rows from being in memory three times.
        block = blocks.pop().with_columns(window=pl.col("observed_at").cast(pl.Int64) // _WINDOW)
        for (window,), part in block.partition_by("window", as_dict=True, include_key=False).items():
            parts.setdefault(window, []).insert(0, part)
    kept, conflict = [empty], None
    for window in sorted(parts):
        ordered = _ordered(pl.concat(parts.pop(window), how="diagonal"))
        if conflict is None and not last_wins:
            conflict = _conflict(ordered)
        is_last = (pl.col("key") != pl.col("key").shift(-1)).fill_null(True)
        kept.append(ordered.filter(is_last).select(_COLUMNS))
    return pl.concat(kept), conflict


def _ordered(rows: pl.DataFrame) -> pl.DataFrame:
    # Sorting by one number is several times faster than by columns.
    key = pl.col("asset").to_physical().cast(pl.UInt64) * 2**32 + pl.col("observed_at")
    keys: Sequence[str] = ("key", "tick") if "tick" in rows.columns else ("key",)
    if "tick" in rows.columns:
        rows = rows.with_columns(pl.col("tick").fill_null(0))
    return rows.with_columns(key=key).sort(keys, maintain_order=True)


def _conflict(ordered: pl.DataFrame) -> pl.DataFrame | None:
    """The first two rows of an asset and time with different values."""
    same = pl.col("key") == pl.col("key").shift(-1)
    if "tick" in ordered.columns:
        same &= pl.col("tick") == pl.col("tick").shift(-1)
    numbers = ordered.select(index=(same & (pl.col("value") != pl.col("value").shift(-1))).arg_true())["index"]
    return ordered.slice(numbers[0], 2) if len(numbers) else None
