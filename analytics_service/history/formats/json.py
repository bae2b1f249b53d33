"""Points as JSON, vectorised: Polars joins them, Python does not walk them."""

from collections.abc import Sequence
from functools import lru_cache

import polars as pl

from analytics_service.history.sample import layout, transposed

_QUOTE = '"'
_NULL = pl.Series(["null"])


def encode_points(values: pl.Series, begins: Sequence[int], opened: Sequence[str], closed: str) -> bytes:
    """The points of some series, one series after the other, as JSON objects separated by commas.

    `values` are decimal text or null, bucket by bucket; `begins` are those of the buckets. Each series stands between
    its text in `opened` and `closed`.
    """
    count, series = len(begins), len(opened)
    if not count or not series:
        return "".join(one + closed for one in opened).encode()
    values = transposed(values, count, series)
    # Every value is preceded by what ends the point before it and begins its own.
    lead_of, leads = _lead_of(series, count), _leads(begins, opened, closed, _QUOTE, _QUOTE)
    end = _QUOTE
    if values.null_count():
        # No quotes stand around null, so leads differ by whether the value before and their own value are null.
        is_null = values.is_null()
        leads += _leads(begins, opened, closed, _QUOTE, "")
        leads += _leads(begins, opened, closed, "", _QUOTE) + _leads(begins, opened, closed, "", "")
        variant = is_null.cast(pl.UInt32) + 2 * is_null.shift(1, fill_value=False).cast(pl.UInt32)
        lead_of, values = lead_of + (count + series) * variant, _NULL.zip_with(is_null, values)
        end = "" if is_null[-1] else _QUOTE
    text: str = (pl.Series(leads)[lead_of] + values).str.join("").item()
    return f"{text}{end}}}{closed}".encode()


def _leads(begins: Sequence[int], opened: Sequence[str], closed: str, before: str, own: str) -> list[str]:
    """What precedes the values of all buckets, and then the first value of each series.

    `before` and `own` are the quotes of the value before and of the value itself.
    """
    first = f'{{"t":{begins[0]},"v":{own}'
    between = f"{before}}}{closed}"
    firsts = [f"{between if place else ''}{one}{first}" for place, one in enumerate(opened)]
    return [f'{before}}},{{"t":{begin},"v":{own}' for begin in begins] + firsts


@lru_cache(maxsize=8)
def _lead_of(series: int, count: int) -> pl.Series:
    """Which lead precedes each value: that of its bucket, or one of the `series` leads that follow those."""
    place, bucket = layout(series, count)
    return bucket.zip_with(bucket > 0, place + count)
