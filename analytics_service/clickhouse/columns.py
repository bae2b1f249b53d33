"""Encodes domain values as ClickHouse columns, and decodes them; declares and reads tables of snapshots."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from analytics_service.clickhouse.connection import Store
from analytics_service.errors import OutOfRange
from analytics_service.market.kinds import Amount, ColumnType, Time

# Columns that identify a row in error messages.
_NAMING = ("id", "asset_id", "address", "contract", "arrangement", "pool")
# Raised for values that a column cannot hold, wrong types included.
UNFIT = (OutOfRange, TypeError, ValueError, AttributeError, OverflowError, ArithmeticError, pl.exceptions.PolarsError)
# Columns with the time of an observation or an event.
TIMES = ("observed_at", "at")


Columns = Mapping[str, ColumnType]
Row = Mapping[str, Any]


def schema_of(columns: Columns) -> dict[str, type[pl.DataType] | pl.DataType]:
    return {name: kind.dtype for name, kind in columns.items()}


def select_list(columns: Columns) -> str:
    """The SELECT list of columns, with amounts as strings."""
    return ", ".join(
        f"toString({name}) AS {name}" if isinstance(kind, Amount) else name for name, kind in columns.items()
    )


def encode_rows(rows: Iterable[Row], columns: Columns) -> pl.DataFrame:
    """Rows of domain values as a batch to insert. OutOfRange names the row that the store cannot hold."""
    kept = list(rows)
    return _frame({name: [row[name] for row in kept] for name in columns}, columns)


def encode_tuples(rows: Iterable[tuple[Any, ...]], columns: Columns) -> pl.DataFrame:
    """Rows of values in the order of columns, as a batch to insert; faster than `encode_rows` for many rows."""
    values = [*zip(*rows, strict=True)] or [()] * len(columns)
    return _frame({name: [*column] for name, column in zip(columns, values, strict=True)}, columns)


def decode_rows(row: Row, columns: Columns) -> dict[str, Any]:
    """A stored row as domain values."""
    return {name: None if row[name] is None else column.decode(row[name]) for name, column in columns.items()}


def with_version(rows: pl.DataFrame, version: int) -> pl.DataFrame:
    return rows.with_columns(version=pl.lit(version, pl.UInt64))


def _frame(data: Mapping[str, list[Any]], columns: Columns) -> pl.DataFrame:
    return pl.DataFrame([_series(name, columns[name], values, data) for name, values in data.items()])


def _series(name: str, kind: ColumnType, values: list[Any], data: Mapping[str, list[Any]]) -> pl.Series:
    try:
        return _fit(name, kind, values)
    except UNFIT:
        for index, value in enumerate(values):
            require_fit(name, kind, value, {key: data[key][index] for key in _NAMING if key in data})
        raise


def require_fit(name: str, kind: ColumnType, value: Any, naming: Mapping[str, Any]) -> None:
    """OutOfRange, identifying the row, for a value that the column cannot hold."""
    try:
        _fit(name, kind, [value])
    except UNFIT as error:
        whose = ", ".join(f"{key} {identifier}" for key, identifier in naming.items() if key != name)
        reason = error if isinstance(error, OutOfRange) else f"{value!r} cannot be stored: {error}"
        raise OutOfRange(f"{name}{f' of {whose}' if whose else ''}: {reason}") from error


def _fit(name: str, kind: ColumnType, values: list[Any]) -> pl.Series:
    if type(kind).encode is not ColumnType.encode:
        encode = kind.encode
        values = [None if value is None else encode(value) for value in values]
    series = pl.Series(name, values, dtype=kind.dtype)
    if not series.has_nulls():
        return series
    if not kind.nullable:
        raise OutOfRange("None cannot be stored: a value is required.")
    return series if kind.nothing is None else series.fill_null(kind.nothing)


# Compared by identity, because each table is declared once and is a key of `SnapshotRows`.
@dataclass(frozen=True, slots=True, eq=False)
class SnapshotTable:
    """A table of a dataset, with `columns`, `observed_at` (instant of the snapshot) and `version`. A snapshot has a row
    for each value of `key`; with the default key, a single row."""

    name: str
    dataset: str
    columns: Columns
    key: tuple[str, ...] = ("observed_at",)

    def to_frame(self, rows: Iterable[Row]) -> pl.DataFrame:
        """Rows of a snapshot as a batch to insert, without `observed_at` and `version`."""
        return encode_rows(rows, self.columns)

    def count(self, rows: Iterable[Row]) -> int:
        """The number of stored rows of a snapshot; rows with the same key count once."""
        return len({tuple(row.get(name) for name in self.key) for row in rows})

    def read(self, store: Store, at: int, only: str = "true", **parameters: str) -> Iterator[dict[str, Any]]:
        """The rows of a complete snapshot (unix second), as domain values, in the order of the key. `only` is an SQL
        condition on rows, whose values are bound from the parameters."""
        placeholders = {"columns": select_list(self.columns), "key": ", ".join(self.key), "only": only}
        rows = store.query(
            "read_snapshot_rows", placeholders, table=self.name, dataset=self.dataset, at=at, **parameters
        )
        return (decode_rows(row, self.columns) for row in rows.iter_rows(named=True))


class Snapshots:
    """The rows of some complete snapshots: `versions` by dataset and unix second. Tables with a row for each asset are
    restricted to `ids`, if given. Reads each table whole, on its first use."""

    def __init__(
        self, store: Store, versions: Mapping[str, Mapping[int, int]], ids: Sequence[str] | None = None
    ) -> None:
        self.versions = versions
        self._store, self._ids = store, ids
        self._frames: dict[SnapshotTable, dict[int, pl.DataFrame]] = {}

    def frames(self, table: SnapshotTable) -> Mapping[int, pl.DataFrame]:
        """The rows of a table, with `observed_at`, by the unix second of their snapshot, oldest first."""
        if table not in self._frames:
            parts = self._read(table).partition_by("observed_at", maintain_order=True)
            self._frames[table] = {part["observed_at"][0]: part for part in parts}
        return self._frames[table]

    def read(self, table: SnapshotTable, at: int) -> list[dict[str, Any]]:
        """The rows of the snapshot at a second, as from `SnapshotTable.read`."""
        rows = self.frames(table).get(at)
        return [] if rows is None else [decode_rows(row, table.columns) for row in rows.rows(named=True)]

    def _read(self, table: SnapshotTable) -> pl.DataFrame:
        only = "true" if self._ids is None or "asset_id" not in table.key else "asset_id IN {ids:Array(String)}"
        placeholders = {"columns": select_list(table.columns), "key": ", ".join(table.key), "only": only}
        listed = self.versions[table.dataset]
        bound = {"seconds": list(listed), "versions": list(listed.values()), "ids": list(self._ids or ())}
        rows = self._store.query("read_rows_of_snapshots", placeholders, table=table.name, **bound)
        schema = schema_of({**table.columns, "observed_at": Time()})
        return rows.select(pl.col(name).cast(dtype) for name, dtype in schema.items())


# The rows of a snapshot by table: domain values by column.
SnapshotRows = Mapping[SnapshotTable, Sequence[Row]]
# Reads a snapshot's rows of a table.
Read = Callable[[SnapshotTable], Iterable[dict[str, Any]]]
