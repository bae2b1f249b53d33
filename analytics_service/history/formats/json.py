"""Points as JSON, vectorised: Polars joins them, Python does not walk them."""

from collections.abc import Sequence
from functools import lru_cache

import polars as pl

from analytics_service.history.sample import layout, transposed

# Stands for null while points are joined, as quotes are put around every value; no decimal contains it.
_NULL = "~"


def encode_points(values: pl.Series, begins: Sequence[int], opened: Sequence[str], closed: str) -> bytes:
    """The points of some series, one series after the other, as JSON objects separated by commas.

    `values` are decimal text or null, bucket by bucket; `begins` are those of the buckets. Each series stands between
    its text in `opened` and `closed`.
    """
    count, series = len(begins), len(opened)
    if not count or not series:
        return "".join(one + closed for one in opened).encode()
    has_nulls = values.null_count() > 0
    if has_nulls:
        values = values.zip_with(values.is_not_null(), pl.Series([_NULL]))
    # What stands before a value: the end of the point before it, and the begin of its own.
    leads = [f'"}},{{"t":{begin},"v":"' for begin in begins]
    leads += [(f'"}}{closed}' if place else "") + one + leads[0][3:] for place, one in enumerate(opened)]
    lead = pl.Series(leads)[_lead_of(series, count)]
    text = (lead + transposed(values, count, series)).str.join("").item() + f'"}}{closed}'
    encoded: bytes = text.encode()
    return encoded.replace(f'"{_NULL}"'.encode(), b"null") if has_nulls else encoded


@lru_cache(maxsize=8)
def _lead_of(series: int, count: int) -> pl.Series:
    """Which lead stands before each value: that of its bucket, or one of the `series` leads that follow those."""
    place, bucket = layout(series, count)
    return bucket.zip_with(bucket > 0, place + count)
