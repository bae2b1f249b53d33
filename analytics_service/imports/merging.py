"""Merges the validated rows of all files, and sorts them in the order in which they are written."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

import polars as pl

from analytics_service.imports.families import Family
from analytics_service.market.instants import DAY

# Rows are sent window by window, so that a batch touches few of the monthly partitions.
WINDOW = 30 * DAY


class GoodRows(Protocol):
    """A file with blocks of good rows: asset, observed_at, and the family's fields."""

    good: list[pl.DataFrame]


def merged(family: Family, files: Sequence[GoodRows], begun: Mapping[str, Iterable[str]]) -> pl.DataFrame:
    """A row for each asset and instant, by window, and within a window by asset and time. Frees the files' rows.

    Of several rows for the same asset and instant the last one is kept, over all files in their order. `begun` has the
    ids of the assets that have values in the store, by each of the family's `zero_fields`.
    """
    rows = pl.concat([block for file in files for block in file.good], rechunk=True)
    for file in files:
        file.good.clear()
    return _with_zeros(_last_rows(rows), begun)


def _last_rows(rows: pl.DataFrame) -> pl.DataFrame:
    seconds = pl.col("observed_at").cast(pl.UInt64)
    # Sorting by a single number (11 bits of window, 20 of asset, 32 of time) is several times faster than by columns.
    key = (seconds // WINDOW) * 2**52 + pl.col("asset").to_physical().cast(pl.UInt64) * 2**32 + seconds
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
