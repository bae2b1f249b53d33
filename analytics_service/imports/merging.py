"""Merges the validated rows of all files, and sorts them in the order in which they are written."""

from collections.abc import Iterable, Mapping, Sequence

import polars as pl

from analytics_service.imports.reading import ReadFile
from analytics_service.market.instants import DAY

# Rows are sent window by window, so that a batch touches few of the monthly partitions.
WINDOW = 30 * DAY


def merged(files: Sequence[ReadFile], begun: Mapping[str, Iterable[str]]) -> pl.DataFrame:
    """A row for each asset and instant, by window, and within a window by asset and time. Frees the files' rows.

    Of several rows for the same asset and instant the last one is kept, over all files in their order. `begun` has the
    ids of the assets that have values in the store, by each of the preset's switches.
    """
    parts: dict[int, list[pl.DataFrame]] = {}
    empty = files[0].good[0].clear()
    for file in reversed(files):
        # Blocks are freed one by one, and windows sorted one by one: otherwise rows would be in memory three times.
        while file.good:
            block = file.good.pop().with_columns(window=pl.col("observed_at").cast(pl.Int64) // WINDOW)
            for (window,), part in block.partition_by("window", as_dict=True, include_key=False).items():
                parts.setdefault(window, []).insert(0, part)
    rows = pl.concat([empty, *(_last_rows(pl.concat(parts.pop(window))) for window in sorted(parts))])
    return _with_zeros(rows, begun)


def _last_rows(rows: pl.DataFrame) -> pl.DataFrame:
    # Sorting by a single number is several times faster than by columns.
    key = pl.col("asset").to_physical().cast(pl.UInt64) * 2**32 + pl.col("observed_at")
    ordered = rows.with_columns(key=key).sort("key", maintain_order=True)
    is_last = (pl.col("key") != pl.col("key").shift(-1)).fill_null(True)
    return ordered.filter(is_last).drop("key")


def _with_zeros(rows: pl.DataFrame, begun: Mapping[str, Iterable[str]]) -> pl.DataFrame:
    """Rows with 0 instead of null in the fields of `begun`, for assets with a value in another row or in the store."""
    for field, ids in begun.items():
        begun_ids = pl.Series(list(ids), dtype=pl.String).cast(rows.schema["asset"], strict=False)
        has_values = pl.col(field).is_not_null().any().over("asset") | pl.col("asset").is_in(begun_ids.implode())
        rows = rows.with_columns(pl.when(has_values).then(pl.col(field).fill_null(0)).alias(field))
    return rows
