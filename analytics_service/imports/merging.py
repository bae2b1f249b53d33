"""Merges the validated rows of all files, and sorts them in the order in which they are written."""

from collections.abc import Iterable, Mapping, Sequence

import polars as pl

from analytics_service.imports.reading import ReadFile
from analytics_service.market.instants import DAY

# Rows are sent window by window, so that a batch touches few of the monthly partitions.
WINDOW = 30 * DAY


def merged(
    files: Sequence[ReadFile], begun: Mapping[str, Iterable[str]]
) -> tuple[pl.DataFrame, tuple[str, int, int] | None]:
    """A row for each asset and second, by window, and within a window by asset and time. Frees the files' rows. Also
    the first asset, second and nanoseconds after it for which two rows have different values.

    Of several rows for the same asset and second the last one is kept, over all files in their order. `begun` has the
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
    kept, disagreement = [empty], None
    for window in sorted(parts):
        ordered = _ordered(pl.concat(parts.pop(window), how="diagonal"))
        disagreement = disagreement or _disagreement(ordered, empty.columns[2:])
        is_last = (pl.col("key") != pl.col("key").shift(-1)).fill_null(True)
        kept.append(ordered.filter(is_last).select(empty.columns))
    return _with_zeros(pl.concat(kept), begun), disagreement


def _ordered(rows: pl.DataFrame) -> pl.DataFrame:
    # Sorting by a single number is several times faster than by columns.
    key = pl.col("asset").to_physical().cast(pl.UInt64) * 2**32 + pl.col("observed_at")
    return rows.with_columns(key=key).sort("key", maintain_order=True)


def _disagreement(ordered: pl.DataFrame, values: Sequence[str]) -> tuple[str, int, int] | None:
    """The first asset, second and nanoseconds of which rows have different values; ticks of a second may differ."""
    tick = pl.col("tick").fill_null(0) if "tick" in ordered.columns else pl.lit(0, pl.UInt32).alias("tick")
    same = pl.col("key") == pl.col("key").shift(1)
    rows = ordered.filter((same | same.shift(-1)).fill_null(False)).with_columns(tick).sort("key", "tick")
    other = pl.any_horizontal(pl.col(value).ne_missing(pl.col(value).shift(1)) for value in values)
    found = rows.filter(same & (pl.col("tick") == pl.col("tick").shift(1)) & other)
    first = found.select(pl.col("asset").cast(pl.String), "observed_at", "tick").head(1)
    return first.row(0) if first.height else None


def _with_zeros(rows: pl.DataFrame, begun: Mapping[str, Iterable[str]]) -> pl.DataFrame:
    """Rows with 0 instead of null in the fields of `begun`, for assets with a value in another row or in the store."""
    for field, ids in begun.items():
        begun_ids = pl.Series(list(ids), dtype=pl.String).cast(rows.schema["asset"], strict=False)
        has_values = pl.col(field).is_not_null().any().over("asset") | pl.col("asset").is_in(begun_ids.implode())
        rows = rows.with_columns(pl.when(has_values).then(pl.col(field).fill_null(0)).alias(field))
    return rows
