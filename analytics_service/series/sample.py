"""The last observation of each series before each of some instants (decisions 2.6), vectorised."""

from collections.abc import Sequence
from functools import lru_cache

import polars as pl

# Series and second in one sortable number: seconds of the store fit 32 bits.
_SERIES = 1 << 33
# No observation is as young as this.
NEVER = _SERIES - 1


@lru_cache(maxsize=8)
def layout(series: int, count: int) -> tuple[pl.Series, pl.Series]:
    """Series and bucket of each value of a page, where values stand series by series; as the fastest of indices."""
    place = pl.int_range(series * count, eager=True, dtype=pl.UInt32)
    return place // count, place % count


def limits(begins: Sequence[int], until: int, *, carry: bool) -> tuple[list[int], list[int]]:
    """For each bucket between `begins`: how old its value may be, and the instant before which it is looked for.

    No bucket that begins at or after `until` has a value, and, unless `carry`, none without an observation of its own.
    """
    oldest = [NEVER if begin >= until else 0 if carry else max(begin, 0) for begin in begins[:-1]]
    return oldest, [min(max(end, 0), until) for end in begins[1:]]


def sample(rows: pl.DataFrame, series: int, oldest: Sequence[int], ends: Sequence[int]) -> pl.DataFrame:
    """Value (text) and observed_at (unix s) of `series` series one after the other, for each instant in `ends`.

    `rows` as read_rows answers them. The last observation before an end counts if it is not older than the `oldest`
    of that end; both are null where there is none.
    """
    if rows.is_empty():
        size = series * len(ends)
        return pl.DataFrame(
            {
                "value": pl.repeat(None, size, dtype=pl.String, eager=True),
                "observed_at": pl.repeat(None, size, dtype=pl.Int64, eager=True),
            }
        )
    known = _known(rows)
    base = layout(series, len(ends))[0].cast(pl.Int64) * _SERIES
    wanted = pl.DataFrame(
        {"oldest": base + pl.Series([*oldest] * series), "end": base + pl.Series([*ends] * series), "base": base}
    )
    found = wanted.join_asof(
        known, left_on="end", right_on="key", allow_exact_matches=False, coalesce=False, check_sortedness=False
    )
    counts = pl.col("key") >= pl.col("oldest")
    return found.select(
        value=pl.when(counts).then("value"), observed_at=pl.when(counts).then(pl.col("key") - pl.col("base"))
    )


def _known(rows: pl.DataFrame) -> pl.DataFrame:
    """Observations by series and second, each once: of several the one of the greatest rank comes last and holds."""
    key = (pl.col("series").cast(pl.Int64) * _SERIES + pl.col("observed_at")).alias("key")
    known = rows.select(key, "rank", "value").sort("key")
    # Corrections are rare, and a second key makes sorting several times dearer.
    repeated = (known["key"][1:] == known["key"][:-1]).any()
    return known.sort("key", "rank") if repeated else known
