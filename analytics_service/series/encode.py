"""Points as JSON text, vectorised: a page's points are joined by Polars, not walked in Python."""

from collections.abc import Sequence

import polars as pl

from analytics_service.series.sample import layout


def encode_series(values: pl.Series, begins: Sequence[int], openings: Sequence[str]) -> str:
    """The JSON array of a page's series; `values` series by series as `sample` gives them, text or null.

    An opening is the JSON text of its series' object up to and without its points: `{"asset":{...}`.
    """
    count = len(begins) - 1
    if count < 1 or not openings:
        return "[" + ",".join(f'{opening},"points":[]}}' for opening in openings) + "]"
    # What stands before a value: the bucket's begin, and at a series' first bucket the end of the series before it.
    leads = [f',{{"t":{begin},"v":' for begin in begins[:-1]]
    firsts = [f'{"]}," if i else "["}{opening},"points":[{leads[0][1:]}' for i, opening in enumerate(openings)]
    owner, bucket = (pl.lit(column) for column in layout(len(openings), count))
    lead = pl.when(bucket == 0).then(pl.lit(pl.Series(firsts)).gather(owner)).otherwise(
        pl.lit(pl.Series(leads)).gather(bucket)
    )
    value = pl.concat_str(pl.lit('"'), pl.lit(values), pl.lit('"}')).fill_null("null}")
    return str(pl.select(pl.concat_str(lead, value).str.join("")).item()) + "]}]"
