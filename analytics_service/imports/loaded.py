"""The content of files that were read, and the result of writing it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from analytics_service.imports.presets import Preset
from analytics_service.imports.reading import ReadFile
from analytics_service.market.assets import Asset


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
    """The content of files, and how each was read: the merged good rows, the assets that they bring, and those that
    keep the store's description although the assets file has a different one. `symbols` are those of the rows' assets,
    by id, and `notes` say what may not be meant."""

    preset: Preset
    files: Sequence[ReadFile]
    rows: pl.DataFrame
    rejected_files: Sequence[Path]
    new: Sequence[Asset]
    kept: Sequence[Asset]
    symbols: Mapping[str, str]
    notes: Sequence[str]

    def summary(self, already_stored: int) -> Summary:
        """The summary, given the number of rows that the store already had."""
        read, rejected = sum(file.read for file in self.files), sum(file.rejected for file in self.files)
        written = self.rows.height - already_stored
        observations = self.preset.observations(self.rows)
        files, kept = tuple(self.rejected_files), tuple(self.kept)
        return Summary(read, written, read - rejected - written, rejected, observations, files, kept)
