"""The value of each series at the end of each bucket (decisions 2.6), vectorised."""

from collections.abc import Sequence
from functools import lru_cache

import polars as pl

# Series and second in one sortable number: seconds of the store fit 32 bits.
_SERIES = 1 << 33
_NEVER = _SERIES - 1


@lru_cache(maxsize=64)
def layout(series: int, count: int) -> tuple[pl.Series, pl.Series]:
    """Series and bucket of each value of a page, where values stand series by series."""
    place = pl.int_range(series * count, eager=True)
    return place // count, place % count


def sample(rows: pl.DataFrame, series: int, begins: Sequence[int], horizon: int, *, carry: bool) -> pl.Series:
    """Values as text or null, of `series` series one after the other, each with len(begins) - 1 buckets.

    `rows` as read_rows answers them. A value is the last observation before its bucket's end and before `horizon`;
    null where there is none, where the bucket begins at or after `horizon`, and, unless `carry`, where the bucket
    holds no observation itself.
    """
    count = len(begins) - 1
    if rows.is_empty():
        return pl.repeat(None, series * count, dtype=pl.String, eager=True)
    known = _known(rows)
    base = layout(series, count)[0] * _SERIES
    # The last observation before `end` counts if it is not older than `oldest`; none is as young as _NEVER.
    oldest = [_NEVER if begin >= horizon else 0 if carry else max(begin, 0) for begin in begins[:-1]]
    ends = [min(max(end, 0), horizon) for end in begins[1:]]
    wanted = pl.DataFrame({"oldest": base + pl.Series(oldest * series), "end": base + pl.Series(ends * series)})
    found = wanted.join_asof(
        known, left_on="end", right_on="key", allow_exact_matches=False, coalesce=False, check_sortedness=False
    )
    return found.select(pl.when(pl.col("key") >= pl.col("oldest")).then("value")).to_series()


def _known(rows: pl.DataFrame) -> pl.DataFrame:
    """Observations by series and second, each once: of several the one of the greatest rank comes last and holds."""
    key = (pl.col("series").cast(pl.Int64) * _SERIES + pl.col("observed_at")).alias("key")
    known = rows.select(key, "rank", "value").sort("key")
    # Corrections are rare, and a second key makes sorting several times dearer.
    repeated = (known["key"][1:] == known["key"][:-1]).any()
    return known.sort("key", "rank") if repeated else known
