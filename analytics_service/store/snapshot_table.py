"""Tables with separate rows for each snapshot: a single declaration for writing and reading them."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from analytics_service.store.columns import Columns, Row, decoded, encoded, select_list
from analytics_service.store.connection import Store


# Compared by identity, because each is declared once and is a key of `SnapshotRows`.
@dataclass(frozen=True, slots=True, eq=False)
class SnapshotTable:
    """A table of a family, with the columns below, `observed_at` (instant of the snapshot) and `version`.

    A snapshot has a row for each value of `key`. A table without further key columns has a single row for each
    snapshot.
    """

    name: str
    family: str
    columns: Columns
    key: tuple[str, ...] = ("observed_at",)

    def frame(self, rows: Iterable[Row]) -> pl.DataFrame:
        """Rows of a snapshot as a batch to insert, without `observed_at` and `version`.

        OutOfRange for a value that the store cannot hold.
        """
        return encoded(rows, self.columns)

    def read(self, store: Store, at: int, only: str = "true", **parameters: str) -> Iterator[dict[str, Any]]:
        """The rows of a complete snapshot (unix second), as values of the domain, in the order of the key.

        `only` is an SQL condition on the rows, whose values are bound from the parameters.
        """
        placeholders = {"columns": select_list(self.columns), "key": ", ".join(self.key), "only": only}
        rows = store.frame("snapshot_rows", placeholders, table=self.name, family=self.family, at=at, **parameters)
        return (decoded(row, self.columns) for row in rows.iter_rows(named=True))


# The rows of a snapshot by table: values of the domain by column.
SnapshotRows = Mapping[SnapshotTable, Sequence[Row]]
