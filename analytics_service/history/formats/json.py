"""Points as JSON, vectorised: Polars picks pieces of text in their order and joins them, Python does not walk them."""

from collections.abc import Sequence
from functools import lru_cache

import polars as pl

from analytics_service.history.sample import layout


def encode_points(values: pl.Series, begins: Sequence[int], opened: Sequence[str], closed: str) -> bytes:
    """The points of some series, one series after the other, as JSON objects separated by commas.

    `values` are decimal text or null, bucket by bucket; `begins` are those of the buckets. Each series stands between
    its text in `opened` and `closed`.
    """
    count, series = len(begins), len(opened)
    if not count or not series:
        return "".join(one + closed for one in opened).encode()
    leads, order = _leads(begins, opened, closed), _order(series, count)
    last_quote = '"'
    if values.null_count():
        is_null = values.is_null()[_value_of(series, count)]
        # Null has no quotes: leads come with both quotes, without their own, without that before, and without both.
        own, before = [lead[:-1] + "null" for lead in leads], [lead[1:] for lead in leads]
        leads = leads + own + before + [lead[:-1] + "null" for lead in before]
        own_null = is_null.cast(pl.UInt32)
        null_before = pl.concat([own_null[:0], pl.Series([0], dtype=pl.UInt32), own_null[:-1]])
        lead = _lead_of(series, count) + (own_null + 2 * null_before) * (count + series)
        order = pl.concat([lead, _value_of(series, count)])[_interleaved(series * count)]
        last_quote = "" if is_null[-1] else '"'
    # Values that are null are left out when pieces are joined.
    text: str = pl.concat([values, pl.Series(leads)], rechunk=True)[order].str.join("").item()
    return f"{text}{last_quote}}}{closed}".encode()


def _leads(begins: Sequence[int], opened: Sequence[str], closed: str) -> list[str]:
    """What precedes the values of all buckets, and then the first value of each series.

    It ends the point before, closing quote included, and begins the value's own up to its opening quote.
    """
    between, first = f'"}}{closed}', f'{{"t":{begins[0]},"v":"'
    firsts = [f"{between if place else ''}{one}{first}" for place, one in enumerate(opened)]
    return [f'"}},{{"t":{begin},"v":"' for begin in begins] + firsts


@lru_cache(maxsize=8)
def _order(series: int, count: int) -> pl.Series:
    """Lead and value of all points in turns, as numbers of pieces: values come first, and leads after them."""
    return pl.concat([_lead_of(series, count), _value_of(series, count)])[_interleaved(series * count)]


@lru_cache(maxsize=8)
def _lead_of(series: int, count: int) -> pl.Series:
    """The piece that precedes each value: the lead of its bucket, or one of the `series` leads that follow those."""
    place, bucket = layout(series, count)
    return series * count + bucket.zip_with(bucket > 0, place + count)


@lru_cache(maxsize=8)
def _value_of(series: int, count: int) -> pl.Series:
    """The piece that is each value, series by series."""
    place, bucket = layout(series, count)
    return bucket * series + place


@lru_cache(maxsize=8)
def _interleaved(count: int) -> pl.Series:
    """The order of two times `count` pieces, one of the first and one of the second half in turns."""
    place, half = layout(count, 2)
    return half * count + place
