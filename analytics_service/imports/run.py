"""Imports files of history: validates every row, then writes the good rows.

Validated rows are kept in memory, at 21 to 24 bytes each (ten million take a quarter of a gigabyte), so that the last
of several rows wins across all files before anything is sent.
"""

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

import polars as pl

from analytics_service.errors import ImportRefused
from analytics_service.imports.assets_file import differ, read_assets_file
from analytics_service.imports.batches import count_stored
from analytics_service.imports.described_assets import read_described_assets
from analytics_service.imports.families import Family
from analytics_service.imports.forms import Form
from analytics_service.imports.merging import merged
from analytics_service.imports.publishing import Content, publish
from analytics_service.imports.rejected import RejectedFile
from analytics_service.imports.tables import Table, open_table
from analytics_service.imports.validation import Names, Rules, TimeUnit, ValidatedFile, validate_file
from analytics_service.market.assets import Asset, as_stored, split_id
from analytics_service.store.admission import require_admitted
from analytics_service.store.assets import read_assets
from analytics_service.store.connection import Store
from analytics_service.store.ledger import IMPORTED, read_state
from analytics_service.store.observations import read_series
from analytics_service.store.progress import Reporter

# Limit of rows, or assets, that a message names.
SHOWN = 5
_SHOWN_LENGTH = 60


@dataclass(frozen=True, slots=True)
class Request:
    """Files of a family to import, with the unit of their times.

    `assets` is the assets file; without it, files can only name registered assets, or assets that they describe
    themselves. With `skip_invalid` the good rows are imported even if others are bad.
    """

    family: Family
    files: Sequence[Path]
    assets: Path | None = None
    unit: TimeUnit = "s"
    skip_invalid: bool = False


@dataclass(frozen=True, slots=True)
class Summary:
    """The result of an import, or of trying it, in rows: read = written + replaced + rejected.

    `written` counts rows whose asset and second were not in the store; `replaced` counts rows that replaced a row in
    the store or an earlier row of the import. `observations` counts the import's observations by history, as the ledger
    and `status` do: a row of a file of rates has up to two. `rejected_files` contain the rejected rows, a file for each
    input. `kept` are the assets whose description in the assets file differs from that in the store, which is kept.
    """

    read: int
    written: int
    replaced: int
    rejected: int
    observations: Mapping[str, int]
    rejected_files: tuple[Path, ...] = ()
    kept: tuple[Asset, ...] = ()


def import_files(
    store: Store,
    request: Request,
    at: datetime,
    reporter: Reporter,
    wait: Callable[[float], bool | None] = time.sleep,
) -> Summary:
    """Import files. Of several rows for the same asset and second the last one wins, over all files in their order.

    `at` is the present instant: observations more than a day later are refused. `wait` pauses between attempts while
    ClickHouse is away. Before anything is written, SourceRefused when the store holds simulated data (rule 8.7),
    ImportRefused when a file or (without `skip_invalid`) a row is bad. StoreUnavailable when ClickHouse stays away; the
    same import may then be repeated.
    """
    loaded = _read(store, request, at, reporter, keep_rejected=True)
    content = Content(request.family, loaded.rows, loaded.new, request.files)
    return loaded.summary(publish(store, content, reporter, wait) if len(loaded.rows) else 0)


def try_import(store: Store | None, request: Request, at: datetime, reporter: Reporter) -> Summary:
    """The result that an import of the files would have; None means an empty store. Nothing is written, not even files
    of rejected rows.

    Errors are those of `import_files`.
    """
    loaded = _read(store, request, at, reporter, keep_rejected=False)
    return loaded.summary(count_stored(store, request.family, loaded.rows, reporter) if store is not None else 0)


@dataclass(frozen=True, slots=True)
class _Loaded:
    """The content of files of a family: counts of rows that were read and rejected, the merged good rows, new assets,
    and assets that keep the store's description although the assets file has a different one."""

    family: Family
    read: int
    rejected: int
    rejected_files: Sequence[Path]
    rows: pl.DataFrame
    new: Sequence[Asset]
    kept: Sequence[Asset]

    def summary(self, already_stored: int) -> Summary:
        """The summary, given the number of rows that the store already had."""
        written = self.rows.height - already_stored
        replaced = self.read - self.rejected - written
        observations = self.family.observations(self.rows)
        files, kept = tuple(self.rejected_files), tuple(self.kept)
        return Summary(self.read, written, replaced, self.rejected, observations, files, kept)


def _read(store: Store | None, request: Request, at: datetime, reporter: Reporter, *, keep_rejected: bool) -> _Loaded:
    """Read and validate all files. Writes only files of rejected rows, with `keep_rejected`."""
    if store is not None:
        require_admitted(store, IMPORTED)
    listed = read_assets_file(request.assets) if request.assets else []
    tables = _opened(request.files, request.family.forms)
    registered = read_assets(store) if store is not None else {}
    listed = [_as_registered(asset, registered) for asset in listed]
    kept = [stored for asset in listed if (stored := registered.get(asset.id)) and differ(asset, stored)]
    listed += read_described_assets(tables, known_assets=[*listed, *registered.values()])
    rules = Rules(Names.of(listed, registered.values()), request.unit, at)
    files, rejected_files = _validated(tables, rules, request.skip_invalid, keep_rejected, reporter)
    rows = merged(request.family, files, _begun(store, request.family))
    new = [asset for asset in listed if asset.id not in registered]
    read, rejected = sum(file.read for file in files), sum(file.rejected for file in files)
    return _Loaded(request.family, read, rejected, rejected_files, rows, new, kept)


def _begun(store: Store | None, family: Family) -> Mapping[str, Collection[str]]:
    """The ids of the assets that have values in the store, by each of the family's `zero_fields`."""
    if store is None or (head := read_state(store, family.name)) is None:
        return dict.fromkeys(family.zero_fields, ())
    return {field: read_series(store, family.histories[field], head.last_observed_at) for field in family.zero_fields}


def _as_registered(asset: Asset, registered: Collection[str]) -> Asset:
    """The asset with the key that it has in the store, which may be in another case (rule 3.4)."""
    (stored,) = as_stored([asset.id], registered)
    return replace(asset, group_key=split_id(stored)[1])


def _opened(files: Sequence[Path], forms: Sequence[Form]) -> list[Table]:
    tables = [open_table(path, forms) for path in files]
    resolved: set[Path] = set()
    for path in files:
        if path.resolve() in resolved:
            raise ImportRefused(f"{path} is given twice. Name each file once.")
        resolved.add(path.resolve())
    return tables


def _validated(
    tables: Sequence[Table], rules: Rules, skip_invalid: bool, keep_rejected: bool, reporter: Reporter
) -> tuple[list[ValidatedFile], list[Path]]:
    """The rows of each file, and the files of rejected rows, which are complete when this returns."""
    files: list[ValidatedFile] = []
    examples: list[str] = []
    with ExitStack() as stack:
        rejects = [stack.enter_context(RejectedFile(table)) for table in tables]
        for table, rejected_file in zip(tables, rejects, strict=True):

            def reject(bad: pl.DataFrame, table: Table = table, file: RejectedFile = rejected_file) -> None:
                examples.extend(_example(table, row) for row in bad.head(SHOWN - len(examples)).iter_rows(named=True))
                if skip_invalid and keep_rejected:
                    file.add(bad)

            reporter.stage(f"Reading {table.path.name}", table.size)
            files.append(validate_file(table, rules, reject, reporter.advance))
        rejected = sum(file.rejected for file in files)
        if rejected and not skip_invalid:
            raise ImportRefused(_refusal(rejected, sum(file.read for file in files), examples))
        return files, [path for file in rejects for path in file.keep()]


def with_rest(lines: Sequence[str], count: int) -> list[str]:
    """Lines about the first of `count` items, and a line with the number of the others."""
    remaining = count - len(lines)
    return [*lines, f"  and {remaining:,} more"] if remaining else [*lines]


def _example(table: Table, row: dict[str, str]) -> str:
    raw = ",".join(row[field] for field in table.fields)
    shown = raw if len(raw) <= _SHOWN_LENGTH else raw[:_SHOWN_LENGTH] + "..."
    return f"  {table.path}, {table.row_label} {row['line']}: {shown!r}: {row['reason']}"


def _refusal(rejected: int, read: int, examples: list[str]) -> str:
    return "\n".join(
        [
            f"{rejected:,} of {read:,} rows cannot be imported, so nothing was written:",
            *with_rest(examples, rejected),
            "Correct them, or import the others with --skip-invalid.",
        ]
    )
