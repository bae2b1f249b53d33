"""Frames from the store: the widest rollups that no bucket boundary cuts, and single observations at the cuts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import polars as pl

from analytics_service.clickhouse.connection import Store
from analytics_service.history.frame import Frame
from analytics_service.market.instants import DAY, HOUR
from analytics_service.store.datasets.histories import History
from analytics_service.store.ledger import Head, require_unchanged
from analytics_service.store.rollups import FIFTEEN_MINUTES, floor, look_back

# Buckets of at least this mean width are read from day rollups; local days may have 23 hours.
_DAILY = 20 * HOUR
# Up to this mean width, reading all observations is as fast as selecting those at the cuts.
_DENSE = 2 * FIFTEEN_MINUTES
# How long before the first bucket reading begins. The last value before the bucket is nearly always there.
_REACH, _REACH_OF_DAYS = DAY, 31 * DAY


@dataclass(frozen=True)
class PinnedHistory:
    """A history in the store as of a head, with the first instant (unix s) of each series, in the order of ids.

    `generation` increases when data of an earlier head or the set of series changes.
    """

    store: Store
    history: History
    head: Head
    series: Mapping[str, int]
    generation: int

    @cached_property
    def ids(self) -> list[str]:
        return list(self.series)

    @cached_property
    def first(self) -> int:
        """The unix second before which nothing was observed."""
        return min(self.series.values(), default=self.newest + 1)

    @property
    def newest(self) -> int:
        return self.head.last_observed_at

    def frame(self, ids: Sequence[str], bounds: Sequence[int], until: int, *, all_columns: bool = True) -> Frame:
        """A frame of some series from the first of the ascending `bounds` to before `until`: a row for each series and
        each range between two bounds in which it was observed. Without `all_columns` it has last values only, which
        takes half as long.

        Cost: a query, which reads the rollups that cover the range, and single observations where a bound cuts one;
        and a second query if a series has no recent value before the range. Superseded when the history was rewritten
        since.
        """
        begin = max(bounds[0], 0)
        inner = sorted({begin, *(bound for bound in bounds if begin < bound < until)})
        parts, parameters, reach = _cover(inner, until)
        rows = self.store.frame(
            "summarize_buckets" if all_columns else "read_last_rows",
            parts,
            history=self.history.name,
            ids=list(ids),
            all=int(len(ids) == len(self.series)),
            bounds=sorted({reach, *inner}),
            **parameters,
        )
        # The query gives assets that are newer than the head the index len(ids).
        if (rows["series"] == len(ids)).any():
            rows = rows.filter(rows["series"] < len(ids))
        carried = {*rows.filter(rows["last_at"] < begin)["series"]}
        silent = [index for index, asset_id in enumerate(ids) if index not in carried and self.series[asset_id] < reach]
        if silent:
            rows = pl.concat([self._before([ids[index] for index in silent], silent, begin), rows], how="diagonal")
        require_unchanged(self.store, self.head)
        return Frame.of(ids, begin, until, rows)

    def count_rollups(self, since: int, until: int, most: int) -> int:
        """The number of rollups of 15 minutes between two unix seconds, over all series, but at most `most`.

        Cost: a query, which reads little more than the sort keys of so many rollups.
        """
        counted = self.store.frame(
            "count_15min_rollups", history=self.history.name, since=since, until=until, most=most
        )
        return int(counted.item())

    def _before(self, ids: Sequence[str], indices: Sequence[int], instant: int) -> pl.DataFrame:
        """The last observation of each series before an instant, however long ago. `indices` are those in a frame."""
        parameters: dict[str, object] = {"history": self.history.name, "ids": list(ids), "bounds": [0]}
        rows = self.store.frame("read_last_rows", ["read_last_before"], **parameters, **look_back(instant))
        return rows.with_columns(series=pl.Series(indices, dtype=pl.UInt32)[rows["series"]])


def _cover(bounds: Sequence[int], until: int) -> tuple[list[str], dict[str, object], int]:
    """The queries whose rows cover a range without overlapping, their parameters, and the second at which they begin:
    so long before the first bound that the last rows before it are probably included. No bound cuts a row.

    Rollups are aligned to UTC. Present-day zone offsets are multiples of 15 minutes, so buckets of hours and more begin
    where rollups of 15 minutes do. Where bounds lie elsewhere, single observations are read: those of the 15 minutes
    that a bound cuts, or all of them if bounds are close together. The last 15 minutes of the range are always read
    that way. Days that a bound cuts are read in 15 minutes.
    """
    since = floor(bounds[0], FIFTEEN_MINUTES)
    tail = max(floor(until, FIFTEEN_MINUTES), since)
    inner = [bound for bound in bounds if bound < tail]
    cut = sorted({floor(bound, FIFTEEN_MINUTES) for bound in inner if bound % FIFTEEN_MINUTES})
    width = (tail - since) / max(len(inner), 1)
    by_rollups = not cut or width > _DENSE
    by_days = by_rollups and width >= _DAILY
    raw_from = tail if by_rollups else since
    edges = cut if by_rollups else []
    reach = max(floor(since, DAY) - (_REACH_OF_DAYS if by_days else _REACH), 0)
    parts = [
        *(["read_day_rollups" if by_days else "read_15min_rollups"] if reach < raw_from else []),
        *(["read_edges"] if edges else []),
        *(["read_tail"] if raw_from < until else []),
    ]
    # Long lists are sent only if they are used: binding them takes time.
    days = sorted({floor(bound, DAY) for bound in inner if bound % DAY}) if by_days else []
    parameters = {
        "since": reach,
        "until": until,
        "days_to": floor(raw_from, DAY),
        "raw_from": raw_from,
        "edge_days": days,
        "edge_starts": edges,
    }
    return parts, parameters, reach
