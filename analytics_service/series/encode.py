"""Points as JSON text, vectorised: a page's points are joined by Polars, not walked in Python."""

from collections.abc import Sequence

import polars as pl

from analytics_service.series.sample import layout


def encode_points(values: pl.Series, begins: Sequence[int], before: Sequence[str], after: str) -> str:
    """The points of all series, one after the other: each as `before` of the series, its points, and `after`.

    `values` series by series as `sample` gives them, text or null. The points of a series are JSON objects
    separated by commas.
    """
    count = len(begins) - 1
    if count < 1 or not before:
        return "".join(opening + after for opening in before)
    # What stands before a value: the bucket's begin, and at a series' first bucket also what is between the series.
    leads = [f',{{"t":{begin},"v":' for begin in begins[:-1]]
    firsts = [(after if i else "") + opening + leads[0][1:] for i, opening in enumerate(before)]
    owner, bucket = (pl.lit(column) for column in layout(len(before), count))
    lead = (
        pl.when(bucket == 0)
        .then(pl.lit(pl.Series(firsts)).gather(owner))
        .otherwise(pl.lit(pl.Series(leads)).gather(bucket))
    )
    value = pl.concat_str(pl.lit('"'), pl.lit(values), pl.lit('"}'))
    if values.null_count():
        value = value.fill_null("null}")
    return str(pl.select(pl.concat_str(lead, value).str.join("")).item()) + after
