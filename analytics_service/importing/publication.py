"""Stages an import's rows where no reader sees them, then publishes all of them at once.

An interrupted import leaves only rows of its own version. The next import has a greater version, and the same result as
without the interruption. All batches have one version, so they can be written in any order and repeatedly.
"""

import hashlib
import os
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import polars as pl

from analytics_service.clickhouse.columns import with_version
from analytics_service.clickhouse.connection import Store
from analytics_service.clickhouse.errors import Reporter, Retries
from analytics_service.errors import StoreUnavailable, UserError
from analytics_service.importing.assets import definitions_differ
from analytics_service.importing.history import Loaded, Summary
from analytics_service.importing.merge import WINDOW, require_monotonic
from analytics_service.market.assets import Asset, stored_id
from analytics_service.store import ledger, rewrite
from analytics_service.store.datasets.assets import ASSETS, changed_assets, read_assets
from analytics_service.store.datasets.histories import History
from analytics_service.store.datasets.observations import OBSERVATIONS
from analytics_service.store.ownership import read_owner, take_ownership
from analytics_service.store.rewrite import Staging, staging
from analytics_service.store.schema import TABLES

_BATCH_ROWS = 250_000
# ClickHouse inserts a batch on a single core.
_WRITERS = 2
# Each batch asks the store for known instants. This bounds the answer if few rows span a long time.
_BATCH_WINDOWS = 12


def names_of(files: Sequence[Path]) -> str:
    """The names of files, as in the ledger."""
    return ", ".join(path.name for path in files)


def write_retries(wait: Callable[[float], bool | None]) -> Retries:
    """The retries of an import: for half a minute, in which the embedded server can restart many times."""
    return Retries(seconds=32, first_pause=0.25, longest_pause=8, wait=wait)


def files_number(files: Sequence[Path]) -> int:
    """A 64-bit number that identifies a set of files by path."""
    paths = b"\0".join(sorted(os.fsencode(path.resolve()) for path in files))
    return int.from_bytes(hashlib.sha256(paths).digest()[:8])


@contextmanager
def resumable() -> Iterator[None]:
    """Adds to StoreUnavailable how to continue the import."""
    try:
        yield
    except StoreUnavailable as error:
        raise StoreUnavailable(
            f"{error} The import stopped half-way. When ClickHouse answers, run the same command again; the result is "
            "the same."
        ) from error


def compare_with_stored(store: Store | None, loaded: Loaded, reporter: Reporter) -> Summary:
    """The result that an import would have. A `store` of None is empty."""
    return loaded.summary(count_stored(store, loaded.request.history, loaded.rows, reporter) if store else 0)


@resumable()
def publish(
    store: Store, loaded: Loaded, reporter: Reporter, wait: Callable[[float], bool | None] = time.sleep
) -> Summary:
    """Stage the rows, then publish them together with new assets and the ledger row.

    `wait` pauses between attempts while ClickHouse is away. StoreUnavailable if it stays away; the import can then be
    repeated.
    """
    retry, history = write_retries(wait), loaded.request.history
    version = retry(lambda: ledger.new_version(store))
    definitions = with_version(retry(lambda: changed_assets(store, loaded.new)), version)
    retry(lambda: take_ownership(store, read_owner(store), ledger.IMPORTED))
    with staging(store, history.dataset, version, retry, what="import", expected=loaded.rows.height) as staged:
        already_stored = BatchWriter(store, history, staged, version, retry).write(loaded.rows, reporter)
        retry(lambda: staged.insert(ASSETS, definitions))
        retry(lambda: _require_as_described(store, loaded.new))
        retry(lambda: require_monotonic(store, history, loaded.rows))
        commit = _ledger_row(loaded, version)
        rewrite.publish(store, staged, [retry(lambda: _with_replaced(store, commit))], retry)
    return loaded.summary(already_stored)


def _ledger_row(loaded: Loaded, version: int) -> ledger.LedgerRow:
    """The import's row of the ledger."""
    history, paths = loaded.request.history, [file.table.path for file in loaded.files]
    seconds = pl.col("observed_at")
    first, last = loaded.rows.select(first=seconds.min(), last=seconds.max()).row(0)
    # Snapshots of a dataset with tables have more than values.
    at = ledger.VALUES_ONLY if TABLES[history.dataset] else last
    # The commit's version distinguishes imported cumulative values from sums of events, so its row must stay.
    files = version if history.cumulative else files_number(paths)
    count = loaded.rows.height
    return ledger.LedgerRow(history.dataset, at, "import", first, last, count, names_of(paths), version, files_id=files)


def _with_replaced(store: Store, commit: ledger.LedgerRow) -> ledger.LedgerRow:
    """The commit, starting no later than the commit of the same files that it replaces: the ledger must cover every
    imported moment."""
    starts = store.query("find_import_start", dataset=commit.dataset, at=commit.at, files_id=commit.files_id)
    return replace(commit, first_observed_at=min([commit.first_observed_at, *starts["first_observed_at"]]))


def _require_as_described(store: Store, assets: Sequence[Asset]) -> None:
    """UserError if another process has meanwhile registered a new asset with another case of its id (rule 3.4,
    canonical ids), another symbol or other decimals."""
    ids = [asset.id for asset in assets]
    registered = read_assets(store) if ids else {}
    stored = stored_id(ids, registered)
    for asset in assets:
        if asset.id not in stored or (asset.id in registered and definitions_differ(asset, registered[asset.id])):
            raise UserError(
                f"Another process has just registered {asset.id} differently, so nothing was written. Run the same "
                "command again to keep that description."
            )


@dataclass(frozen=True, slots=True)
class BatchWriter:
    """Writes rows of an import, with its version, into a staging table."""

    store: Store
    history: History
    staged: Staging
    version: int
    retry: Retries

    def write(self, rows: pl.DataFrame, reporter: Reporter) -> int:
        """Write merged rows. Returns how many of their observations the store already had."""
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
        """Returns the number of rows, and how many of them the store already had."""
        # Counted before the first attempt: a failed attempt may have written the rows.
        already_stored = self.retry(lambda: _count_stored(self.store, self.history, batch))
        name, asset_id = pl.lit(self.history.name).alias("history"), pl.col("asset").cast(pl.String).alias("asset_id")
        rows = with_version(batch.select(name, asset_id, "observed_at", "value"), self.version)
        self.retry(lambda: self.staged.insert(OBSERVATIONS, rows))
        return batch.height, already_stored


def count_stored(store: Store, history: History, rows: pl.DataFrame, reporter: Reporter) -> int:
    """How many observations of merged rows the store already has."""
    reporter.stage("Comparing", rows.height)
    already_stored = 0
    for batch in _batches(rows):
        already_stored += _count_stored(store, history, batch)
        reporter.advance(batch.height)
    return already_stored


def _batches(rows: pl.DataFrame) -> Iterator[pl.DataFrame]:
    """Slices of merged rows, of at most _BATCH_ROWS rows and _BATCH_WINDOWS windows."""
    start = 0
    for span in rows.select((pl.col("observed_at") // (WINDOW * _BATCH_WINDOWS)).rle()).unnest("observed_at")["len"]:
        yield from rows.slice(start, span).iter_slices(_BATCH_ROWS)
        start += span


def _count_stored(store: Store, history: History, batch: pl.DataFrame) -> int:
    """How many observations of a batch have an asset and instant that the store already has."""
    bounds = batch.select(
        first_asset=pl.col("asset").min().cast(pl.String),
        last_asset=pl.col("asset").max().cast(pl.String),
        start=pl.col("observed_at").min(),
        end=pl.col("observed_at").max() + 1,
    ).row(0, named=True)
    stored = store.query("list_instants", history=history.name, **bounds).select(
        pl.col("asset_id").cast(batch.schema["asset"], strict=False).alias("asset"),
        pl.col("instants").alias("observed_at"),
    )
    return batch.join(stored.explode("observed_at"), on=["asset", "observed_at"], how="semi").height
