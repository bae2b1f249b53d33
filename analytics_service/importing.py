"""Imports files of history: judges every row first, and then has the good ones written.

The judged rows wait in memory between the two steps, in 21 to 24 bytes each: ten million take a quarter of a
gigabyte. That is simpler than reading the files twice, and lets the later line win over all files before anything is
sent.
"""

import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path

import polars as pl

from analytics_service.errors import ImportRefused
from analytics_service.import_families import PRICES, RATES, Family
from analytics_service.import_writing import Reporter, in_order, write
from analytics_service.sources.assets_file import read_assets_file
from analytics_service.sources.files import Judged, Names, TimeUnit, judge_table
from analytics_service.sources.rates_file import read_named_assets
from analytics_service.sources.rejected import RejectedFile
from analytics_service.sources.tables import Form, Table, open_table
from analytics_service.store.assets import read_assets
from analytics_service.store.connection import Store

_SHOWN = 5
_SHOWN_LENGTH = 60


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
    rows = in_order(judged)
    if family is RATES:
        rows = _with_rates_of_zero(rows)
    new = [asset for asset in listed if asset.id not in registered]
    source = ", ".join(path.name for path in files)
    known = write(store, family, rows, new, source, reporter, pause) if len(rows) else 0
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


def _with_rates_of_zero(rows: pl.DataFrame) -> pl.DataFrame:
    """Rows without a borrow rate say 0 where the asset can be borrowed, or is, in another row."""
    borrowed = pl.col("borrow").is_not_null().any().over("asset")
    return rows.with_columns(pl.when(borrowed).then(pl.col("borrow").fill_null(0)).alias("borrow"))
