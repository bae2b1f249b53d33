"""Many rows in memory: compressed to a seventh of their size, and in parts by address."""

import io
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice

import polars as pl

# Rows that are handled at a time: some 15 MB of items.
_ROWS = 100_000
# Rows that are worth dividing, which takes a sixth of a snapshot's time: those of 100,000 accounts.
_MANY = 400_000
# Parts that rows are divided into: of a million addresses, each has some 15 MB of items, too.
_PARTS = 32


def join_batches(frames: Iterable[pl.DataFrame], rows: int = _ROWS) -> Iterator[pl.DataFrame]:
    """The same rows in frames that have at least so many rows each, but for the last."""
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
    """Rows that are added to, and read again in their order. Without being compressed, even a few would hold the texts
    of all that they were chosen from."""

    def __init__(self) -> None:
        self.height = 0
        self._packed: list[bytes] = []

    def add(self, rows: pl.DataFrame) -> None:
        """Add rows."""
        if rows.height:
            body = io.BytesIO()
            rows.write_ipc_stream(body, compression="zstd")
            self._packed.append(body.getvalue())
            self.height += rows.height

    def __iter__(self) -> Iterator[pl.DataFrame]:
        return join_batches(map(pl.read_ipc_stream, self._packed))


class HashPartitions:
    """Rows with an address, in parts that each have all rows of their addresses. Few rows are a single part."""

    def __init__(self, frames: Iterable[pl.DataFrame]) -> None:
        large = join_batches(frames, _MANY)
        first = [*islice(large, 2)]
        self._parts = [RowBatches() for _ in range(_PARTS if first[1:] else 1)]
        for rows in chain(first, large):
            for pieces, part in zip(self._parts, self.divided(rows), strict=True):
                pieces.add(part)

    def __iter__(self) -> Iterator[RowBatches]:
        return iter(self._parts)

    def divided(self, rows: pl.DataFrame) -> Sequence[pl.DataFrame]:
        """Other rows with an address, part by part."""
        if len(self._parts) == 1:
            return [rows]
        part = (pl.col("address").hash() % _PARTS).alias("part")
        parts = rows.with_columns(part).partition_by("part", as_dict=True, include_key=False)
        return [parts.get((index,), rows.clear()) for index in range(_PARTS)]
