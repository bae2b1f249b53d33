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


def read_rows(store: Store, history: History, ids: Sequence[str], plan: Plan, *, whole: bool) -> pl.DataFrame:
    """Observations of the plan's range: series (place in ids), observed_at (unix s), value (plain decimal text), rank;
    in no order.

    For each series and bucket the last observation is among them; of several with one observed_at the one with the
    greatest rank holds. With `whole`, the ids are all there are, and rows need not be looked for by id; rows of an
    asset that is new since then have a place behind the last one.
    """
    parts = ["days" if plan.by_days else "quarters", *(["tail"] if plan.has_tail else [])]
    return store.frame(
        "page_rows_thinned" if plan.thinned else "page_rows",
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
        bounds=plan.bounds if plan.thinned else [],
        until=plan.until,
    )


def read_last_before(store: Store, history: History, ids: Sequence[str], before: int) -> pl.DataFrame:
    """The last observation of each series before an instant, in the columns of `read_rows`; none where there is none.

    The cost does not grow with the history, but for one row a month.
    """
    return store.frame(
        "page_rows_thinned",
        parts=["history_before"],
        **history.names,
        ids=list(ids),
        bounds=[0],
        **look_back(before),
    )


@dataclass(frozen=True, slots=True)
class Series:
    """What is known of a series without reading a page: the begin of its first UTC month, and its last observation."""

    first_month: int
    last_observed_at: int
    last_value: str


def read_series(store: Store, history: History, until: int) -> dict[str, Series]:
    """The series with an observation at or before a second, by id in the order of ids."""
    rows = store.frame("history_series", until=until, **history.names)
    return {asset_id: Series(*known) for asset_id, *known in rows.iter_rows()}


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
