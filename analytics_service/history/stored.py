"""Frames from the store: the widest cells that no bucket cuts, and single observations where one does."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import polars as pl

from analytics_service.history.frame import Frame
from analytics_service.market.instants import DAY, HOUR
from analytics_service.store.cells import QUARTER, floor, look_back
from analytics_service.store.connection import Store
from analytics_service.store.histories import History
from analytics_service.store.ledger import Head, require_unchanged

# From this mean width of buckets on, days are read as day cells; local days may have 23 hours.
_DAILY = 20 * HOUR
# Up to this mean width, reading observations throughout takes no longer than picking out those that are needed.
_DENSE = 2 * QUARTER
# How long before the first bucket reading begins. What it carries is nearly always found there.
_REACH, _REACH_OF_DAYS = DAY, 31 * DAY


@dataclass(frozen=True)
class PinnedHistory:
    """A history in the store as of a head, with the first instant (unix s) of each series, in the order of ids.

    `generation` is another number once what an earlier head shows has changed, or there are other series.
    """

    store: Store
    history: History
    head: Head
    series: Mapping[str, int]
    generation: int

    @cached_property
    def ids(self) -> list[str]:
        """The ids of all series."""
        return list(self.series)

    @cached_property
    def first(self) -> int:
        """The unix second before which nothing was observed."""
        return min(self.series.values(), default=self.newest + 1)

    @property
    def newest(self) -> int:
        """The history's newest observation, unix seconds."""
        return self.head.last_observed_at

    def frame(self, ids: Sequence[str], bounds: Sequence[int], until: int, *, whole: bool = True) -> Frame:
        """What some series hold from the first of some ascending instants to before `until`, one row for each that has
        anything between two of them. Unless `whole`, it has the last values only, which takes half as long.

        Cost: one query, which reads the cells that cover the range, and single observations where an instant cuts one;
        and another one if a series was silent for long before. Superseded when the history was rewritten since.
        """
        begin = max(bounds[0], 0)
        inner = sorted({begin, *(bound for bound in bounds if begin < bound < until)})
        parts, parameters, reach = _cover(inner, until)
        rows = self.store.frame(
            "frame_rows" if whole else "last_rows",
            parts,
            history=self.history.name,
            ids=list(ids),
            all=int(len(ids) == len(self.series)),
            bounds=sorted({reach, *inner}),
            **parameters,
        )
        # An asset that is newer than the head has a place after the last one.
        if (rows["series"] == len(ids)).any():
            rows = rows.filter(rows["series"] < len(ids))
        carried = {*rows.filter(rows["last_at"] < begin)["series"]}
        silent = [place for place, one in enumerate(ids) if place not in carried and self.series[one] < reach]
        if silent:
            rows = pl.concat([self._before([ids[place] for place in silent], silent, begin), rows], how="diagonal")
        require_unchanged(self.store, self.head)
        return Frame.of(ids, begin, until, rows)

    def _before(self, ids: Sequence[str], places: Sequence[int], instant: int) -> pl.DataFrame:
        """The last observations of some series before an instant, however long ago; `places` are theirs in a frame."""
        parameters: dict[str, object] = {"history": self.history.name, "ids": list(ids), "bounds": [0]}
        rows = self.store.frame("last_rows", ["frame_before"], **parameters, **look_back(instant))
        return rows.with_columns(series=pl.Series(places, dtype=pl.UInt32)[rows["series"]])


def _cover(bounds: Sequence[int], until: int) -> tuple[list[str], dict[str, object], int]:
    """The queries whose rows cover a range without overlapping, their parameters, and where they begin: so long before
    the first bound that the rows before it are probably among them. No row is cut by a bound.

    Cells are aligned to UTC. Present-day zone offsets are multiples of 15 minutes, so buckets of hours and more begin
    where quarters of an hour do. Where bounds lie elsewhere, single observations are read: of the quarters that they
    cut, or throughout if bounds are close together; and always of the quarter that the range ends in. Days that a bound
    cuts are read in quarters.
    """
    since = floor(bounds[0], QUARTER)
    tail = max(floor(until, QUARTER), since)
    inner = [bound for bound in bounds if bound < tail]
    cut = sorted({floor(bound, QUARTER) for bound in inner if bound % QUARTER})
    width = (tail - since) / max(len(inner), 1)
    by_cells = not cut or width > _DENSE
    by_days = by_cells and width >= _DAILY
    raw_from = tail if by_cells else since
    edges = cut if by_cells else []
    reach = max(floor(since, DAY) - (_REACH_OF_DAYS if by_days else _REACH), 0)
    parts = [
        *(["frame_days" if by_days else "frame_quarters"] if reach < raw_from else []),
        *(["frame_edges"] if edges else []),
        *(["frame_tail"] if raw_from < until else []),
    ]
    # Long lists are sent only where they are used: binding them costs time.
    days = sorted({floor(bound, DAY) for bound in inner if bound % DAY}) if by_days else []
    parameters = {
        "since": reach,
        "until": until,
        "days_to": floor(raw_from, DAY),
        "raw_from": raw_from,
        "edge_days": days,
        "edge_quarters": edges,
    }
    return parts, parameters, reach
