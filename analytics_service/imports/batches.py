"""Writes the rows of an import into a staging table, in batches that may be retried.

All batches have the same version, so they may be written in any order and more than once.
"""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from functools import partial

import polars as pl

from analytics_service.imports.merging import WINDOW
from analytics_service.imports.presets import Preset
from analytics_service.store.columns import versioned
from analytics_service.store.connection import Store
from analytics_service.store.observations import OBSERVATIONS
from analytics_service.store.progress import Reporter
from analytics_service.store.retries import Retries
from analytics_service.store.rewrite import Staging

_BATCH_ROWS = 500_000
# ClickHouse inserts a batch on a single core.
_WRITERS = 2
# For each batch the store is asked for known instants; this bounds the answer if few rows span a long time.
_BATCH_WINDOWS = 12


@dataclass(frozen=True, slots=True)
class BatchWriter:
    """Writes rows of an import, with a version, into a staging table."""

    store: Store
    preset: Preset
    staged: Staging
    version: int
    retry: Retries

    def write(self, rows: pl.DataFrame, reporter: Reporter) -> int:
        """Write merged rows, and return how many of their observations the store already had."""
        reporter.stage("Writing", rows.height)
        already_stored = 0
        writers = ThreadPoolExecutor(_WRITERS, thread_name_prefix="import")
        try:
            pending = [writers.submit(self._write_batch, batch) for batch in _batches(rows)]
            for done in as_completed(pending):
                count, stored = done.result()
                already_stored += stored
                reporter.advance(count)
        finally:
            writers.shutdown(cancel_futures=True)
        return already_stored

    def _write_batch(self, batch: pl.DataFrame) -> tuple[int, int]:
        """The number of rows, and how many of them the store already had."""
        # Counted once, before the first attempt: a failed attempt may have written the rows.
        already_stored = self.retry(lambda: _count_stored(self.store, self.preset, batch))
        for field, history in self.preset.histories.items():
            filled = batch.filter(pl.col(field).is_not_null()) if batch[field].null_count() else batch
            rows = filled.select(
                pl.lit(history.name).alias("history"),
                pl.col("asset").cast(pl.String).alias("asset_id"),
                "observed_at",
                pl.col(field).alias("value"),
            )
            self.retry(partial(self.staged.insert, OBSERVATIONS, versioned(rows, self.version)))
        return batch.height, already_stored


def count_stored(store: Store, preset: Preset, rows: pl.DataFrame, reporter: Reporter) -> int:
    """How many of the observations of merged rows the store already has. Nothing is written."""
    reporter.stage("Comparing", rows.height)
    already_stored = 0
    for batch in _batches(rows):
        already_stored += _count_stored(store, preset, batch)
        reporter.advance(batch.height)
    return already_stored


def _batches(rows: pl.DataFrame) -> Iterator[pl.DataFrame]:
    """Slices of merged rows, each of at most _BATCH_ROWS rows and _BATCH_WINDOWS windows."""
    start = 0
    for span in rows.select((pl.col("observed_at") // (WINDOW * _BATCH_WINDOWS)).rle()).unnest("observed_at")["len"]:
        yield from rows.slice(start, span).iter_slices(_BATCH_ROWS)
        start += span


def _count_stored(store: Store, preset: Preset, batch: pl.DataFrame) -> int:
    """How many of the batch's observations have an asset and instant that the store already has."""
    bounds = batch.select(
        first_asset=pl.col("asset").min().cast(pl.String),
        last_asset=pl.col("asset").max().cast(pl.String),
        start=pl.col("observed_at").min(),
        end=pl.col("observed_at").max(),
    ).row(0, named=True)
    stored = store.frame("instants", history=preset.history.name, **bounds).select(
        pl.col("asset_id").cast(batch.schema["asset"], strict=False).alias("asset"),
        pl.col("instants").alias("observed_at"),
    )
    return batch.join(stored.explode("observed_at"), on=["asset", "observed_at"], how="semi").height
