"""Points as JSON, vectorised: Polars picks pieces of text in their order and joins them, Python does not walk them."""

from collections.abc import Sequence
from functools import lru_cache

import polars as pl

from analytics_service.history.sample import layout


def encode_points(values: pl.Series, begins: Sequence[int], opened: Sequence[str], closed: str) -> bytes:
    """The points of some series, one series after the other, as JSON objects separated by commas.

    `values` are decimal text or null, bucket by bucket; `begins` are those of the buckets. Each series is
    enclosed in its text in `opened` and `closed`.
    """
    if not begins or not opened:
        return "".join(one + closed for one in opened).encode()
    if not values.null_count():
        return _encoded(values, begins, opened, closed, None)
    empty = _empty_series(values, len(opened))
    if not empty:
        return _encoded_with_nulls(values, begins, opened, closed)
    # The text of a series without any value goes before that of the next series.
    nulls = ",".join([f'{{"t":{begin},"v":null}}' for begin in begins])
    texts, before = [], ""
    for place, one in enumerate(opened):
        if place in empty:
            before += f"{one}{nulls}{closed}"
        else:
            texts.append(before + one)
            before = ""
    if not texts:
        return before.encode()
    kept = pl.Series([place for place in range(len(opened)) if place not in empty], dtype=pl.UInt32)
    return _encoded(values, begins, texts, closed, kept) + before.encode()


def _encoded(
    values: pl.Series, begins: Sequence[int], opened: Sequence[str], closed: str, kept: pl.Series | None
) -> bytes:
    """The same where no value is null; of the series that `values` have, those `kept` are encoded."""
    count, series = len(begins), len(opened)
    pieces = pl.concat([values, pl.Series(_leads(begins, opened, closed))], rechunk=True)
    order = _order(series, count)
    if kept is not None:
        width = len(values) // count
        value = layout(series, count)[1] * width + kept[layout(series, count)[0]]
        lead = _lead_of(series, count) + (width - series) * count
        order = pl.concat([lead, value])[_interleaved(series * count)]
    text: str = pieces[order].str.join("").item()
    return f'{text}"}}{closed}'.encode()


def _encoded_with_nulls(values: pl.Series, begins: Sequence[int], opened: Sequence[str], closed: str) -> bytes:
    """The same where any value may be null. Null has no quotes, so leads come in four variants."""
    count, series = len(begins), len(opened)
    leads = _leads(begins, opened, closed)
    own, before = [lead[:-1] + "null" for lead in leads], [lead[1:] for lead in leads]
    both = [lead[:-1] + "null" for lead in before]
    is_null = values.is_null()[_value_of(series, count)].cast(pl.UInt32)
    null_before = pl.concat([pl.Series([0], dtype=pl.UInt32), is_null[:-1]])
    lead = _lead_of(series, count) + (is_null + 2 * null_before) * len(leads)
    order = pl.concat([lead, _value_of(series, count)])[_interleaved(series * count)]
    # Values that are null are left out when pieces are joined.
    pieces = pl.concat([values, pl.Series(leads + own + before + both)], rechunk=True)
    text: str = pieces[order].str.join("").item()
    return f"{text}{'' if is_null[-1] else chr(34)}}}{closed}".encode()


def _empty_series(values: pl.Series, series: int) -> set[int]:
    """The series that have no value at all, if no other series lacks one; none else."""
    count, missing = len(values) // series, values.null_count()
    found = [place for place, value in enumerate(values[-series:]) if value is None]
    if len(found) * count != missing:
        return set()
    return set(found) if all(values.gather_every(series, place).null_count() == count for place in found) else set()


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
