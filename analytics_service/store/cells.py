"""Cells: summaries of the observations in 15 minutes, in a UTC day and in a UTC month (rule 8.11).

The run that closes a cell computes it from raw rows, and each run that changes observations in it computes it again:
once the run's rows are in place, and before the ledger lists the run. So the family's newest observation in the ledger
is the watermark of its cells. After a run that died, the next run starts at that watermark.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import pairwise

from analytics_service.market.instants import DAY, month_start, next_month
from analytics_service.store.connection import Store

QUARTER = 900
# Limits of a statement that computes cells: rows, so that it does not take long; and seconds from its first to its last
# month, because an insert may write to at most 100 partitions, and each month is a partition.
_ROWS_AT_ONCE = 4_000_000
_SECONDS_AT_ONCE = 5 * 366 * DAY


@dataclass(frozen=True, slots=True)
class Span:
    """A range of time, unix seconds: from `since` to before `until`.

    It covers series with asset ids from `first` to before `before`; an empty `before` is no limit.
    """

    since: int
    until: int
    first: str = ""
    before: str = ""


def close_cells(store: Store, histories: Sequence[str], after: int, newest: int) -> None:
    """Compute the cells that end after a second and are closed when `newest` is the newest observation (unix seconds).
    Call it once the rows are in place. It may be repeated."""
    _compute(store, dict.fromkeys(histories, ()), after, newest, version=0)


def compute_touched(store: Store, histories: Sequence[str], staged: str, after: int, newest: int, version: int) -> None:
    """Like `close_cells`, once the rows of a staging table are in place; and compute all cells with an observation of
    `version`, which is the version of these rows."""
    touched = _months(store, staged)
    _compute(store, {history: touched.get(history, ()) for history in histories}, after, newest, version)


def _compute(store: Store, months: Mapping[str, Sequence[int]], after: int, newest: int, version: int) -> None:
    """Compute the cells that are closed, and those with observations of the version in `months`, by history."""
    closing, until = closing_span(after, newest), newest + 1
    for history, touched in months.items():
        for span in _spans(store, history, touched, closing):
            store.run("fill_cells", history=history, **asdict(span), after=after, closed_until=until, version=version)


def look_back(before: int) -> dict[str, int]:
    """Parameters of queries for values before an instant (unix second): the starts of its month, day and quarter
    hour."""
    return {
        "before": before,
        "month": month_start(before),
        "day": floor(before, DAY),
        "quarter": floor(before, QUARTER),
    }


def floor(second: int, width: int) -> int:
    """The last multiple of `width` at or before a second."""
    return second - second % width


def closing_span(after: int, newest: int) -> Span | None:
    """The span from the start of the widest closed cell to the newest observation; None when no cell is closed.

    A cell is closed when the newest observation is at its last second, or later: no further observation falls into it.
    """
    begin, end = after + 1, newest + 1
    if month_start(begin) != month_start(end):
        since = month_start(begin)
    elif begin // DAY != end // DAY:
        since = floor(begin, DAY)
    elif begin // QUARTER != end // QUARTER:
        since = floor(begin, QUARTER)
    else:
        return None
    return Span(since, end)


def _months(store: Store, table: str) -> Mapping[str, Sequence[int]]:
    """The UTC months (their starts, unix s) with observations in a table, by history."""
    months: dict[str, list[int]] = {}
    for history, month in store.frame("staged_months", table=table).iter_rows():
        months.setdefault(history, []).append(month)
    return months


def _spans(store: Store, history: str, months: Sequence[int], closing: Span | None) -> Iterator[Span]:
    """Spans that cover the months and a closing span. Each has a bounded number of months, and of rows of the history
    unless a single series has more rows in a month."""
    if closing is not None and not months and closing.until - closing.since <= DAY:
        yield closing
        return
    begins = {month: month for month in months}
    if closing is not None:
        month = month_start(closing.since)
        begins.setdefault(month, closing.since)
        while (month := next_month(month)) < closing.until:
            begins[month] = month
    if not begins:
        return
    ordered = sorted(begins)
    counted = store.frame("rows_by_month", history=history, since=ordered[0], until=next_month(ordered[-1]))
    rows: Counter[int] = Counter(dict(counted.iter_rows()))
    first, total = begins[ordered[0]], 0
    for month, following in pairwise([*ordered, 0]):
        total += rows[month]
        is_full = total + rows[following] > _ROWS_AT_ONCE or following - first > _SECONDS_AT_ONCE
        if is_full or following != next_month(month):
            span = Span(first, next_month(month))
            yield from [span] if total <= _ROWS_AT_ONCE else _by_series(store, history, span)
            first, total = begins.get(following, 0), 0


def _by_series(store: Store, history: str, span: Span) -> Iterator[Span]:
    """A span split by series, so that a statement over a month with many rows ends in time."""
    counted = store.frame("rows_by_series", history=history, since=span.since, until=span.until)
    rows: Counter[str] = Counter(dict(counted.iter_rows()))
    first, total = "", 0
    for name, following in pairwise([*sorted(rows), ""]):
        total += rows[name]
        if not following:
            yield replace(span, first=first)
        elif total + rows[following] > _ROWS_AT_ONCE:
            yield replace(span, first=first, before=following)
            first, total = following, 0
