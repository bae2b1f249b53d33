"""Frames from the store: the widest cells that no bucket cuts, and single observations where one does."""

from collections.abc import Sequence
from dataclasses import dataclass

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


@dataclass(frozen=True)
class State:
    """A history in the store as of a head, with the ids of its series, in order, and its first second.

    `generation` is another number once what an earlier state shows has changed, or there are other series.
    """

    store: Store
    history: History
    head: Head
    ids: Sequence[str]
    first: int
    generation: int

    @property
    def newest(self) -> int:
        """The history's newest observation, unix seconds."""
        return self.head.last_observed_at

    def frame(self, ids: Sequence[str], bounds: Sequence[int], until: int) -> Frame:
        """What some series hold from the first of some ascending instants to before `until`, one row for each that has
        anything between two of them.

        Cost: one query, which reads the cells that cover the range, and single observations where an instant cuts one.
        Superseded when the history was rewritten since the state.
        """
        begin = max(bounds[0], 0)
        inner = sorted({begin, *(bound for bound in bounds if begin < bound < until)})
        parts, parameters = _cover(inner, until)
        rows = self.store.frame(
            "frame_rows",
            ["frame_before", *parts],
            history=self.history.name,
            ids=list(ids),
            all=int(len(ids) == len(self.ids)),
            bounds=inner if begin == 0 else [0, *inner],
            **look_back(begin),
            **parameters,
        )
        require_unchanged(self.store, self.head)
        # An asset that is newer than the state has a place after the last one.
        return Frame.of(ids, begin, until, rows.filter(rows["series"] < len(ids)).drop("bucket"))


def _cover(bounds: Sequence[int], until: int) -> tuple[list[str], dict[str, object]]:
    """The queries whose rows cover a range without overlapping, and their parameters. No row is cut by a bound.

    Cells are aligned to UTC. Present-day zone offsets are multiples of 15 minutes, so buckets of hours and more begin
    where quarters of an hour do. Where bounds lie elsewhere, single observations are read: of the quarters that they
    cut, or throughout if bounds are close together; and always of the quarter that the range ends in. Days that a bound
    cuts are read in quarters.
    """
    since, tail = bounds[0], max(floor(until, QUARTER), bounds[0])
    inner = [bound for bound in bounds if bound < tail]
    cut = sorted({floor(bound, QUARTER) for bound in inner if bound % QUARTER})
    width = (tail - since) / max(len(inner), 1)
    by_cells = not cut or width > _DENSE
    by_days = by_cells and width >= _DAILY
    raw_from = tail if by_cells else since
    edges = cut if by_cells else []
    parts = [
        *(["frame_days" if by_days else "frame_quarters"] if since < raw_from else []),
        *(["frame_edges"] if edges else []),
        *(["frame_tail"] if raw_from < until else []),
    ]
    # Long lists are sent only where they are used: binding them costs time.
    days = sorted({floor(bound, DAY) for bound in inner if bound % DAY}) if by_days else []
    return parts, {
        "since": since,
        "until": until,
        "days_to": floor(raw_from, DAY),
        "raw_from": raw_from,
        "edge_days": days,
        "edge_quarters": edges,
    }
