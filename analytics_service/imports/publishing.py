"""Stages an import's rows where no reader sees them, then publishes all of them at once.

An import that was stopped leaves only rows of its own version. The next run has a greater version, and its result is
the same as without the interruption.
"""

import hashlib
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import polars as pl

from analytics_service.errors import ImportRefused, StoreUnavailable
from analytics_service.imports.assets_file import differ
from analytics_service.imports.batches import BatchWriter, count_stored
from analytics_service.imports.loaded import Loaded, Summary
from analytics_service.market.assets import Asset, as_stored
from analytics_service.store import ledger, rewrite
from analytics_service.store.admission import claim, read_side
from analytics_service.store.assets import ASSETS, changed_assets, read_assets
from analytics_service.store.columns import versioned
from analytics_service.store.connection import Store
from analytics_service.store.families import TABLES
from analytics_service.store.progress import Reporter
from analytics_service.store.retries import Retries
from analytics_service.store.rewrite import staging


def names_of(files: Sequence[Path]) -> str:
    """The names of files, as the ledger has them."""
    return ", ".join(path.name for path in files)


def retries(wait: Callable[[float], bool | None]) -> Retries:
    """The retries of an import: in half a minute the embedded server can restart many times. `wait` pauses."""
    return Retries(seconds=32, first_pause=0.25, longest_pause=8, wait=wait)


def number_of(files: Sequence[Path]) -> int:
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


def compare(store: Store | None, loaded: Loaded, reporter: Reporter) -> Summary:
    """What writing would do; None means an empty store."""
    return loaded.summary(count_stored(store, loaded.preset, loaded.rows, reporter) if store else 0)


@resumable()
def publish(
    store: Store, loaded: Loaded, reporter: Reporter, wait: Callable[[float], bool | None] = time.sleep
) -> Summary:
    """Stage the rows, then show them together with the new assets and the ledger's row.

    `wait` pauses between attempts while ClickHouse is away. StoreUnavailable when it stays away; the same import may
    then be repeated.
    """
    if loaded.rows.is_empty():
        return loaded.summary(0)
    retry = retries(wait)
    family, version = loaded.preset.family, retry(lambda: ledger.new_version(store))
    definitions = versioned(retry(lambda: changed_assets(store, loaded.new)), version)
    retry(lambda: claim(store, read_side(store), ledger.IMPORTED))
    with staging(store, family, version, retry) as staged:
        already_stored = BatchWriter(store, loaded.preset, staged, version, retry).write(loaded.rows, reporter)
        retry(lambda: staged.insert(ASSETS, definitions))
        retry(lambda: _require_as_described(store, loaded.new))
        run = _run(loaded, version)
        rewrite.publish(store, staged, [retry(lambda: _with_replaced(store, run))], retry)
    return loaded.summary(already_stored)


def _run(loaded: Loaded, version: int) -> ledger.Run:
    """The row of the ledger for the import."""
    family, paths = loaded.preset.family, [file.table.path for file in loaded.files]
    seconds = pl.col("observed_at")
    first, last = loaded.rows.select(first=seconds.min(), last=seconds.max()).row(0)
    count = sum(loaded.preset.observations(loaded.rows).values())
    # Values of such a family are not all that its snapshots have.
    at = ledger.VALUES_ONLY if TABLES[family] else last
    return ledger.Run(family, at, "import", first, last, count, names_of(paths), version, files=number_of(paths))


def _with_replaced(store: Store, run: ledger.Run) -> ledger.Run:
    """The run, beginning no later than the earlier run of the same files that it replaces in the ledger: the ledger
    must cover every moment that imports have brought."""
    began = store.frame("import_began", family=run.family, at=run.at, files=run.files)["first_observed_at"]
    return replace(run, first_observed_at=min([run.first_observed_at, *began]))


def _require_as_described(store: Store, assets: Sequence[Asset]) -> None:
    """ImportRefused when another run has meanwhile registered a new asset differently: in another spelling (rule 3.4),
    with another symbol, or with other decimals."""
    ids = [asset.id for asset in assets]
    registered = read_assets(store) if ids else {}
    stored = as_stored(ids, registered)
    for asset in assets:
        current = registered.get(asset.id)
        if current is not None and differ(asset, current):
            raise ImportRefused(
                f"Another run has just registered {asset.id} as {current.symbol} with {current.decimals_denom} "
                "decimals, so nothing was written. Run the same command again: it will keep that description."
            )
        if asset.id not in stored:
            raise ImportRefused(
                f"Another run has just registered {asset.id} in another spelling, so nothing was written. "
                "Run the same command again: it will use that one."
            )
