"""Segments: the rows of a history in a range of time, as a sorted table; their last values and candles, and how
the store reads them."""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import pairwise

import polars as pl

from analytics_service.clickhouse.connection import Store
from analytics_service.market.instants import DAY, HOUR
from analytics_service.market.kinds import DECIMAL
from analytics_service.store.datasets.histories import History
from analytics_service.store.ledger import Head, require_unchanged
from analytics_service.store.rollups import FIFTEEN_MINUTES, floor_to_width, lookback_start

# Sort key of a row: series times `_SERIES`, plus second.
_SERIES = 1 << 40
_SECOND = _SERIES - 1
_NO_VALUE, _NO_SECOND = pl.Series([None], dtype=pl.String), pl.Series([-1], dtype=pl.Int64)
_COLUMNS = {
    **dict.fromkeys(("open", "high", "low"), DECIMAL),
    "count": pl.UInt32(),
    "seconds": pl.UInt32(),
    "units": pl.Int128(),
    "rest": pl.Int128(),
}
_REST = pl.exclude("series", "last_at")
# A whole unit as a multiple of 10^-18, and the reverse.
UNIT = pl.lit(10**18, dtype=pl.Int128())
_SMALLEST = pl.lit("0.000000000000000001").cast(DECIMAL)
# Bytes of a string's view in a column.
_VIEW = 16
# Bytes of a row with all columns, without the characters of `close`.
ROW_BYTES = 92 + _VIEW
_AS_IT_IS = pl.QueryOptFlags.none()
# How the rows of a bucket are summarized.
_SUMMED = {
    "open": pl.col("open").drop_nulls().first(),
    "high": pl.col("high").max(),
    "low": pl.col("low").min(),
    "count": pl.col("count").sum(),
    "seconds": pl.col("seconds").sum(),
    "units": pl.col("units").sum(),
    "rest": pl.col("rest").cast(pl.Int128).sum(),
}
# Buckets of at least this mean width are read from day rollups: local days may have 23 hours.
_DAILY = 20 * HOUR
# Up to this mean width, reading all observations is as fast as reading only the cut 15 minutes.
_DENSE = 2 * FIFTEEN_MINUTES
# Reading starts this long before the first bucket. The last value before the bucket is nearly always there.
_LOOKBACK, _LOOKBACK_OF_DAYS = DAY, 31 * DAY


@dataclass(frozen=True)
class Segment:
    """The rows of some series in [begin, end), unix seconds, and each series' last row before `begin`.

    A row is a rollup or a single observation. Rows are sorted by `key`. A series without observations before `begin`
    has a row of nulls at the second -1. Segments for last values have only `key` and `close`. The columns are:

    - `key`: index of the series in `ids`, and unix second of the last observation. `first_at`: of the first one.
    - `count` of the observations with a value, and their `open`, `high` and `low`; null if there are none.
    - `close`: the last value as a decimal string, since most pages show only that; null if it is unknown.
    - `units` and `rest`: the area (value times seconds) from the previous row to this row's last observation, as whole
      units and multiples of 10^-18. `seconds`: the seconds of the area that had a value.
    """

    ids: Sequence[str]
    begin: int
    end: int
    rows: pl.DataFrame

    @classmethod
    def from_rows(cls, ids: Sequence[str], begin: int, end: int, rows: pl.DataFrame) -> "Segment":
        """A segment of rows with `series` (index) and `last_at` instead of `key`. The area of a row, if any, covers its
        first to its last observation."""
        carried = {*rows["series"].filter(rows["last_at"] < begin)}
        key = rows["series"].cast(pl.Int64) * _SERIES + rows["last_at"].cast(pl.Int64)
        lacking = [index * _SERIES - 1 for index in range(len(ids)) if index not in carried]
        keyed = [pl.DataFrame({"key": lacking}, schema={"key": pl.Int64}), rows.select(key.alias("key"), _REST)]
        ordered = pl.concat(keyed, how="diagonal").sort("key", maintain_order=True)
        return cls(ids, begin, end, _with_gaps(ordered) if "units" in ordered.columns else ordered)

    @cached_property
    def indices(self) -> dict[str, int]:
        return {asset_id: index for index, asset_id in enumerate(self.ids)}

    @property
    def size(self) -> int:
        """Bytes in memory. Polars' estimate counts the characters of strings, but not their views."""
        return int(self.rows.estimated_size()) + _VIEW * self.rows.height

    @cached_property
    def closes(self) -> pl.LazyFrame:
        return self.rows.select("key", "close").lazy()

    def bases(self, ids: Sequence[str]) -> list[int]:
        return [self.indices[asset_id] * _SERIES for asset_id in ids]


@dataclass(frozen=True, slots=True)
class SegmentRange:
    """A segment, and the range of a page, unix seconds, for which it is used."""

    segment: Segment
    start: int
    end: int


def last_values(parts: Sequence[SegmentRange], ids: Sequence[str], instants: Sequence[int]) -> pl.DataFrame:
    """The last `value` of each series before each of the ascending instants, and its `second`, series by series.

    All parts have the same series, and the first part's segment carries everything observed before. The value is null
    if it is unknown or missing; if it is missing, the second is negative. Cost: proportional to the instants.
    """
    size = len(instants) * len(ids)
    if not parts or not size:
        return pl.DataFrame({"value": _NO_VALUE.new_from_index(0, size), "second": _NO_SECOND.new_from_index(0, size)})
    bases = pl.Series(parts[0].segment.bases(ids))
    ascending, times = bases.sort(), pl.Series("before", instants, dtype=pl.Int64)
    # Each part has a block of the instants.
    blocks = [*pairwise((0, *(bisect_right(instants, part.end) for part in parts)))]
    searches = [
        _preceding(part.segment, ascending, times[start:stop])
        for part, (start, stop) in zip(parts, blocks, strict=True)
        if start < stop
    ]
    # Starting a query takes as long as the search, and so does optimizing it. The default engine takes longer.
    rows = pl.concat(searches).collect(engine="in-memory", optimizations=_AS_IT_IS)
    value, key = rows["close"], rows["key"]
    series, instant = row_index(len(ids), len(instants))
    if len(searches) > 1 or not bases.equals(ascending):
        # The rows of a block have the series in ascending order.
        first = [start * (len(ids) - 1) + number for start, stop in blocks for number in range(start, stop)]
        widths = [stop - start for start, stop in blocks for _ in range(start, stop)]
        rank = bases.rank("ordinal") - 1
        row = pl.Series(first, dtype=pl.UInt32)[instant] + pl.Series(widths, dtype=pl.UInt32)[instant] * rank[series]
        value, key = value.rechunk()[row], key.rechunk()[row]
    return pl.DataFrame([value.alias("value"), (key - bases[series]).alias("second")])


def _preceding(segment: Segment, bases: pl.Series, instants: pl.Series) -> pl.LazyFrame:
    """The row before each instant in each series, series by series. Bases and instants must ascend."""
    series, instant = row_index(len(bases), len(instants))
    keys = (instants[instant] + bases[series]).to_frame().lazy()
    return keys.join_asof(
        segment.closes,
        left_on="before",
        right_on="key",
        allow_exact_matches=False,
        coalesce=False,
        check_sortedness=False,
    )


def bucket_candles(
    parts: Sequence[SegmentRange], ids: Sequence[str], begins: Sequence[int], columns: Sequence[str]
) -> pl.DataFrame:
    """The columns of each bucket between `begins`, series by series; null in a bucket without observations.

    No row may overlap two buckets. Cost: proportional to the rows in the range.
    """
    count = len(begins) - 1
    slots = pl.int_range(len(ids) * count, eager=True, dtype=pl.Int64).to_frame("slot")
    if not parts:
        empty = (pl.lit(None, dtype).alias(name) for name, dtype in _COLUMNS.items() if name in columns)
        return slots.with_columns(empty).drop("slot")
    rows = pl.concat([_rows(part, ids, begins, columns) for part in parts])
    summed = rows.group_by("slot", maintain_order=True).agg(_SUMMED[name].alias(name) for name in columns)
    buckets = slots.lazy().join(summed, on="slot", how="left", maintain_order="left").drop("slot")
    # The default engine streams, which takes three times as long for so few rows.
    return buckets.collect(engine="in-memory")


def _rows(part: SegmentRange, ids: Sequence[str], begins: Sequence[int], columns: Sequence[str]) -> pl.LazyFrame:
    """The rows of a part that lie in buckets. `slot` is the index of series and bucket in the result."""
    segment, count = part.segment, len(begins) - 1
    second = pl.col("key") & _SECOND
    start, end = max(begins[0], part.start), min(begins[-1], part.end)
    first_slots = {segment.indices[asset_id]: index * count for index, asset_id in enumerate(ids)}
    series = pl.lit(pl.Series([first_slots.get(index) for index in range(len(segment.ids))], dtype=pl.Int64))
    bucket = pl.lit(pl.Series(begins, dtype=pl.Int64)).search_sorted(second, side="right").cast(pl.Int64) - 1
    rows = segment.rows.lazy().filter(second.is_between(start, end, closed="left"))
    return rows.select(*columns, slot=series.gather(pl.col("key") // _SERIES) + bucket).drop_nulls("slot")


def _with_gaps(rows: pl.DataFrame) -> pl.DataFrame:
    """The rows, with areas extended back to the previous row's last observation in the same series."""
    value = pl.col("close").cast(DECIMAL).to_physical().shift(1)
    is_same = pl.col("key") // _SERIES == (pl.col("key") // _SERIES).shift(1)
    start = (pl.col("key") & _SECOND).shift(1)
    gap = pl.when(is_same & value.is_not_null()).then(pl.col("first_at").cast(pl.Int64) - start).fill_null(0)
    gap_units, gap_rest = (
        (per_second * gap.cast(pl.Int128)).fill_null(0) for per_second in (value // UNIT, value % UNIT)
    )
    return rows.with_columns(
        seconds=pl.col("seconds") + gap.cast(pl.UInt32),
        units=pl.col("units").cast(pl.Int128) + gap_units + (pl.col("rest").cast(pl.Int128) + gap_rest) // UNIT,
        rest=((pl.col("rest").cast(pl.Int128) + gap_rest) % UNIT).cast(pl.UInt64),
    )


def from_units(numbers: pl.Expr) -> pl.Expr:
    """Multiples of 10^-18 as decimals. Numbers of more than 38 digits raise an InvalidOperationError."""
    return numbers.cast(pl.Decimal(38, 0)) * _SMALLEST


@lru_cache(maxsize=16)
def row_index(outer: int, inner: int) -> tuple[pl.Series, pl.Series]:
    """For a table of `outer` rows of `inner` values: the row and the column of each value, as numbers from 0."""
    slot = pl.int_range(outer * inner, eager=True, dtype=pl.UInt32)
    return slot // inner, slot % inner


@dataclass(frozen=True)
class PinnedHistory:
    """A history in the store as of a head, with the first instant (unix s) of each series, in the order of ids.

    `generation` grows when data of an earlier head, or the set of series, changes.
    """

    store: Store
    history: History
    head: Head
    series: Mapping[str, int]
    generation: int

    @cached_property
    def ids(self) -> list[str]:
        return list(self.series)

    @cached_property
    def first(self) -> int:
        """The unix second before which nothing was observed."""
        return min(self.series.values(), default=self.newest + 1)

    @property
    def newest(self) -> int:
        return self.head.last_observed_at

    def segment(self, ids: Sequence[str], bounds: Sequence[int], end: int, *, all_columns: bool = True) -> Segment:
        """A segment of some series from the first of the ascending `bounds` to before `end`: a row for each series and
        each range between two bounds with observations. Without `all_columns`, only last values, in half the time.

        Cost: a query, which reads the rollups of the range, and single observations where a bound cuts a rollup; and a
        second query if a series has no recent value before the range. Raises Superseded if the history was rewritten
        since the head.
        """
        begin = max(bounds[0], 0)
        inner = sorted({begin, *(bound for bound in bounds if begin < bound < end)})
        parts, parameters, lookback_start = _cover(inner, end)
        rows = self.store.query(
            "summarize_buckets" if all_columns else "read_last_rows",
            parts,
            history=self.history.name,
            ids=list(ids),
            all=int(len(ids) == len(self.series)),
            bounds=sorted({lookback_start, *inner}),
            **parameters,
        )
        # Assets that are newer than the head have the index len(ids).
        if (rows["series"] == len(ids)).any():
            rows = rows.filter(rows["series"] < len(ids))
        carried = {*rows.filter(rows["last_at"] < begin)["series"]}
        silent = [
            index
            for index, asset_id in enumerate(ids)
            if index not in carried and self.series[asset_id] < lookback_start
        ]
        if silent:
            rows = pl.concat([self._before([ids[index] for index in silent], silent, begin), rows], how="diagonal")
        require_unchanged(self.store, self.head)
        return Segment.from_rows(ids, begin, end, rows)

    def count_rollups(self, start: int, end: int, most: int) -> int:
        """The number of 15min rollups in [start, end), unix seconds, of all series, but at most `most`.

        Cost: a query, which reads little more than the sort keys of these rollups.
        """
        counted = self.store.query("count_15min_rollups", history=self.history.name, start=start, end=end, most=most)
        return int(counted.item())

    def _before(self, ids: Sequence[str], indices: Sequence[int], instant: int) -> pl.DataFrame:
        """The last observation of each series before an instant, however old. `indices` are indices in a segment."""
        parameters: dict[str, object] = {"history": self.history.name, "ids": list(ids), "bounds": [0]}
        rows = self.store.query("read_last_rows", ["read_last_before"], **parameters, **lookback_start(instant))
        return rows.with_columns(series=pl.Series(indices, dtype=pl.UInt32)[rows["series"]])


def _cover(bounds: Sequence[int], end: int) -> tuple[list[str], dict[str, object], int]:
    """The queries whose rows cover a range without overlapping, their parameters, and the second at which they begin:
    early enough before the first bound that its last rows are probably included. No bound cuts a row.

    Rollups are aligned to UTC. Present-day zone offsets are multiples of 15 minutes, so buckets of hours and more begin
    where 15min rollups do. If a bound cuts 15 minutes, their single observations are read, or all observations if
    bounds are close together. The last 15 minutes of the range are always read that way. Days that a bound cuts are
    read from 15min rollups.
    """
    start = floor_to_width(bounds[0], FIFTEEN_MINUTES)
    tail = max(floor_to_width(end, FIFTEEN_MINUTES), start)
    inner = [bound for bound in bounds if bound < tail]
    cut = sorted({floor_to_width(bound, FIFTEEN_MINUTES) for bound in inner if bound % FIFTEEN_MINUTES})
    width = (tail - start) / max(len(inner), 1)
    by_rollups = not cut or width > _DENSE
    by_days = by_rollups and width >= _DAILY
    raw_from = tail if by_rollups else start
    edges = cut if by_rollups else []
    lookback_start = max(floor_to_width(start, DAY) - (_LOOKBACK_OF_DAYS if by_days else _LOOKBACK), 0)
    parts = [
        *(["read_day_rollups" if by_days else "read_15min_rollups"] if lookback_start < raw_from else []),
        *(["read_edges"] if edges else []),
        *(["read_tail"] if raw_from < end else []),
    ]
    # Only lists that are used are sent, because binding takes time.
    days = sorted({floor_to_width(bound, DAY) for bound in inner if bound % DAY}) if by_days else []
    parameters = {
        "start": lookback_start,
        "end": end,
        "days_to": floor_to_width(raw_from, DAY),
        "raw_from": raw_from,
        "edge_days": days,
        "edge_starts": edges,
    }
    return parts, parameters, lookback_start
