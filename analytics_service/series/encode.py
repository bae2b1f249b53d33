"""Points as JSON text, vectorised: a page's points are joined by Polars, not walked in Python."""

from collections.abc import Sequence
from functools import lru_cache

import polars as pl

from analytics_service.series.sample import layout

# How a point without a value ends.
NULL = "null}"


def endings(values: pl.Series) -> pl.Series:
    """What stands in a point from its value on: `"1.5"}`, or NULL. `values` are text or null."""
    return quoted(values).fill_null(NULL)


def quoted(values: pl.Series) -> pl.Series:
    """The same, but null where there is no value."""
    return '"' + values + '"}'


def encode_points(values: pl.Series, begins: Sequence[int], before: Sequence[str], after: str) -> str:
    """The points of all series, one after the other: each as `before` of the series, its points, and `after`.

    `values` as `endings` answers them, series by series. The points of a series are JSON objects separated by commas.
    """
    count = len(begins) - 1
    if count < 1 or not before:
        return "".join(opening + after for opening in before)
    # What stands before a value: the bucket's begin, and at a series' first bucket also what is between the series.
    leads = [f',{{"t":{begin},"v":' for begin in begins[:-1]]
    firsts = [(after if i else "") + opening + leads[0][1:] for i, opening in enumerate(before)]
    lead = pl.Series(leads + firsts)[_lead_of(len(before), count)]
    return str((lead + values).str.join("").item()) + after


@lru_cache(maxsize=8)
def _lead_of(series: int, count: int) -> pl.Series:
    """Which lead stands before each value: that of its bucket, or one of the `series` that follow those."""
    owner, bucket = layout(series, count)
    columns = pl.DataFrame({"owner": owner, "bucket": bucket})
    return columns.select(pl.when(pl.col("bucket") == 0).then(count + pl.col("owner")).otherwise("bucket")).to_series()
