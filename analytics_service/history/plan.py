"""Plans which rows a page needs: the widest cells that no bucket ends within, and nothing else."""

from collections.abc import Sequence
from dataclasses import dataclass

from analytics_service.market.instants import DAY, HOUR, month_start
from analytics_service.store.cells import QUARTER

# How long before the page reading begins. Rows of that time nearly always hold the values that the first buckets carry
# forward.
_QUARTERS_SLACK = DAY
_DAYS_SLACK = 31 * DAY
# From this mean width of buckets on, days are read as day cells; local days may have 23 hours.
_DAILY = 20 * HOUR
# From this mean width on, the few days on which a bucket ends are listed, and only these are read in quarter hours.
_WIDE = 2 * DAY
# Up to this mean width, reading observations throughout takes no longer than picking out those before buckets end.
_DENSE = 2 * QUARTER
# Buckets no wider than this hold so few quarter hours that thinning them in the store costs more than it saves.
_NARROW = 2 * HOUR


@dataclass(frozen=True, slots=True, kw_only=True)
class Cover:
    """What is read of the cells and observations in a range, unix seconds; the queries in sql/queries say how.

    Rows from `since` up to `until`, exclusive, are read. With `by_days`, days before `days_to` are read as day cells,
    and some in quarter hours, which `edge_days` lists. Single observations are read of `edge_quarters`, within which a
    bucket begins, and from `raw_from` on. `bounds` are the starts of the buckets in the range.
    """

    since: int
    until: int
    by_days: bool
    days_to: int
    raw_from: int
    edge_days: list[int]
    edge_quarters: list[int]
    bounds: list[int]

    @property
    def parameters(self) -> dict[str, object]:
        """Parameters of the queries. Long lists are sent only where they are used: binding them costs time."""
        return {
            "since": self.since,
            "until": self.until,
            "days_to": self.days_to,
            "raw_from": self.raw_from,
            "edge_days": self.edge_days if self.by_days else [],
            "edge_quarters": self.edge_quarters,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan(Cover):
    """What to read for the last values of a page. Rows may be more than it needs.

    `since` is the start of a UTC day. On `edge_days` (on all days when it is empty) the quarter hours before
    `edge_seconds` of the day, the latest at which a bucket ends, are read beside the day cell, from `quarters_from` on.
    """

    quarters_from: int
    edge_seconds: int

    @property
    def parts(self) -> list[str]:
        """The queries whose rows together are those of the page."""
        cells = "history_days" if self.by_days else "history_quarters"
        edges, tail = ["history_edges"] if self.edge_quarters else [], ["history_tail"]
        return [cells, *edges, *(tail if self.raw_from < self.until else [])]

    @property
    def thinned(self) -> bool:
        """Whether the store should keep only the last row of each bucket."""
        return self.until - self.bounds[0] > _NARROW * len(self.bounds)


def plan_page(begins: Sequence[int], until: int) -> Plan:
    """The rows that the buckets between `begins` need, of those before `until`.

    Cells are aligned to UTC. Present-day zone offsets are multiples of 15 minutes, so buckets of hours and more begin
    where cells do. For other buckets, and for zones that had odd offsets long ago, single observations are read: of the
    quarter hours in which buckets end, or throughout if buckets are narrow.
    """
    lowest, until, bounds = _range(begins, until)
    cut = _cut_quarters(bounds)
    by_cells = not cut or until - lowest > _DENSE * len(bounds)
    raw_from = floor(until if by_cells else lowest, QUARTER)
    by_days = by_cells and until - lowest >= _DAILY * len(bounds)
    wide = until - lowest >= _WIDE * len(bounds)
    since = max(0, floor(lowest, DAY) - (_DAYS_SLACK if by_days else _QUARTERS_SLACK))
    return Plan(
        since=since,
        until=until,
        by_days=by_days,
        quarters_from=floor(lowest, DAY) if by_days else since,
        raw_from=raw_from,
        days_to=floor(raw_from, DAY),
        edge_days=sorted({floor(edge, DAY) for edge in (*bounds, raw_from)}) if wide else [],
        edge_quarters=cut if by_cells else [],
        edge_seconds=max(edge % DAY for edge in (*bounds, raw_from)),
        bounds=[since, *bounds] if since < lowest else bounds,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class CandlePlan(Cover):
    """What to read for the candles of a page: cells and rows that cover the range without overlapping.

    Day cells lie within one bucket; the quarter hours of `edge_days` are read instead of the others.
    """

    @property
    def parts(self) -> list[str]:
        """The queries whose rows together are those of the page."""
        cells = ["candle_days" if self.by_days else "candle_quarters"] if self.since < self.raw_from else []
        edges = ["candle_edges"] if self.edge_quarters else []
        tail = ["candle_tail"] if self.raw_from < self.until else []
        return [*cells, *edges, *tail]


def plan_candles(begins: Sequence[int], until: int) -> CandlePlan:
    """Like `plan_page`, for candles: the rows before `until` that the buckets between `begins` need."""
    lowest, until, bounds = _range(begins, until)
    cut = _cut_quarters(bounds)
    by_cells = not cut or until - lowest > _DENSE * len(bounds)
    raw_from = max(floor(until, QUARTER), lowest) if by_cells else lowest
    return CandlePlan(
        since=lowest,
        until=until,
        by_days=by_cells and until - lowest >= _DAILY * len(bounds),
        days_to=floor(raw_from, DAY),
        raw_from=raw_from,
        edge_days=sorted({floor(bound, DAY) for bound in bounds if bound % DAY}),
        edge_quarters=[quarter for quarter in cut if quarter < floor(raw_from, QUARTER)],
        bounds=bounds,
    )


def look_back(before: int) -> dict[str, int]:
    """Parameters of the look-back before an instant: starts of the month, day and quarter hour that hold it."""
    return {
        "before": before,
        "month": month_start(before),
        "day": floor(before, DAY),
        "quarter": floor(before, QUARTER),
    }


def floor(second: int, width: int) -> int:
    """The last multiple of a width at or before a second."""
    return second - second % width


def _range(begins: Sequence[int], until: int) -> tuple[int, int, list[int]]:
    """Start and end of the buckets between `begins`, clipped to [0, until), and the starts of buckets in that range."""
    lowest = max(begins[0], 0)
    until = max(lowest, min(begins[-1], until))
    return lowest, until, sorted({lowest, *(begin for begin in begins if lowest < begin < until)})


def _cut_quarters(bounds: Sequence[int]) -> list[int]:
    """The starts of the quarter hours within which a bucket begins."""
    return sorted({floor(bound, QUARTER) for bound in bounds if bound % QUARTER})
