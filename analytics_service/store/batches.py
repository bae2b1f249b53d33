"""Rows in memory: compressed to a seventh of their size, or partitioned by address."""

import io
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice

import polars as pl

# Rows of a batch: 15 MB of position items.
_ROWS = 100_000
# More rows than this (100,000 accounts) are partitioned. Partitioning takes a sixth of a snapshot's time.
_MANY = 400_000
# A million addresses make partitions of 15 MB each.
_PARTITIONS = 32


def join_batches(frames: Iterable[pl.DataFrame], rows: int = _ROWS) -> Iterator[pl.DataFrame]:
    """Concatenates frames into batches of at least `rows` rows; the last may be smaller."""
    held: list[pl.DataFrame] = []
    height = 0
    for frame in frames:
        held.append(frame)
        height += frame.height
        if height >= rows:
            yield pl.concat(held)
            held, height = [], 0
    if height:
        yield pl.concat(held)


class RowBatches:
    """A compressed, append-only list of rows. Uncompressed, a few rows would keep alive the strings of the whole frame
    that they were selected from."""

    def __init__(self) -> None:
        self.height = 0
        self._packed: list[bytes] = []

    def add(self, rows: pl.DataFrame) -> None:
        if rows.height:
            body = io.BytesIO()
            rows.write_ipc_stream(body, compression="zstd")
            self._packed.append(body.getvalue())
            self.height += rows.height

    def __iter__(self) -> Iterator[pl.DataFrame]:
        return join_batches(map(pl.read_ipc_stream, self._packed))


class HashPartitions:
    """Partitions of rows by address: all rows of an address are in one partition. Few rows make a single partition."""

    def __init__(self, frames: Iterable[pl.DataFrame]) -> None:
        large = join_batches(frames, _MANY)
        first = [*islice(large, 2)]
        self._partitions = [RowBatches() for _ in range(_PARTITIONS if first[1:] else 1)]
        for rows in chain(first, large):
            for batches, part in zip(self._partitions, self.divided(rows), strict=True):
                batches.add(part)

    def __iter__(self) -> Iterator[RowBatches]:
        return iter(self._partitions)

    def divided(self, rows: pl.DataFrame) -> Sequence[pl.DataFrame]:
        """Other rows with an address, one frame for each partition."""
        if len(self._partitions) == 1:
            return [rows]
        partition = (pl.col("address").hash() % _PARTITIONS).alias("partition")
        frames = rows.with_columns(partition).partition_by("partition", as_dict=True, include_key=False)
        return [frames.get((index,), rows.clear()) for index in range(_PARTITIONS)]
