"""Reads the rows that a plan names, and looks back where a series begins the page with none."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from analytics_service.series.plan import Plan, look_back
from analytics_service.store.connection import Store


@dataclass(frozen=True, slots=True)
class History:
    """A kind of history: its ledger family, its table, the rollup of that, and the column of values in both."""

    family: str
    table: str
    rollup: str
    value: str

    @property
    def names(self) -> dict[str, str]:
        """What the history queries call by parameter."""
        return {"table": self.table, "rollup": self.rollup, "value": self.value}


PRICES = History(family="prices", table="price", rollup="price_rollup", value="price")
LEND_RATES = History(family="rates", table="lend_rate", rollup="lend_rate_rollup", value="apr")
BORROW_RATES = History(family="rates", table="borrow_rate", rollup="borrow_rate_rollup", value="apr")
LOANS = History(family="loans", table="loans_originated", rollup="loans_originated_rollup", value="usd")


def read_rows(
    store: Store, history: History, ids: Sequence[str], plan: Plan, *, whole: bool, thinned: bool
) -> pl.DataFrame:
    """Observations of the plan's range: series (place in ids), observed_at (unix s), value (plain decimal text), rank;
    in no order.

    For each series and bucket the last observation is among them; of several with one observed_at the one with the
    greatest rank holds. With `whole`, the ids are all there are, and rows need not be looked for by id; rows of an
    asset that is new since then have a place behind the last one. `thinned` has the store keep one row a bucket, also
    where the plan would not.
    """
    thinned = thinned or plan.thinned
    parts = ["days" if plan.by_days else "quarters", *(["tail"] if plan.has_tail else [])]
    return store.frame(
        "page_rows_thinned" if thinned else "page_rows",
        parts=[f"history_{part}" for part in parts],
        **history.names,
        ids=list(ids),
        all=int(whole),
        quarters_from=plan.quarters_from,
        raw_from=plan.raw_from,
        since=plan.since,
        days_to=plan.days_to,
        # Long lists are sent only where they are used: binding them costs time.
        edge_days=plan.edge_days if plan.by_days else [],
        edge_seconds=plan.edge_seconds,
        bounds=plan.bounds if thinned else [],
        until=plan.until,
    )


def read_last_before(store: Store, history: History, ids: Sequence[str], before: int) -> pl.DataFrame:
    """The last observation of each series before an instant, in the columns of `read_rows`; none where there is none.

    The cost does not grow with the history, but for one row a month.
    """
    return _read_last(store, history, "history_before", ids, **look_back(before))


def read_last_since(store: Store, history: History, ids: Sequence[str], begin: int, until: int) -> pl.DataFrame:
    """The last observation of each series in [begin, until), in the columns of `read_rows`; none where there is none.

    A span of an hour or less has so few observations that cells would save nothing.
    """
    return _read_last(store, history, "history_tail", ids, raw_from=begin, until=until)


def _read_last(store: Store, history: History, part: str, ids: Sequence[str], **bounds: int) -> pl.DataFrame:
    """The last row of each series among those of a part."""
    return store.frame("page_rows_thinned", parts=[part], **history.names, ids=list(ids), bounds=[0], **bounds)


@dataclass(frozen=True, slots=True)
class Series:
    """What is known of a series without reading a page: the begin of its first UTC month, and its last observation."""

    first_month: int
    last_observed_at: int
    last_value: str


# A series without any observation.
NEVER_SEEN = Series(first_month=1 << 40, last_observed_at=0, last_value="")


def read_series(store: Store, history: History, until: int) -> dict[str, Series]:
    """The series with an observation at or before a second, by id in the order of ids."""
    rows = store.frame("history_series", until=until, **history.names)
    found = {asset_id: Series(*known) for asset_id, *known in rows.iter_rows()}
    # Months do not tell of a series that begins in this one whether a run that is not complete has begun it.
    month = look_back(until)["month"]
    unsure = [asset_id for asset_id, one in found.items() if one.first_month == month and one.last_observed_at > until]
    begun = read_last_before(store, history, unsure, until + 1)["series"] if unsure else ()
    for asset_id in {*unsure} - {unsure[place] for place in begun}:
        del found[asset_id]
    return found


def with_earlier(
    store: Store, history: History, rows: pl.DataFrame, series: Mapping[str, Series], places: Sequence[int], before: int
) -> pl.DataFrame:
    """A page's rows and the last observations of some of its series (by place) before a UTC day's begin.

    A series that ended before has its last observation known; only one with a gap there is looked up.
    """
    ids = list(series)
    ended = [place for place in places if series[ids[place]].last_observed_at < before]
    gaps = [place for place in places if series[ids[place]].last_observed_at >= before]
    last = [(i, series[ids[i]].last_observed_at, series[ids[i]].last_value, 0) for i in ended]
    parts = [rows, pl.DataFrame(last, schema=rows.schema, orient="row")]
    if gaps:
        found = _read_before_day(store, history, [ids[place] for place in gaps], before)
        place = pl.Series(gaps, dtype=found.schema["series"])
        parts.append(found.with_columns(series=place.gather(found["series"])))
    return pl.concat(parts)


def _read_before_day(store: Store, history: History, ids: Sequence[str], before: int) -> pl.DataFrame:
    """As `read_last_before`, for the begin of a UTC day: cheaper, at the cost of a row for each day of the series."""
    parts = ["history_last_days"]
    return store.frame("page_rows", parts=parts, **history.names, ids=list(ids), before=before)
