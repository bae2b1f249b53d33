"""Bytes per row of a column with each codec that it could have."""

from collections.abc import Iterator, Sequence
from typing import Any

from clickhouse_connect.driver.client import Client
from clickhouse_connect.driver.query import QueryResult

from tests.benchmarks.harness import Figure

# For instants, versions and ranks.
WHOLE_NUMBERS = (
    "LZ4",
    "ZSTD(1)",
    "T64, LZ4",
    "T64, ZSTD(1)",
    "Delta, LZ4",
    "Delta, ZSTD(1)",
    "DoubleDelta, LZ4",
    "DoubleDelta, ZSTD(1)",
    "Delta, T64, LZ4",
    "Delta, T64, ZSTD(1)",
    "Delta, T64, ZSTD(9)",
)
# T64, Delta, DoubleDelta, Gorilla and FPC are refused for 128 bits and more. GCD divides a block by what all its values
# share: the zeros at the end of prices that have fewer than 18 decimals.
DECIMALS = (
    "NONE",
    "LZ4",
    "ZSTD(1)",
    "ZSTD(3)",
    "ZSTD(9)",
    "GCD, LZ4",
    "GCD, ZSTD(1)",
    "GCD, ZSTD(3)",
    "GCD, ZSTD(6)",
    "GCD, ZSTD(9)",
)
_KEYS = """
SELECT partition_key, sorting_key
FROM system.tables
WHERE database = currentDatabase() AND name = {table:String}
"""
_TYPES = """
SELECT name, type
FROM system.columns
WHERE database = currentDatabase() AND table = {table:String}
"""
# Only parts in the wide format report the bytes of each column.
_CREATE = """
CREATE TABLE candidates ({columns})
ENGINE = MergeTree PARTITION BY {partition} ORDER BY ({order})
SETTINGS min_bytes_for_wide_part = 0
"""
_BYTES = """
SELECT column, sum(column_data_compressed_bytes) / sum(rows)
FROM system.parts_columns
WHERE active AND database = currentDatabase() AND table = 'candidates'
GROUP BY column
"""


def measure(client: Client, table: str, column: str, codecs: Sequence[str], label: str) -> Iterator[Figure]:
    """Bytes per row of a column by codec, with rows sorted and partitioned as in their table, and merged."""
    partition, order = client.query(_KEYS, parameters={"table": table}).result_rows[0]
    types = _pairs(client.query(_TYPES, parameters={"table": table}))
    keys = order.split(", ")
    copies = {f"c{place}": codec for place, codec in enumerate(codecs)}
    columns = [f"{key} {types[key]}" for key in keys]
    columns += [f"{name} {types[column]} CODEC({codec})" for name, codec in copies.items()]
    client.command(_CREATE.format(columns=", ".join(columns), partition=partition or "tuple()", order=order))
    try:
        selected = ", ".join([*keys, *(f"{column} AS {name}" for name in copies)])
        client.command(f"INSERT INTO candidates SELECT {selected} FROM {table} FINAL")
        client.command("OPTIMIZE TABLE candidates FINAL")
        found = _pairs(client.query(_BYTES))
    finally:
        client.command("DROP TABLE candidates SYNC")
    for name, codec in copies.items():
        yield Figure(f"{label}: {table}.{column} {codec}", found[name], "bytes/row")


def _pairs(answer: QueryResult) -> dict[str, Any]:
    """The second column by the first."""
    return {name: value for name, value in answer.result_rows}  # noqa: C416 - dict() of rows has no type
