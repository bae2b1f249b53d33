"""The value of each series at the end of each bucket (decisions 2.6), vectorised."""

from collections.abc import Sequence
from functools import lru_cache

import polars as pl

# Series and second in one sortable number: seconds of the store fit 32 bits.
_SERIES = 1 << 33


@lru_cache(maxsize=64)
def layout(series: int, count: int) -> tuple[pl.Series, pl.Series]:
    """Series and bucket of each value of a page, where values stand series by series."""
    place = pl.int_range(series * count, eager=True)
    return place // count, place % count


def sample(rows: pl.DataFrame, series: int, begins: Sequence[int], horizon: int, *, carry: bool) -> pl.Series:
    """Values as plain text or null, of `series` series one after the other, each with len(begins) - 1 buckets.

    `rows` as read_rows answers them. A value is the last observation before its bucket's end and before `horizon`;
    null where there is none, where the bucket begins at or after `horizon`, and, unless `carry`, where the bucket
    holds no observation itself.
    """
    count = len(begins) - 1
    if rows.is_empty():
        return pl.repeat(None, series * count, dtype=pl.String, eager=True)
    known = rows.select(
        pl.col("series").cast(pl.Int64) * _SERIES + pl.col("observed_at"), "rank", value=plain(pl.col("value"))
    ).sort("series", "rank")
    keys = known["series"]

    owner, bucket = layout(series, count)
    buckets = pl.DataFrame(
        {
            "begin": begins[:-1],
            "oldest": [0 if carry else max(begin, 0) for begin in begins[:-1]],
            "end": [min(max(end, 0), horizon) for end in begins[1:]],
        },
        schema={"begin": pl.Int64, "oldest": pl.Int64, "end": pl.Int64},
    )[bucket]
    base = owner * _SERIES
    hit = keys.search_sorted(base + buckets["end"], side="left").cast(pl.Int64) - 1
    place, key, begin, oldest = (pl.lit(column) for column in (hit, keys, buckets["begin"], base + buckets["oldest"]))
    valid = (place >= 0) & (begin < horizon) & (key.gather(place.clip(0)) >= oldest)
    return pl.select(pl.lit(known["value"]).gather(pl.when(valid).then(place))).to_series()


def plain(value: pl.Expr) -> pl.Expr:
    """A decimal column in plain notation without trailing zeros (decisions 2.7)."""
    return value.cast(pl.String).str.strip_chars_end("0").str.strip_chars_end(".")
