"""Values read from the store for the buckets that are asked for, at the cost of those."""

from collections.abc import Mapping, Sequence

import polars as pl

from analytics_service.series.encode import quoted
from analytics_service.series.plan import plan_page
from analytics_service.series.rows import History, Series, read_last_since, read_rows, with_earlier
from analytics_service.series.sample import limits, sample
from analytics_service.store.connection import Store


def read_values(
    store: Store,
    history: History,
    series: Mapping[str, Series],
    begins: Sequence[int],
    until: int,
    *,
    carry: bool = True,
    whole: bool = False,
    thinned: bool = False,
) -> pl.DataFrame:
    """Columns value (plain decimal text or null) and observed_at (unix s), series by series, for the buckets between
    `begins` (one more than buckets).

    A value is the last observation before its bucket's end and before `until`; null where there is none, where the
    bucket begins at or after `until`, and, unless `carry`, where the bucket holds no observation itself. `whole` says
    that the series are all there are, `thinned` that the buckets are many. One query, and a second one when a series
    carries a value over a long gap into the first bucket.
    """
    oldest, ends = limits(begins, until, carry=carry)
    if not ends or not series or begins[0] >= until:
        return sample(pl.DataFrame(), len(series), oldest, ends)
    plan = plan_page(begins, until)
    rows = read_rows(store, history, list(series), plan, whole=whole, thinned=thinned)
    values = sample(rows, len(series), oldest, ends)
    missing = _begun_before(series, values["value"].gather_every(len(ends)), plan.since) if carry else []
    if not missing:
        return values
    rows = with_earlier(store, history, rows, series, missing, plan.since)
    return sample(rows, len(series), oldest, ends)


def read_since(store: Store, history: History, series: Mapping[str, Series], begin: int, until: int) -> pl.Series:
    """Endings of the last observation of each series in [begin, until), unix seconds of one hour; null without one."""
    rows = read_last_since(store, history, list(series), begin, until)
    return quoted(sample(rows, len(series), [begin], [until])["value"])


def _begun_before(series: Mapping[str, Series], firsts: pl.Series, since: int) -> list[int]:
    """Places of the series that are older than what was read, and yet have no value in the page's first bucket."""
    if not firsts.null_count():
        return []
    pairs = zip(series.values(), firsts.is_null(), strict=True)
    return [place for place, (one, missing) in enumerate(pairs) if missing and one.first_month < since]
