"""Stages an import's rows where no reader sees them, then publishes all of them at once.

An interrupted import leaves only rows of its own version. The next import has a greater version, and the same result as
without the interruption. All batches have one version, so they can be written in any order and repeatedly.
"""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from pathlib import Path

import polars as pl

from analytics_service.clickhouse.columns import with_version
from analytics_service.clickhouse.connection import Store
from analytics_service.clickhouse.errors import Reporter
from analytics_service.errors import StoreUnavailable
from analytics_service.importing.history import Loaded
from analytics_service.importing.merge import require_monotonic
from analytics_service.store import ledger, rewrite
from analytics_service.store.datasets.assets import ASSETS, changed_assets
from analytics_service.store.datasets.histories import History
from analytics_service.store.datasets.observations import OBSERVATIONS
from analytics_service.store.ownership import read_owner, take_ownership
from analytics_service.store.rewrite import Staging, staging
from analytics_service.store.schema import TABLES

_BATCH_ROWS = 250_000
# ClickHouse inserts a batch on a single core.
_WRITERS = 2


def names_of(files: Sequence[Path]) -> str:
    """The names of files, as in the ledger."""
    return ", ".join(path.name for path in files)


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


@resumable()
def publish(store: Store, loaded: Loaded, reporter: Reporter) -> None:
    """Stage the rows, then publish them together with new assets and the ledger row. StoreUnavailable if ClickHouse
    goes away; the import can then be repeated."""
    history, version = loaded.request.history, ledger.new_version(store)
    take_ownership(store, read_owner(store), ledger.IMPORTED)
    with staging(store, history.dataset, version, what="import", expected=loaded.rows.height) as staged:
        _write(history, staged, loaded.rows, reporter)
        staged.insert(ASSETS, with_version(changed_assets(store, loaded.new), version))
        require_monotonic(store, history, loaded.rows)
        rewrite.publish(store, staged, [_ledger_row(loaded, version)])


def _ledger_row(loaded: Loaded, version: int) -> ledger.LedgerRow:
    """The import's row of the ledger."""
    history, paths = loaded.request.history, [file.table.path for file in loaded.files]
    first, last = loaded.span
    # Snapshots of a dataset with tables have more than values.
    at = ledger.VALUES_ONLY if TABLES[history.dataset] else last
    count, source = loaded.rows.height, names_of(paths)
    return ledger.LedgerRow(history.dataset, at, "import", first, last, count, source, version, import_id=version)


def _write(history: History, staged: Staging, rows: pl.DataFrame, reporter: Reporter) -> None:
    """Write merged rows into a staging table."""
    name, asset_id = pl.lit(history.name).alias("history"), pl.col("asset").cast(pl.String).alias("asset_id")

    def write_batch(batch: pl.DataFrame) -> int:
        columns = batch.select(name, asset_id, "observed_at", "value")
        staged.insert(OBSERVATIONS, with_version(columns, staged.version))
        return batch.height

    reporter.stage("Writing", rows.height)
    writers = ThreadPoolExecutor(_WRITERS, thread_name_prefix="import")
    try:
        for done in as_completed([writers.submit(write_batch, batch) for batch in rows.iter_slices(_BATCH_ROWS)]):
            reporter.advance(done.result())
    finally:
        writers.shutdown(cancel_futures=True)
