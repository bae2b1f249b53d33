"""The content of files that were read, and what becomes of it: written, or only compared with the store."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from analytics_service.imports.batches import count_stored
from analytics_service.imports.families import Family
from analytics_service.imports.publishing import Content, publish
from analytics_service.market.assets import Asset
from analytics_service.store.connection import Store
from analytics_service.store.progress import Reporter


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


@dataclass(frozen=True, slots=True)
class Loaded:
    """The content of files of a family: counts of rows that were read and rejected, the merged good rows, new assets,
    and assets that keep the store's description although the assets file has a different one."""

    family: Family
    files: Sequence[Path]
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

    def write(self, store: Store, reporter: Reporter, wait: Callable[[float], bool | None] = time.sleep) -> Summary:
        """Write the rows and the new assets. `wait` pauses between attempts while ClickHouse is away. StoreUnavailable
        when it stays away; the same import may then be repeated."""
        content = Content(self.family, self.rows, self.new, self.files)
        return self.summary(publish(store, content, reporter, wait) if len(self.rows) else 0)

    def compare(self, store: Store | None, reporter: Reporter) -> Summary:
        """What writing would do; None means an empty store."""
        return self.summary(count_stored(store, self.family, self.rows, reporter) if store is not None else 0)
