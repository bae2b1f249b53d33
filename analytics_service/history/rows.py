"""Reads the rows of histories from the store, at the cost of the buckets that are asked for."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal

import polars as pl

from analytics_service.history.catalogue import History
from analytics_service.history.plan import Plan, look_back, plan_page
from analytics_service.history.sample import limits, nothing, sample
from analytics_service.store.connection import Store


@dataclass(frozen=True, slots=True)
class SeriesInfo:
    """What is known of a series without reading a page: the start of its first UTC month, and its last observation."""

    first_month: int
    last_observed_at: int
    last_value: str


@dataclass(frozen=True, slots=True)
class Buckets:
    """The buckets between `begins` (one more than buckets; unix s), as far as observations before `until` tell.

    Without `carry`, a bucket without an observation of its own has no value.
    """

    begins: Sequence[int]
    until: int
    carry: bool = True

    @property
    def count(self) -> int:
        """How many buckets there are."""
        return max(len(self.begins) - 1, 0)


def read_series(store: Store, history: History, until: int) -> dict[str, SeriesInfo]:
    """The series with an observation at or before a second, by asset id in the order of ids."""
    rows = store.frame("history_series", until=until, **history.identifiers)
    found = {asset_id: SeriesInfo(*known) for asset_id, *known in rows.iter_rows()}
    # Of a series that begins in this month, cells of months do not tell whether only an incomplete run has begun it.
    month = look_back(until)["month"]
    unsure = [asset_id for asset_id, one in found.items() if one.first_month == month and one.last_observed_at > until]
    begun = _read_last_before(store, history, unsure, until + 1)["series"] if unsure else ()
    for asset_id in {*unsure} - {unsure[place] for place in begun}:
        del found[asset_id]
    return found


def read_values(
    store: Store,
    history: History,
    series: Mapping[str, SeriesInfo],
    buckets: Buckets,
    *,
    whole: bool = False,
    thinned: bool = False,
) -> pl.DataFrame:
    """Columns value (decimal text or null) and observed_at (unix s) of all series in each bucket, bucket by bucket.

    `whole` says that the series are all there are, `thinned` that the buckets are many. Cost: one query, and a second
    one when a series carries a value over a long gap into the first bucket.
    """
    begins, until = buckets.begins, buckets.until
    oldest, ends = limits(begins, until, carry=buckets.carry)
    if not ends or not series or begins[0] >= until:
        return nothing(len(ends) * len(series))
    plan = plan_page(begins, until)
    rows = _read_rows(store, history, list(series), plan, whole=whole, thinned=thinned)
    values = sample(rows, len(series), oldest, ends)
    missing = _begun_before(series, values["value"][: len(series)], plan.since) if buckets.carry else []
    if not missing:
        return values
    earlier = _read_earlier(store, history, series, missing, plan.since)
    return sample(pl.concat([rows, earlier.cast(rows.schema)]), len(series), oldest, ends)


def read_observations(store: Store, history: History, ids: Sequence[str], begin: int, until: int) -> pl.DataFrame:
    """Every observation in [begin, until): series (place in ids), observed_at (unix s), value (plain decimal text) and
    rank; in no order. Of several with one observed_at the one with the greatest rank holds."""
    return store.frame(
        "page_rows", parts=["history_tail"], **history.identifiers, ids=list(ids), raw_from=begin, until=until
    )


def read_densities(store: Store, history: History) -> dict[str, int]:
    """How many rows the history's table has in each UTC month (such as 202603), repeated ones counted."""
    return dict(store.frame("history_density", table=history.table).iter_rows())


def read_latest(store: Store, history: History, ids: Sequence[str], at: int) -> dict[str, tuple[Decimal, datetime]]:
    """Value and instant of the last observation at or before a second, by id in the order of `ids`; ids without one
    are left out. The cost does not grow with the history, but for one row a month."""
    rows = _read_last_before(store, history, ids, at + 1).sort("series")
    columns = rows.select("series", "value", "observed_at").iter_rows()
    return {ids[series]: (Decimal(value), datetime.fromtimestamp(second, UTC)) for series, value, second in columns}


def _read_rows(
    store: Store, history: History, ids: Sequence[str], plan: Plan, *, whole: bool, thinned: bool
) -> pl.DataFrame:
    """Observations of the plan's range in the columns of `read_observations`.

    For each series and bucket the last observation is among them. With `whole`, rows need not be looked for by id; rows
    of an asset that is new since then have a place behind the last one. `thinned` has the store keep one row a bucket,
    also where the plan would not.
    """
    thinned = thinned or plan.thinned
    return store.frame(
        "page_rows_thinned" if thinned else "page_rows",
        parts=plan.parts,
        **history.identifiers,
        ids=list(ids),
        all=int(whole),
        quarters_from=plan.quarters_from,
        raw_from=plan.raw_from,
        since=plan.since,
        days_to=plan.days_to,
        # Long lists are sent only where they are used: binding them costs time.
        edge_days=plan.edge_days if plan.by_days else [],
        edge_seconds=plan.edge_seconds,
        edge_quarters=plan.edge_quarters,
        bounds=plan.bounds if thinned else [],
        until=plan.until,
    )


def _begun_before(series: Mapping[str, SeriesInfo], firsts: pl.Series, since: int) -> list[int]:
    """Places of the series that began before what was read, and yet have no value in the page's first bucket."""
    if not firsts.null_count():
        return []
    pairs = zip(series.values(), firsts.is_null(), strict=True)
    return [place for place, (one, missing) in enumerate(pairs) if missing and one.first_month < since]


def _read_earlier(
    store: Store, history: History, series: Mapping[str, SeriesInfo], places: Sequence[int], before: int
) -> pl.DataFrame:
    """The last observations of some series (by place) before the start of a UTC day.

    Of a series that ended before, it is known already; only a series with a gap there is looked up.
    """
    ids = list(series)
    ended = [place for place in places if series[ids[place]].last_observed_at < before]
    gaps = [place for place in places if series[ids[place]].last_observed_at >= before]
    last = [(place, series[ids[place]].last_observed_at, series[ids[place]].last_value, 0) for place in ended]
    known = pl.DataFrame(last, schema=["series", "observed_at", "value", "rank"], orient="row")
    if not gaps:
        return known
    found = store.frame(
        "page_rows",
        parts=["history_last_days"],
        **history.identifiers,
        ids=[ids[place] for place in gaps],
        before=before,
    )
    looked_up = found.with_columns(series=pl.Series(gaps, dtype=pl.Int64)[found["series"]])
    return pl.concat([known.cast(looked_up.schema), looked_up])


def _read_last_before(store: Store, history: History, ids: Sequence[str], before: int) -> pl.DataFrame:
    """The last observation of each series before an instant, in the columns of `read_observations`."""
    return store.frame(
        "page_rows_thinned",
        parts=["history_before"],
        **history.identifiers,
        ids=list(ids),
        bounds=[0],
        **look_back(before),
    )
