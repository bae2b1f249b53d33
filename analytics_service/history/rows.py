"""Reads the rows of histories from the store, at the cost of the buckets that are asked for."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal

import polars as pl

from analytics_service.history.buckets import Buckets
from analytics_service.history.candles import make_candles, no_observations, scattered
from analytics_service.history.plan import CandlePlan, Plan, look_back, plan_candles, plan_page
from analytics_service.history.sample import limits, nothing, sample
from analytics_service.history.states import SeriesInfo
from analytics_service.market.instants import MINUTE
from analytics_service.store.cells import QUARTER
from analytics_service.store.connection import Store
from analytics_service.store.histories import History


class Rows:
    """The rows of a history in the store."""

    def __init__(self, store: Store, history: History) -> None:
        self._store = store
        self._history = history

    def read_series(self, until: int) -> dict[str, SeriesInfo]:
        """The series with an observation at or before a second, by asset id in the order of ids."""
        rows = self._frame("history_series", (), **look_back(until + 1))
        return {asset_id: SeriesInfo(*known) for asset_id, *known in rows.iter_rows()}

    def read_density(self, until: int) -> dict[int, int]:
        """Observations in each UTC month (its start, unix s) up to a second, in order, as far as cells count them."""
        rows = self._frame("history_density", (), **look_back(until + 1)).iter_rows()
        return dict(rows)

    def read_values(
        self, series: Mapping[str, SeriesInfo], buckets: Buckets, *, whole: bool, thinned: bool = False
    ) -> pl.DataFrame:
        """Columns value (decimal text or null) and observed_at (unix s) of all series in each bucket, bucket by bucket.

        `whole` says that the series are all there are, `thinned` that the buckets are many. Cost: one query, and one
        more when a series carries a value over a long gap into the first bucket.
        """
        begins, until = buckets.begins, buckets.until
        oldest, ends = limits(begins, until, carry=buckets.carry)
        if not ends or not series or begins[0] >= until:
            return nothing(len(ends) * len(series))
        plan = plan_page(begins, until)
        rows = self._read_rows(list(series), plan, whole=whole, thinned=thinned)
        values = sample(rows, len(series), oldest, ends)
        missing = _begun_before(series, values["value"][: len(series)], plan.since) if buckets.carry else []
        if not missing:
            return values
        earlier = self._read_earlier(series, missing, plan.since)
        return sample(pl.concat([rows, earlier.cast(rows.schema)]), len(series), oldest, ends)

    def read_candles(
        self, series: Mapping[str, SeriesInfo], buckets: Buckets, *, whole: bool
    ) -> tuple[pl.DataFrame, pl.DataFrame]:
        """The candles of all series in each bucket, bucket by bucket, and the values that hold at the buckets' ends.

        The values are as those of `read_values`. Cost: two queries, that for the values and one whose rows are cells.
        """
        begins, until, count = buckets.begins, buckets.until, len(series)
        ends = [min(end, until) for end in begins[1:]]
        starts = [max(begin, 0) for begin in begins[:-1]]
        observed = no_observations(buckets.count * count)
        if not observed.height or begins[0] >= until:
            last = nothing(observed.height)
            return make_candles(observed, last["value"], last, starts, ends), last
        # An extra bucket in front, whose value is the one that holds when the first bucket begins.
        step = QUARTER if begins[0] % QUARTER == 0 else MINUTE
        values = self.read_values(series, Buckets([begins[0] - step, *begins], until), whole=whole)
        last = values[count:]
        plan = plan_candles(begins, until)
        if plan.parts:
            rows = self._read_candle_rows(list(series), plan, whole=whole)
            rows = rows.filter(pl.col("series") < count)
            place = {max(begin, 0): bucket for bucket, begin in enumerate(begins[:-1])}
            bucket = rows["bucket"].cast(pl.Int64).replace_strict(place, return_dtype=pl.Int64)
            observed = scattered(
                rows.select(observed.columns).cast(observed.schema),
                bucket * count + rows["series"].cast(pl.Int64),
                observed.height,
            )
        return make_candles(observed, values["value"][: len(last)], last, starts, ends), last

    def read_observations(self, ids: Sequence[str], begin: int, until: int) -> pl.DataFrame:
        """Every observation in [begin, until): series (place in ids), observed_at (unix s), value (plain decimal text)
        and rank; in no order. Of several with one observed_at the one with the greatest rank holds."""
        return self._frame("page_rows", ["history_tail"], ids=list(ids), raw_from=begin, until=until)

    def read_latest(self, ids: Sequence[str], at: int) -> dict[str, tuple[Decimal, datetime]]:
        """Value and instant of the last observation at or before a second, by id in the order of `ids`; ids without one
        are left out. The second may not be after the family's newest observation, because cells that it has not closed
        are taken to have nothing (rule 8.11). The cost does not grow with the history, but for one row a month."""
        rows = self._frame("page_rows_thinned", ["history_before"], ids=list(ids), bounds=[0], **look_back(at + 1))
        columns = rows.sort("series", "observed_at").select("series", "value", "observed_at").iter_rows()
        return {ids[series]: (Decimal(value), datetime.fromtimestamp(second, UTC)) for series, value, second in columns}

    def _read_rows(self, ids: list[str], plan: Plan, *, whole: bool, thinned: bool) -> pl.DataFrame:
        """Observations of the plan's range in the columns of `read_observations`.

        For each series and bucket the last observation is among them. With `whole`, rows are not filtered by id; rows
        of an asset that is newer than `ids` have a place after the last one. `thinned` has the store keep one row per
        bucket, even if the plan would not.
        """
        thinned = thinned or plan.thinned
        return self._frame(
            "page_rows_thinned" if thinned else "page_rows",
            plan.parts,
            ids=ids,
            all=int(whole),
            **plan.parameters,
            quarters_from=plan.quarters_from,
            edge_seconds=plan.edge_seconds,
            bounds=plan.bounds if thinned else [],
        )

    def _read_candle_rows(self, ids: list[str], plan: CandlePlan, *, whole: bool) -> pl.DataFrame:
        """A summary of the observations for each bucket and series that has any."""
        return self._frame("candle_rows", plan.parts, ids=ids, all=int(whole), **plan.parameters, bounds=plan.bounds)

    def _read_earlier(self, series: Mapping[str, SeriesInfo], places: Sequence[int], before: int) -> pl.DataFrame:
        """The last observations of some series (by place) before the start of a UTC day.

        For a series whose newest observation is that old it is known already; only series with later ones are looked
        up.
        """
        ids = list(series)
        ended = [place for place in places if series[ids[place]].last_observed_at < before]
        gaps = [place for place in places if series[ids[place]].last_observed_at >= before]
        last = [(place, series[ids[place]].last_observed_at, series[ids[place]].last_value, 0) for place in ended]
        known = pl.DataFrame(last, schema=["series", "observed_at", "value", "rank"], orient="row")
        if not gaps:
            return known
        found = self._frame("page_rows", ["history_last_days"], ids=[ids[place] for place in gaps], before=before)
        looked_up = found.with_columns(series=pl.Series(gaps, dtype=pl.Int64)[found["series"]])
        return pl.concat([known.cast(looked_up.schema), looked_up])

    def _frame(self, query: str, parts: Sequence[str], **parameters: object) -> pl.DataFrame:
        return self._store.frame(query, parts, history=self._history.name, **parameters)


def _begun_before(series: Mapping[str, SeriesInfo], firsts: pl.Series, since: int) -> list[int]:
    """Places of the series that began before what was read, and yet have no value in the page's first bucket."""
    if not firsts.null_count():
        return []
    pairs = zip(series.values(), firsts.is_null(), strict=True)
    return [place for place, (one, missing) in enumerate(pairs) if missing and one.first_at < since]
