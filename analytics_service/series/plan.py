"""Which rows a page needs: the widest rollup cells that reach over no bucket's end, and nothing else."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

QUARTER = 900
DAY = 86_400
# Rows from a little before the page, and from a UTC day's begin, nearly always hold the values that its first buckets
# carry forward.
_QUARTERS_SLACK = DAY
_DAYS_SLACK = 31 * DAY
# Mean widths of buckets, from which on days are read as day cells; local days may have 23 hours.
_DAILY = 20 * 3600
# From this mean width of buckets on, the few days on which one ends are named, so that no others are read in quarters.
_WIDE = 2 * DAY
# Buckets no wider than this hold so few quarter hours that thinning them in the store costs more than it saves.
_NARROW = 2 * 3600


@dataclass(frozen=True, slots=True)
class Plan:
    """What to read for a page, unix seconds; the queries in sql/queries say what each bound selects.

    No row before `since`, the begin of a UTC day, is read; the rows reach up to `until`, exclusive. With `by_days`,
    days are read as day cells, and of `edge_days` (all when empty) also the quarter hours before `edge_seconds` of the
    day, the latest at which a bucket ends. `bounds` are the begins of the buckets within what is read.
    """

    since: int
    until: int
    by_days: bool
    quarters_from: int
    raw_from: int
    days_to: int
    edge_days: list[int]
    edge_seconds: int
    bounds: list[int]

    @property
    def has_tail(self) -> bool:
        """Whether single observations must be read."""
        return self.raw_from < self.until

    @property
    def thinned(self) -> bool:
        """Whether the store should keep only the last row of each bucket."""
        return self.until - self.bounds[0] > _NARROW * len(self.bounds)


def plan_page(begins: Sequence[int], horizon: int) -> Plan:
    """The rows that the buckets between `begins` need, when nothing at or after `horizon` is known.

    Cells are aligned to UTC. Present-day zone offsets are multiples of 15 minutes, so boundaries are cell
    boundaries; where a zone's odd offset of long ago makes them not so, single observations are read throughout.
    """
    lowest = max(begins[0], 0)
    until = max(lowest, min(begins[-1], horizon))
    bounds = sorted({lowest, *(b for b in begins if lowest < b < until)})
    aligned = all(bound % QUARTER == 0 for bound in bounds)
    raw_from = floor(until if aligned else lowest, QUARTER)
    by_days = aligned and until - lowest >= _DAILY * len(bounds)
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
        edge_seconds=max(edge % DAY for edge in (*bounds, raw_from)),
        bounds=[since, *bounds] if since < lowest else bounds,
    )


def look_back(before: int) -> dict[str, int]:
    """Parameters of the look-back before an instant: begins of the month, day and quarter hour that hold it."""
    first = datetime.fromtimestamp(before, UTC).replace(day=1, hour=0, minute=0, second=0)
    return {
        "before": before,
        "month": int(first.timestamp()),
        "day": floor(before, DAY),
        "quarter": floor(before, QUARTER),
    }


def floor(second: int, width: int) -> int:
    """The last multiple of a width at or before a second."""
    return second - second % width
