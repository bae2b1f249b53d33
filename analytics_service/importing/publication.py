"""Stages an import's rows where no reader sees them, then publishes all of them at once.

An import that was stopped leaves only rows of its own version. The next run has a greater version, and its result is
the same as without the interruption. All batches have one version, so they may be written in any order and repeatedly.
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
# For each batch the store is asked for known instants; this bounds the answer if few rows span a long time.
_BATCH_WINDOWS = 12


def names_of(files: Sequence[Path]) -> str:
    """The names of files, as the ledger has them."""
    return ", ".join(path.name for path in files)


def write_retries(wait: Callable[[float], bool | None]) -> Retries:
    """The retries of an import: in half a minute the embedded server can restart many times. `wait` pauses."""
    return Retries(seconds=32, first_pause=0.25, longest_pause=8, wait=wait)


def files_number(files: Sequence[Path]) -> int:
    """A 64-bit number that identifies a set of files by their paths."""
    paths = b"\0".join(sorted(os.fsencode(path.resolve()) for path in files))
    return int.from_bytes(hashlib.sha256(paths).digest()[:8])


@contextmanager
def resumable() -> Iterator[None]:
    """Add to the error how to continue when ClickHouse stays away."""
    try:
        yield
    except StoreUnavailable as error:
        raise StoreUnavailable(
            f"{error} The import stopped half-way. Run the same command again when ClickHouse answers: "
            "it continues safely and ends in the same state."
        ) from error


def compare_with_stored(store: Store | None, loaded: Loaded, reporter: Reporter) -> Summary:
    """What writing would do; None means an empty store."""
    return loaded.summary(count_stored(store, loaded.request.history, loaded.rows, reporter) if store else 0)


@resumable()
def publish(
    store: Store, loaded: Loaded, reporter: Reporter, wait: Callable[[float], bool | None] = time.sleep
) -> Summary:
    """Stage the rows, then show them together with the new assets and the ledger's row.

    `wait` pauses between attempts while ClickHouse is away. StoreUnavailable when it stays away; the same import may
    then be repeated.
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
        run = _run(loaded, version)
        rewrite.publish(store, staged, [retry(lambda: _with_replaced(store, run))], retry)
    return loaded.summary(already_stored)


def _run(loaded: Loaded, version: int) -> ledger.LedgerRow:
    """The row of the ledger for the import."""
    history, paths = loaded.request.history, [file.table.path for file in loaded.files]
    seconds = pl.col("observed_at")
    first, last = loaded.rows.select(first=seconds.min(), last=seconds.max()).row(0)
    # Values of such a dataset are not all that its snapshots have.
    at = ledger.VALUES_ONLY if TABLES[history.dataset] else last
    # By the version of their run, values of a cumulative history are told from sums of events: its row must stay.
    files = version if history.cumulative else files_number(paths)
    count = loaded.rows.height
    return ledger.LedgerRow(history.dataset, at, "import", first, last, count, names_of(paths), version, files_id=files)


def _with_replaced(store: Store, run: ledger.LedgerRow) -> ledger.LedgerRow:
    """The run, beginning no later than the earlier run of the same files that it replaces in the ledger: the ledger
    must cover every moment that imports have brought."""
    began = store.query("find_import_start", dataset=run.dataset, at=run.at, files_id=run.files_id)["first_observed_at"]
    return replace(run, first_observed_at=min([run.first_observed_at, *began]))


def _require_as_described(store: Store, assets: Sequence[Asset]) -> None:
    """ImportRefused when a job has meanwhile registered a new asset differently: in another spelling (rule 3.4), with
    another symbol, or with other decimals."""
    ids = [asset.id for asset in assets]
    registered = read_assets(store) if ids else {}
    stored = stored_id(ids, registered)
    for asset in assets:
        if asset.id not in stored or (asset.id in registered and definitions_differ(asset, registered[asset.id])):
            raise UserError(
                f"A job has just registered {asset.id} otherwise, so nothing was written. Run the same command again: "
                "it will keep that description."
            )


@dataclass(frozen=True, slots=True)
class BatchWriter:
    """Writes rows of an import, with a version, into a staging table."""

    store: Store
    history: History
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
        already_stored = self.retry(lambda: _count_stored(self.store, self.history, batch))
        name, asset_id = pl.lit(self.history.name).alias("history"), pl.col("asset").cast(pl.String).alias("asset_id")
        rows = with_version(batch.select(name, asset_id, "observed_at", "value"), self.version)
        self.retry(lambda: self.staged.insert(OBSERVATIONS, rows))
        return batch.height, already_stored


def count_stored(store: Store, history: History, rows: pl.DataFrame, reporter: Reporter) -> int:
    """How many of the observations of merged rows the store already has. Nothing is written."""
    reporter.stage("Comparing", rows.height)
    already_stored = 0
    for batch in _batches(rows):
        already_stored += _count_stored(store, history, batch)
        reporter.advance(batch.height)
    return already_stored


def _batches(rows: pl.DataFrame) -> Iterator[pl.DataFrame]:
    """Slices of merged rows, each of at most _BATCH_ROWS rows and _BATCH_WINDOWS windows."""
    start = 0
    for span in rows.select((pl.col("observed_at") // (WINDOW * _BATCH_WINDOWS)).rle()).unnest("observed_at")["len"]:
        yield from rows.slice(start, span).iter_slices(_BATCH_ROWS)
        start += span


def _count_stored(store: Store, history: History, batch: pl.DataFrame) -> int:
    """How many of the batch's observations have an asset and instant that the store already has."""
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
