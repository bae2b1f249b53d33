"""Immutable blocks of history in memory: values at the ends of hours, or candles.

A block has consecutive cells: for values, these are hours; for candles, hours or days. Values are ordered by cell:
those of all series in the first cell come first. So a new cell is appended by concatenation. A block keeps texts that
repeat once: rates hold for days, and the open, the high and the low of an hour with one observation are the same.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import TypeVar

import polars as pl

from analytics_service.history.buckets import Buckets
from analytics_service.history.candles import CANDLE, SUMS, no_candles
from analytics_service.history.memory import bytes_of
from analytics_service.history.observations import Observations
from analytics_service.history.sample import layout, no_values, places_among, places_of, rows_from
from analytics_service.history.slots import Lookup

# Texts are kept once where so many of them, at most, differ. A place among them takes four bytes more.
_DISTINCT_SHARE = 2 / 3
# The columns of blocks that have texts.
_TEXTS = ("value", "open", "high", "low")
_Part = TypeVar("_Part", pl.Series, pl.DataFrame)


@dataclass(frozen=True)
class Block:
    """What all `ids` have in consecutive cells, the first being the first cell of the block's slot.

    `values` has a row for each cell and id, cell by cell. For values at the ends of hours, its columns are value
    (decimal text, or null) and observed_at (unix s, or null); for numbers, only value, as a decimal; for candles,
    columns of CANDLE. With `texts`, the columns of text have places in these.
    """

    ids: Sequence[str]
    values: pl.DataFrame
    texts: pl.Series | None = None

    @cached_property
    def size(self) -> int:
        """Bytes in memory."""
        texts = 0 if self.texts is None else bytes_of(self.texts.to_frame())
        newest = self._newest.estimated_size() if "observed_at" in self.values.columns and self.ids else 0
        return bytes_of(self.values) + texts + int(newest)

    @cached_property
    def cells(self) -> int:
        """How many cells it has so far."""
        return self.values.height // max(len(self.ids), 1)

    @cached_property
    def _places(self) -> Mapping[str, int]:
        return places_of(self.ids)

    @cached_property
    def _newest(self) -> pl.Series:
        """The results of `newest`: each page needs one of them, and reading it takes a tenth of working it out."""
        return self.values["observed_at"].reshape((self.cells, len(self.ids))).arr.max()

    def newest(self, hour: int) -> int | None:
        """When the last observation before the end of an hour was made, unix seconds; None before the first."""
        return self._newest[hour] if self.ids else None

    def column(self, name: str, rows: slice | pl.Series) -> pl.Series:
        """Some of the values of a column."""
        found = self.values[name][rows]
        return self.texts[found] if self.texts is not None and name in _TEXTS else found

    def at(self, ids: Sequence[str], cells: Sequence[int], column: str) -> pl.Series:
        """A column's values of some series in some cells (numbers from 0), cell by cell.

        Series that the block does not have get 0 in columns that add up, and null in others.
        """
        return Picked([self], [cells], ids).column(column)

    def rows(self, firsts: Sequence[int], ids: Sequence[str]) -> pl.Series:
        """The rows of some series, given the first row of each cell; null for series that the block does not have."""
        places = None if ids == self.ids else places_among(self._places, ids)
        return rows_from(firsts, len(ids), places)

    def followed_by(self, ids: Sequence[str], values: pl.DataFrame) -> "Block":
        """This block with further cells appended, which may have additional series."""
        if self.ids != ids:
            columns = [self.at(ids, range(self.cells), name).alias(name) for name in self.values.columns]
            return make_block(ids, pl.DataFrame(columns)).followed_by(ids, values)
        texts = self.texts
        if texts is not None:
            values, further = _kept_once(values, _texts_of(values))
            values = values.with_columns(pl.col(name) + len(texts) for name in values.columns if name in _TEXTS)
            texts = pl.concat([texts, further], rechunk=True)
        return Block(ids, pl.concat([self.values, values.cast(self.values.schema)], rechunk=True), texts)


class Picked:
    """A selection of cells (numbers from 0 in each block) and series from some blocks, to read columns of."""

    def __init__(self, blocks: Sequence[Block], cells: Sequence[Sequence[int]], ids: Sequence[str]) -> None:
        self._parts: list[tuple[Block, slice | pl.Series]]
        size, spans = len(ids), [_spans(some) for some in cells]
        if all(ids == block.ids for block in blocks) and None not in spans:
            counted = zip(blocks, spans, strict=True)
            self._parts = [
                (block, slice(one.start * size, one.stop * size)) for block, some in counted for one in some or ()
            ]
            return
        rows = _rows(blocks, cells, ids)
        ends = accumulate(len(some) * size for some in cells)
        self._parts = [
            (block, rows[end - len(some) * size : end]) for block, some, end in zip(blocks, cells, ends, strict=True)
        ]

    def column(self, name: str) -> pl.Series:
        """The selected values of a column, cell by cell; see Block.at for series that a block does not have."""
        values = in_one([block.column(name, rows) for block, rows in self._parts])
        return values.fill_null(0) if name in SUMS and values.null_count() else values

    def at(self, name: str, places: pl.Series) -> pl.Series:
        """The values of a column at some places among the selected ones."""
        block, rows = self._parts[0]
        if len(self._parts) > 1:
            return self.column(name)[places]
        # Only the texts at these places are looked up.
        return block.column(name, places + rows.start if isinstance(rows, slice) else rows[places])


def in_one(parts: Sequence[_Part]) -> _Part:
    """All parts, one after the other."""
    return parts[0] if len(parts) == 1 else pl.concat(parts, rechunk=True)


def _spans(cells: Sequence[int]) -> Sequence[range] | None:
    """The cells as ranges, if they are consecutive; None if they are not.

    The last cell may be listed twice, as on a page that ends within an hour. It then is a range of its own.
    """
    if isinstance(cells, range) and cells.step == 1:
        return (cells,)
    span = range(cells[0], cells[-1] + 1)
    # The span of a page of days has many more hours than are listed, and need not be counted through.
    if len(span) > len(cells):
        return None
    listed = [*cells]
    if listed == [*span]:
        return (span,)
    return (span, span[-1:]) if listed == [*span, span[-1]] else None


def _rows(blocks: Sequence[Block], cells: Sequence[Sequence[int]], ids: Sequence[str]) -> pl.Series:
    """The row of each value in its block, cell by cell; null for series that the block does not have."""
    if len(blocks) > 1 and any(ids != block.ids for block in blocks):
        return pl.concat([_rows([block], [some], ids) for block, some in zip(blocks, cells, strict=True)])
    width = len(blocks[0].ids)
    return blocks[0].rows([cell * width for some in cells for cell in some], ids)


def make_block(ids: Sequence[str], values: pl.DataFrame) -> Block:
    """A block of values at the ends of hours as `read_values` returns them, or of candles."""
    if "observed_at" in values.columns:
        values = values.with_columns(pl.col("observed_at").cast(pl.UInt32))
    texts = _texts_of(values)
    there = texts["text"].drop_nulls()
    if there.n_unique() < _DISTINCT_SHARE * len(there):
        return Block(ids, *_kept_once(values, texts))
    return Block(ids, values.with_columns(_in_order(pl.col(pl.String))).rechunk())


def _kept_once(values: pl.DataFrame, texts: pl.DataFrame) -> tuple[pl.DataFrame, pl.Series]:
    """The values with places of their `texts` instead of these, null for null; and the texts, each of them once."""
    once = texts.drop_nulls().unique(maintain_order=True).with_row_index("place")
    places = texts.join(once, on="text", how="left", maintain_order="left")["place"]
    names = values.select(pl.col(pl.String)).columns
    columns = [places[number * len(values) :][: len(values)].alias(name) for number, name in enumerate(names)]
    return values.with_columns(columns).rechunk(), once.select(_in_order(pl.col("text")))["text"].rechunk()


def _texts_of(values: pl.DataFrame) -> pl.DataFrame:
    """All texts in one column, one column of the values after the other."""
    columns = values.select(pl.col(pl.String))
    return pl.DataFrame({"text": pl.concat([column.alias("text") for column in columns] or [no_values(0)])})


def _in_order(text: pl.Expr) -> pl.Expr:
    """A copy of texts that lie in memory in their order: pages read it twice as fast."""
    return text + ""


# The block of a time before the first observation, of values or candles.
NO_CELLS = Block([], pl.DataFrame(schema={"value": pl.String, "observed_at": pl.UInt32, **CANDLE}))


def values_of(
    lookup: Lookup, blocks: Sequence[Block], latest: Observations, ids: Sequence[str], buckets: Buckets
) -> pl.Series:
    """Values of some series in all buckets, bucket by bucket, from the blocks of a lookup's runs and the observations
    after the last of them. They are texts or numbers, as in the blocks."""
    count = sum(len(run.cells) for run in lookup.runs)
    if not count:
        return no_values(buckets.count * len(ids))
    picked = Picked(blocks, [run.cells for run in lookup.runs], ids)
    values = picked.column("value")
    if not buckets.carry:
        since = pl.Series(buckets.begins[:count], dtype=pl.Int64)[layout(count, len(ids))[0]]
        values = values.set((picked.column("observed_at") < since).fill_null(True), None)
    if lookup.open_from is not None:
        begin = lookup.open_from if buckets.carry else max(lookup.open_from, buckets.begins[count - 1])
        values = latest.over(values, ids, begin, buckets.until)
    if count == buckets.count:
        return values
    return pl.concat([values, no_values((buckets.count - count) * len(ids)).cast(values.dtype)], rechunk=True)


def candles_of(
    blocks: Sequence[Block], cells: Sequence[Sequence[int]], ids: Sequence[str], columns: Sequence[str]
) -> pl.DataFrame:
    """Some columns of the candles of some series in some cells of blocks, cell by cell."""
    if not blocks:
        return no_candles(columns, 0)
    picked = Picked(blocks, cells, ids)
    return pl.DataFrame([picked.column(name).alias(name) for name in columns])
