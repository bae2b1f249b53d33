"""Rollups: summaries of the observations of 15 minutes, a UTC day or a UTC month (rule 8.11, closed rollups).

The commit that closes a rollup computes it, and each commit that changes its observations recomputes it: after the
commit's rows are in place, and before the ledger lists the commit. 15min rollups are computed from observations, days
from 15min rollups, and months from days, so closing a month reads some thirty rollups of each series. The watermark of
a dataset's rollups is its newest observation in the ledger; the commit after a dead commit starts there.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise

from analytics_service.clickhouse.connection import Store
from analytics_service.clickhouse.queries import named_query
from analytics_service.market.instants import DAY, month_start
from analytics_service.store.ledger import new_version
from analytics_service.store.mutations import delete_rows

ROLLUPS = "rollup"
FIFTEEN_MINUTES = 900
# Limits of a statement that computes rollups: rows, so that it ends soon; and seconds from its first to its last day,
# because an INSERT may write to at most 100 partitions, and each month is a partition. A statement also reads the days
# in between, unless they have enough rows to be worth another statement.
_ROWS_AT_ONCE = 4_000_000
_SECONDS_AT_ONCE = 5 * 366 * DAY
_ROWS_BETWEEN = 100_000


@dataclass(frozen=True, slots=True)
class Span:
    """A range of time: [start, end) in unix seconds."""

    start: int
    end: int


def close_rollups(store: Store, histories: Sequence[str], start: int, end: int) -> None:
    """Compute the rollups that observations in [start, end) (unix seconds) close. Rollups closed before `start` exist;
    the newest observation is just before `end`. Call it once the rows are in place. Safe to repeat."""
    _compute(store, TouchedRollups(), [(histories, ())], start, end)


@dataclass(frozen=True, slots=True)
class TouchedRollups:
    """The changes of a rewrite: the staging tables of added observations, which have its version, and of removed
    observations; empty if there are none."""

    added: str = ""
    removed: str = ""
    version: int = 0


def compute_touched(store: Store, histories: Sequence[str], touched: TouchedRollups, start: int, end: int) -> None:
    """Like `close_rollups`, and compute all rollups with observations that a rewrite added or removed. Call it once
    observations are in place. Deletes rollups of removed observations first: they may become empty."""
    staged = {"added": touched.added, "removed": touched.removed or touched.added}
    changed = store.query("list_staged_days", **staged)
    if touched.removed:
        rollups = named_query("list_rollups_of_observation", ())
        statement = named_query("delete_touched_rollups", {"removed": touched.removed, "rollups": rollups})
        delete_rows(store, ROLLUPS, statement, touched.removed)
    named = changed["history"].unique().to_list()
    # Other histories have no row in these days to be computed, and may have millions to be read.
    others = [history for history in histories if history not in named]
    _compute(store, touched, [(named, changed["day"].unique().to_list()), (others, ())], start, end)


def _compute(
    store: Store,
    touched: TouchedRollups,
    groups: Iterable[tuple[Sequence[str], Sequence[int]]],
    start: int,
    end: int,
) -> None:
    """Compute the rollups of histories that close, and their rollups in some days with added or removed observations.
    `groups` are histories and their days."""
    by_removed = named_query("find_touched_15min", {"removed": touched.removed}) if touched.removed else ""
    parts = {"touched": f"(history, asset_id, begins_at) IN ({by_removed})" if by_removed else "false"}
    closed = {"closed_from": start, "closed_to": end, "version": touched.version}
    # No earlier computation may win over this one, even if another server's clock is ahead.
    computed = 0
    for histories, days in groups:
        wider = {width: begin for width, begin in _WIDER.items() if days or begin(start) != begin(end)}
        for span in _spans(store, histories, days, closing_span(start, end)) if histories else ():
            computed = computed or new_version(store)
            bound = {"histories": histories, "computed": computed, **asdict(span)}
            store.run("compute_15min_rollups", parts, **bound, **closed)
            for width, begin in wider.items():
                store.run("compute_wider_rollups", **bound | {"width": width, "start": begin(span.start)})


def lookback_start(before: int) -> dict[str, int]:
    """Parameters of queries before a unix second: the starts of its month, day and 15 minutes."""
    return {
        "before": before,
        "month": month_start(before),
        "day": floor_to_width(before, DAY),
        "fifteen_minutes": floor_to_width(before, FIFTEEN_MINUTES),
    }


def floor_to_width(second: int, width: int) -> int:
    return second - second % width


def _day_start(second: int) -> int:
    return floor_to_width(second, DAY)


# Widths beyond 15 minutes, each computed from the width before it, with the start of the rollup that contains a second.
_WIDER: Mapping[str, Callable[[int], int]] = {"day": _day_start, "month": month_start}


def closing_span(start: int, end: int) -> Span | None:
    """The span from the start of the first 15min rollup that observations in [start, end) close; None if they close
    none. A rollup is closed once the newest observation is at its last second, or later."""
    first_second = floor_to_width(start, FIFTEEN_MINUTES)
    return Span(first_second, end) if first_second != floor_to_width(end, FIFTEEN_MINUTES) else None


def _spans(store: Store, histories: Sequence[str], days: Sequence[int], closing: Span | None) -> Iterator[Span]:
    """Spans that cover the days and a closing span. They are bounded in time, and in rows unless a single day has
    more."""
    if closing is not None and not days and closing.end - closing.start <= DAY:
        yield closing
        return
    begins = {day: day for day in days}
    if closing is not None:
        for day in range(_day_start(closing.start), closing.end, DAY):
            begins.setdefault(day, max(day, closing.start))
    if not begins:
        return
    ordered = sorted(begins)
    counted = store.query("count_rows_by_day", histories=histories, start=ordered[0], end=ordered[-1] + DAY)
    rows: Counter[int] = Counter(dict(counted.iter_rows()))
    first, total = begins[ordered[0]], 0
    for day, following in pairwise([*ordered, 0]):
        total += rows[day]
        between = sum(rows[other] for other in range(day + DAY, following, DAY))
        is_full = total + between + rows[following] > _ROWS_AT_ONCE or following - first > _SECONDS_AT_ONCE
        if is_full or between > _ROWS_BETWEEN or not following:
            yield Span(first, day + DAY)
            first, total = begins.get(following, 0), 0
        else:
            total += between
