"""The last observation of each series before each of some instants (rule 2.6), vectorised.

Values of many series at many instants are ordered by instant: those of all series at the first instant come first.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache

import polars as pl

# Series and second in one sortable number: seconds of the store fit 32 bits.
_SERIES = 1 << 33
# Later than any observation.
NEVER = _SERIES - 1
_NO_VALUE = pl.Series([None], dtype=pl.String)
_NO_TIME = pl.Series([None], dtype=pl.Int64)


def layout(outer: int, inner: int) -> tuple[pl.Series, pl.Series]:
    """For a table of `outer` rows of `inner` values: the row and the column of each value, as numbers from 0."""
    # The layout of a taller table begins the same, so a cached one serves parts of different heights.
    rows, columns = _layout(1 << max(outer - 1, 0).bit_length(), inner)
    return rows.head(outer * inner), columns.head(outer * inner)


def rows_from(firsts: Sequence[int], inner: int, places: pl.Series | None = None) -> pl.Series:
    """The numbers of rows: `inner` consecutive ones from each of the first ones on, or so many at `places` after it."""
    outer, place = layout(len(firsts), inner)
    return pl.Series(firsts, dtype=pl.UInt32)[outer] + (place if places is None else places[place])


@lru_cache(maxsize=16)
def _layout(outer: int, inner: int) -> tuple[pl.Series, pl.Series]:
    place = _numbers(1 << max(outer * inner - 1, 0).bit_length()).head(outer * inner)
    return place // inner, place % inner


@lru_cache(maxsize=2)
def _numbers(count: int) -> pl.Series:
    return pl.int_range(count, eager=True, dtype=pl.UInt32)


def transposed(values: pl.Series, outer: int, inner: int) -> pl.Series:
    """A table of `outer` rows of `inner` values, column by column."""
    return values[value_order(inner, outer)] if outer > 1 and inner > 1 else values


@lru_cache(maxsize=8)
def value_order(series: int, count: int) -> pl.Series:
    """The places of values, series by series, where they are bucket by bucket."""
    place, bucket = layout(series, count)
    return bucket * series + place


def limits(begins: Sequence[int], until: int, *, carry: bool) -> tuple[list[int], list[int]]:
    """For each bucket between `begins`: the earliest instant of its value, and the instant that it must precede.

    No bucket that begins at or after `until` has a value, and, unless `carry`, none without an observation of its own.
    """
    oldest = [NEVER if begin >= until else 0 if carry else max(begin, 0) for begin in begins[:-1]]
    return oldest, [min(max(end, 0), until) for end in begins[1:]]


def sample(rows: pl.DataFrame, series: int, oldest: Sequence[int], ends: Sequence[int]) -> pl.DataFrame:
    """Columns value (text) and observed_at (unix s) of `series` series at each instant in `ends`, instant by instant.

    `rows` have the columns of `rows.read_observations`. The last observation before an end counts if it is not older
    than the `oldest` of that end; both columns are null where there is none.
    """
    base = layout(series, len(ends))[0].cast(pl.Int64) * _SERIES
    wanted = pl.DataFrame(
        {"oldest": base + pl.Series([*oldest] * series), "end": base + pl.Series([*ends] * series), "base": base}
    )
    found = wanted.join_asof(
        _known(rows), left_on="end", right_on="key", allow_exact_matches=False, coalesce=False, check_sortedness=False
    )
    counts = pl.col("key") >= pl.col("oldest")
    values = found.select(
        value=pl.when(counts).then("value"), observed_at=pl.when(counts).then(pl.col("key") - pl.col("base"))
    )
    return values.select(transposed(column, series, len(ends)) for column in values)


def places_of(ids: Sequence[str]) -> Mapping[str, int]:
    """The place of each id."""
    return {asset_id: place for place, asset_id in enumerate(ids)}


def places_among(places: Mapping[str, int], ids: Sequence[str]) -> pl.Series:
    """The places of some ids, null for those that have none."""
    return pl.Series(map(places.get, ids), dtype=pl.UInt32)


def nothing(size: int) -> pl.DataFrame:
    """The same columns where there is no observation at all."""
    return pl.DataFrame({"value": no_values(size), "observed_at": _NO_TIME.new_from_index(0, size)})


def no_values(size: int) -> pl.Series:
    """A column of so many nulls."""
    return _NO_VALUE.new_from_index(0, size)


def choice(where: pl.Series) -> pl.Series:
    """Which of as many values, followed by as many others, to take: a value where the mask is true, else the other."""
    place = layout(len(where), 1)[0]
    return place.zip_with(where, place + len(where))


def either(first: pl.Series, where: pl.Series, other: pl.Series) -> pl.Series:
    """The first values where a mask is true, and the other ones elsewhere."""
    # Faster than zip_with on text, which takes four times as long.
    return pl.concat([first, other], rechunk=True)[choice(where)]


def _known(rows: pl.DataFrame) -> pl.DataFrame:
    """Observations by series and second; of several for one second, the one of the greatest rank comes last."""
    key = (pl.col("series").cast(pl.Int64) * _SERIES + pl.col("observed_at")).alias("key")
    known = rows.select(key, "rank", "value").sort("key")
    # Corrections are rare, and a second key makes sorting several times slower.
    repeated = (known["key"][1:] == known["key"][:-1]).any()
    return known.sort("key", "rank") if repeated else known
