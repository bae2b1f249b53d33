"""Imports files of history: judges every row first, then writes in batches that may all be sent again, and shows
all of it at once.

The judged rows wait in memory between the two steps, in 21 to 24 bytes each: ten million take a quarter of a
gigabyte. That is simpler than reading the files twice, lets the later line win over all files before anything is sent,
and so every batch can carry one version and be written in any order. An import that was stopped has written rows of
its own version only; the next run has a greater one and ends in the same state as an undisturbed one.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Protocol, TypeVar

import polars as pl

from analytics_service.errors import ImportRefused, StoreUnavailable
from analytics_service.market.assets import Asset
from analytics_service.sources.assets_file import read_assets_file
from analytics_service.sources.files import Judged, Names, TimeUnit, judge_table
from analytics_service.sources.rates_file import read_named_assets
from analytics_service.sources.rejected import RejectedFile
from analytics_service.sources.tables import PRICE_FORMS, RATE_FORMS, Form, Table, open_table
from analytics_service.store import ledger
from analytics_service.store.assets import read_assets, write_assets
from analytics_service.store.connection import Store
from analytics_service.store.publication import publication
from analytics_service.store.staging import Staging, staging

_SHOWN = 5
_SHOWN_LENGTH = 60
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


@dataclass(frozen=True, slots=True)
class Summary:
    """What an import did, in rows: read = written + replaced + rejected.

    `written` are observations that the store did not have; `replaced` are rows that took the place of an observation
    in the store or of an earlier row of the import. `rejected_files` hold the rejected rows, a file for each input.
    """

    read: int
    written: int
    replaced: int
    rejected: int
    rejected_files: tuple[Path, ...] = ()


@dataclass(frozen=True, slots=True)
class Family:
    """What can be imported: its ledger family, the forms of its files, and by table which field fills which column.

    Every row fills the first table.
    """

    name: str
    forms: Sequence[Form]
    tables: Mapping[str, tuple[str, str]]


PRICES = Family("prices", PRICE_FORMS, {"price": ("price", "price")})
RATES = Family("rates", RATE_FORMS, {"lend_rate": ("lend", "apr"), "borrow_rate": ("borrow", "apr")})


def import_files(
    family: Family,
    store: Store,
    files: Sequence[Path],
    assets: Path | None,
    unit: TimeUnit,
    skip_invalid: bool,
    at: datetime,
    reporter: Reporter,
    pause: Callable[[float], None] = time.sleep,
) -> Summary:
    """Import files of a family; of several rows for one asset and second the later one wins, over files in their order.

    `assets` is the assets file; without one, files can only name registered assets, or those that a file of rates
    describes itself. `at` is now: later observations than that, give or take a day, are refused. ImportRefused, before
    anything is written, when a file or (without `skip_invalid`) a row is bad. StoreUnavailable when ClickHouse stays
    away; the same import may then be repeated.
    """
    listed = read_assets_file(assets) if assets else []
    tables = _opened(files, family.forms)
    registered = read_assets(store)
    if family is RATES:
        known_addresses = {asset.group_key.lower() for asset in [*listed, *registered.values()]}
        named = read_named_assets(tables)
        listed += [asset for asset in named if asset.group_key.lower() not in known_addresses]
    names = Names.of(listed, registered.values())
    judged, rejected_files = _judged(tables, names, unit, skip_invalid, at, reporter)
    rows = _in_order(judged)
    if family is RATES:
        rows = _with_rates_of_zero(rows)
    new = [asset for asset in listed if asset.id not in registered]
    source = ", ".join(path.name for path in files)
    known = _written(store, family, rows, new, source, reporter, pause) if len(rows) else 0
    read, rejected = sum(each.read for each in judged), sum(each.rejected for each in judged)
    written = rows.height - known
    return Summary(read, written, read - rejected - written, rejected, tuple(rejected_files))


import_prices = partial(import_files, PRICES)
import_rates = partial(import_files, RATES)


def _opened(files: Sequence[Path], forms: Sequence[Form]) -> list[Table]:
    tables = [open_table(path, forms) for path in files]
    seen: set[Path] = set()
    for path in files:
        if path.resolve() in seen:
            raise ImportRefused(f"{path} is given twice. Name each file once.")
        seen.add(path.resolve())
    return tables


def _judged(
    tables: list[Table], names: Names, unit: TimeUnit, skip_invalid: bool, at: datetime, reporter: Reporter
) -> tuple[list[Judged], list[Path]]:
    """The outcome of each file, and the files of rejected rows, which are complete when this returns."""
    judged: list[Judged] = []
    examples: list[str] = []
    with ExitStack() as stack:
        kept = [stack.enter_context(RejectedFile(table)) for table in tables]
        for table, file in zip(tables, kept, strict=True):

            def reject(bad: pl.DataFrame, table: Table = table, file: RejectedFile = file) -> None:
                examples.extend(_example(table, row) for row in bad.head(_SHOWN - len(examples)).iter_rows(named=True))
                if skip_invalid:
                    file.add(bad)

            reporter.stage(f"Reading {table.path.name}", table.size)
            judged.append(judge_table(table, names, unit, at, reject, reporter.advance))
        rejected = sum(each.rejected for each in judged)
        if rejected and not skip_invalid:
            raise ImportRefused(_refusal(rejected, sum(each.read for each in judged), examples))
        return judged, [path for file in kept for path in file.keep()]


def _example(table: Table, row: dict[str, str]) -> str:
    raw = ",".join(row[field] for field in table.fields)
    shown = raw if len(raw) <= _SHOWN_LENGTH else raw[:_SHOWN_LENGTH] + "..."
    return f"  {table.path}, {table.place} {row['line']}: {shown!r}: {row['reason']}"


def _refusal(rejected: int, read: int, examples: list[str]) -> str:
    more = [f"  and {rejected - len(examples):,} more"] if rejected > len(examples) else []
    return "\n".join(
        [
            f"{rejected:,} of {read:,} rows cannot be imported, so nothing was written:",
            *examples,
            *more,
            "Correct them, or import the others with --skip-invalid.",
        ]
    )


def _in_order(judged: list[Judged]) -> pl.DataFrame:
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


def _with_rates_of_zero(rows: pl.DataFrame) -> pl.DataFrame:
    """Rows without a borrow rate say 0 where the asset can be borrowed, or is, in another row."""
    borrowed = pl.col("borrow").is_not_null().any().over("asset")
    return rows.with_columns(pl.when(borrowed).then(pl.col("borrow").fill_null(0)).alias("borrow"))


def _written(
    store: Store,
    family: Family,
    rows: pl.DataFrame,
    new: list[Asset],
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
