"""Writes the rows of an import in batches that may all be sent again, and shows all of it at once.

All batches carry one version, so they may be written in any order. An import that was stopped has written rows of its
own version only; the next run has a greater one and ends in the same state as an undisturbed one.
"""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from functools import partial
from typing import Protocol, TypeVar

import polars as pl

from analytics_service.errors import StoreUnavailable
from analytics_service.import_families import PRICES, Family
from analytics_service.market.assets import Asset
from analytics_service.sources.files import Judged
from analytics_service.store import ledger
from analytics_service.store.assets import write_assets
from analytics_service.store.connection import Store
from analytics_service.store.publication import publication
from analytics_service.store.staging import Staging, staging

_BATCH_ROWS = 500_000
# ClickHouse takes in a batch on one core.
_WRITERS = 2
# Rows are sent window by window, so that a batch touches few of the monthly partitions.
_WINDOW = 30 * 86_400
# A batch asks which of its instants the store has; this bounds the answer where few rows span a long time.
_BATCH_WINDOWS = 12
# Seconds between attempts: half a minute in all, enough for a restart of the embedded server many times over.
_DELAYS = (0.25, 0.5, 1, 2, 4, 8, 8, 8)
_T = TypeVar("_T")


class Reporter(Protocol):
    """Shows how far a long operation has come."""

    def stage(self, label: str, total: int) -> None:
        """A stage begins, of so many units."""

    def advance(self, count: int) -> None:
        """So many more units of the stage are done."""


def in_order(judged: Sequence[Judged]) -> pl.DataFrame:
    """One row for each asset and instant, the last one read, window by window and by asset and time within it."""
    rows = pl.concat([block for each in judged for block in each.good], rechunk=True)
    for each in judged:
        each.good.clear()
    seconds = pl.col("observed_at").cast(pl.UInt64)
    # One number to sort by: 11 bits of window, 20 of asset, 32 of time; several times faster than three columns.
    key = (seconds // _WINDOW) * 2**52 + pl.col("asset").to_physical().cast(pl.UInt64) * 2**32 + seconds
    ordered = rows.with_columns(key=key).sort("key", maintain_order=True)
    is_last = (pl.col("key") != pl.col("key").shift(-1)).fill_null(True)
    return ordered.filter(is_last).drop("key")


def write(
    store: Store,
    family: Family,
    rows: pl.DataFrame,
    new: Sequence[Asset],
    source: str,
    reporter: Reporter,
    pause: Callable[[float], None],
) -> int:
    """Write observations where nobody sees them, and then show them, assets and ledger row with them, at one stroke.

    Answers how many of the observations the store had before.
    """
    patient = _Patience(pause)
    version = ledger.new_version()
    first, last = int(rows["observed_at"].min()), int(rows["observed_at"].max())  # type: ignore[arg-type]
    count = sum(rows.height - rows[field].null_count() for field, _ in family.tables.values())
    run = ledger.Run(family.name, last, "import", first, last, count, source, version)
    with staging(store, list(family.tables), version, patient) as twins:
        known = _stage(store, family, rows, version, twins, reporter, patient)
        with publication(store, family.name, None, version, patient) as still_here:
            # Assets are shown as of a version of prices: of other families none that readers may have gone past.
            defined = version if family is PRICES else ledger.new_version()
            for step in (
                lambda: write_assets(store, new, defined),
                twins.attach,
                lambda: ledger.complete(store, [run]),
            ):
                patient(still_here)
                patient(step)
    return known


def _stage(
    store: Store,
    family: Family,
    rows: pl.DataFrame,
    version: int,
    twins: Staging,
    reporter: Reporter,
    patient: "_Patience",
) -> int:
    """Write observations into the twins. Answers how many of them the store had before."""
    reporter.stage("Writing", rows.height)
    known = 0
    writers = ThreadPoolExecutor(_WRITERS, thread_name_prefix="import")
    try:
        pending = [
            writers.submit(_write_batch, store, family, batch, version, twins, patient) for batch in _batches(rows)
        ]
        for done in as_completed(pending):
            count, had = done.result()
            known += had
            reporter.advance(count)
    finally:
        writers.shutdown(cancel_futures=True)
    return known


def _batches(rows: pl.DataFrame) -> Iterator[pl.DataFrame]:
    """Slices of rows in order, each of at most _BATCH_ROWS rows and _BATCH_WINDOWS windows."""
    start = 0
    for span in rows.select((pl.col("observed_at") // (_WINDOW * _BATCH_WINDOWS)).rle()).unnest("observed_at")["len"]:
        yield from rows.slice(start, span).iter_slices(_BATCH_ROWS)
        start += span


def _write_batch(
    store: Store, family: Family, batch: pl.DataFrame, version: int, twins: Staging, patient: "_Patience"
) -> tuple[int, int]:
    # Counted once, before the first attempt: an attempt that failed may still have written.
    known = patient(lambda: _count_known(store, next(iter(family.tables)), batch))
    for table, (field, column) in family.tables.items():
        filled = batch.filter(pl.col(field).is_not_null()) if batch[field].null_count() else batch
        observations = filled.select(
            pl.col("asset").cast(pl.String).alias("asset_id"),
            "observed_at",
            pl.col(field).alias(column),
            pl.lit(version, pl.UInt64).alias("version"),
        )
        patient(partial(store.insert, twins.twin(table), observations))
    return batch.height, known


def _count_known(store: Store, table: str, batch: pl.DataFrame) -> int:
    """How many of the batch's observations have an asset and instant that the store already has."""
    bounds = batch.select(
        first_asset=pl.col("asset").min().cast(pl.String),
        last_asset=pl.col("asset").max().cast(pl.String),
        start=pl.col("observed_at").min(),
        end=pl.col("observed_at").max(),
    ).row(0, named=True)
    stored = store.frame("instants", table=table, **bounds).select(
        pl.col("asset_id").cast(batch.schema["asset"], strict=False).alias("asset"),
        pl.col("instants").alias("observed_at"),
    )
    return batch.join(stored.explode("observed_at"), on=["asset", "observed_at"], how="semi").height


@dataclass(frozen=True, slots=True)
class _Patience:
    """Repeats what can be repeated while ClickHouse is away, as it is when the embedded server restarts."""

    pause: Callable[[float], None]

    def __call__(self, act: Callable[[], _T]) -> _T:
        for delay in _DELAYS:
            try:
                return act()
            except StoreUnavailable:
                self.pause(delay)
        try:
            return act()
        except StoreUnavailable as error:
            raise StoreUnavailable(
                f"{error} The import stopped half-way. Run the same command again when ClickHouse answers: "
                "it continues safely and ends in the same state."
            ) from error
