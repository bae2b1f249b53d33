"""Imports files of history: validates every row, then writes the good rows.

Validated rows are kept in memory, at 21 to 24 bytes each (ten million take a quarter of a gigabyte), so that the last
of several rows wins across all files before anything is sent.
"""

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from analytics_service.imports.assets_file import as_registered, differ, read_assets_file
from analytics_service.imports.described_assets import read_described_assets
from analytics_service.imports.families import Family
from analytics_service.imports.files import require_distinct
from analytics_service.imports.forms import Form, FormTable, recognized
from analytics_service.imports.loaded import Loaded, Summary
from analytics_service.imports.merging import merged
from analytics_service.imports.opening import open_table
from analytics_service.imports.rejected import rejections
from analytics_service.imports.validation import Names, Rules, TimeUnit, ValidatedFile, validate_file
from analytics_service.store.admission import require_admitted
from analytics_service.store.assets import read_assets
from analytics_service.store.connection import Store
from analytics_service.store.ledger import IMPORTED, read_state
from analytics_service.store.observations import read_series
from analytics_service.store.progress import Reporter


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
    return _read(store, request, at, reporter, keep_rejected=True).write(store, reporter, wait)


def try_import(store: Store | None, request: Request, at: datetime, reporter: Reporter) -> Summary:
    """The result that an import of the files would have; None means an empty store. Nothing is written, not even files
    of rejected rows.

    Errors are those of `import_files`.
    """
    return _read(store, request, at, reporter, keep_rejected=False).compare(store, reporter)


def _read(store: Store | None, request: Request, at: datetime, reporter: Reporter, *, keep_rejected: bool) -> Loaded:
    """Read and validate all files. Writes only files of rejected rows, with `keep_rejected`."""
    if store is not None:
        require_admitted(store, IMPORTED)
    listed = read_assets_file(request.assets) if request.assets else []
    tables = _opened(request.files, request.family.forms)
    registered = read_assets(store) if store is not None else {}
    listed = [as_registered(asset, registered) for asset in listed]
    kept = [stored for asset in listed if (stored := registered.get(asset.id)) and differ(asset, stored)]
    listed += read_described_assets(tables, known_assets=[*listed, *registered.values()])
    rules = Rules(Names.of(listed, registered.values()), request.unit, at)
    files: list[ValidatedFile] = []
    with rejections(tables, skip=request.skip_invalid, keep=keep_rejected) as rejects:
        for index, table in enumerate(tables):
            reporter.stage(f"Reading {table.path.name}", table.size)
            files.append(validate_file(table, rules, rejects.of(table, index), reporter.advance))
        read, rejected = sum(file.read for file in files), sum(file.rejected for file in files)
        rejected_files = rejects.finish(read, rejected)
    rows = merged(request.family, files, _begun(store, request.family))
    new = [asset for asset in listed if asset.id not in registered]
    return Loaded(request.family, request.files, read, rejected, rejected_files, rows, new, kept)


def _begun(store: Store | None, family: Family) -> Mapping[str, Collection[str]]:
    """The ids of the assets that have values in the store, by each of the family's `zero_fields`."""
    if store is None or (head := read_state(store, family.name)) is None:
        return dict.fromkeys(family.zero_fields, ())
    return {field: read_series(store, family.histories[field], head.last_observed_at) for field in family.zero_fields}


def _opened(files: Sequence[Path], forms: Sequence[Form]) -> list[FormTable]:
    require_distinct(files)
    return [recognized(open_table(path), forms) for path in files]
