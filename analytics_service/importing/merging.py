"""Merges the good rows of all files, and sorts them in the order in which they are written."""

from collections.abc import Sequence

import polars as pl

from analytics_service.market.instants import DAY

# Rows are sent window by window, so that a batch touches few of the monthly partitions.
WINDOW = 30 * DAY
COLUMNS = ("asset", "observed_at", "value")


def merged(blocks: list[pl.DataFrame], *, last_wins: bool) -> tuple[pl.DataFrame, pl.DataFrame | None]:
    """A row for each asset and second, by window, and within a window by asset and time, and the first two rows of one
    time that disagree, unless `last_wins`. Takes the blocks out of the list.

    Of rows of an asset and second the one with the latest `tick` is kept, of rows of a tick the last (rule 2.12).
    """
    parts: dict[int, list[pl.DataFrame]] = {}
    empty = blocks[0].select(COLUMNS).clear()
    while blocks:
        # Blocks are freed one by one, and windows sorted one by one: otherwise rows would be in memory three times.
        block = blocks.pop().with_columns(window=pl.col("observed_at").cast(pl.Int64) // WINDOW)
        for (window,), part in block.partition_by("window", as_dict=True, include_key=False).items():
            parts.setdefault(window, []).insert(0, part)
    kept, conflict = [empty], None
    for window in sorted(parts):
        ordered = _ordered(pl.concat(parts.pop(window), how="diagonal"))
        if conflict is None and not last_wins:
            conflict = _conflict(ordered)
        is_last = (pl.col("key") != pl.col("key").shift(-1)).fill_null(True)
        kept.append(ordered.filter(is_last).select(COLUMNS))
    return pl.concat(kept), conflict


def _ordered(rows: pl.DataFrame) -> pl.DataFrame:
    # Sorting by a single number is several times faster than by columns.
    key = pl.col("asset").to_physical().cast(pl.UInt64) * 2**32 + pl.col("observed_at")
    keys: Sequence[str] = ("key", "tick") if "tick" in rows.columns else ("key",)
    if "tick" in rows.columns:
        rows = rows.with_columns(pl.col("tick").fill_null(0))
    return rows.with_columns(key=key).sort(keys, maintain_order=True)


def _conflict(ordered: pl.DataFrame) -> pl.DataFrame | None:
    """The first two rows of one asset and time that have different values."""
    same = pl.col("key") == pl.col("key").shift(-1)
    if "tick" in ordered.columns:
        same &= pl.col("tick") == pl.col("tick").shift(-1)
    found = ordered.select(index=(same & (pl.col("value") != pl.col("value").shift(-1))).arg_true())["index"]
    return ordered.slice(found[0], 2) if len(found) else None
