"""Cells: summaries of the observations in 15 minutes, in a UTC day and in a UTC month (rule 8.11).

They are computed from raw rows, by the run that closes them, and again by each run that changes observations in them,
once its rows are in place and before the ledger lists it. So the ledger tells how far cells reach: to the newest
observation of the family. What a run that died has left undone is done by the next one, which begins there.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import pairwise

from analytics_service.market.instants import DAY, month_start, next_month
from analytics_service.store.connection import Store

QUARTER = 900
# Rows whose cells one statement computes, so that none takes long, and seconds from the first of its months to the
# last: an insert may write to 100 partitions at most, and each month has one.
_ROWS_AT_ONCE = 4_000_000
_SECONDS_AT_ONCE = 5 * 366 * DAY


@dataclass(frozen=True, slots=True)
class Span:
    """A range of time, unix seconds: from `since` to before `until`.

    It is of all series, or of those whose asset ids are from `first` to before `before`; an empty `before` is no limit.
    """

    since: int
    until: int
    first: str = ""
    before: str = ""


def close_cells(store: Store, histories: Sequence[str], after: int, newest: int) -> None:
    """Compute the cells that end after a second and are closed once `newest` is the newest observation (unix seconds),
    when the rows are in place. Repeating it does no harm."""
    _compute(store, dict.fromkeys(histories, ()), after, newest, version=0)


def compute_touched(store: Store, histories: Sequence[str], staged: str, after: int, newest: int, version: int) -> None:
    """The same once the rows of a staging table are in place; and compute all cells that have an observation of the
    version, which is that of these rows."""
    found = _months(store, staged)
    _compute(store, {history: found.get(history, ()) for history in histories}, after, newest, version)


def _compute(store: Store, months: Mapping[str, Sequence[int]], after: int, newest: int, version: int) -> None:
    """Compute the cells of histories: those that are closed, and those of the version in some months of each."""
    closing, until = closing_span(after, newest), newest + 1
    for history, own in months.items():
        for span in _spans(store, history, own, closing):
            store.run("fill_cells", history=history, **asdict(span), after=after, closed_until=until, version=version)


def look_back(before: int) -> dict[str, int]:
    """Parameters of queries about what was before an instant (unix second): starts of the month, day and quarter hour
    that hold it."""
    return {
        "before": before,
        "month": month_start(before),
        "day": floor(before, DAY),
        "quarter": floor(before, QUARTER),
    }


def floor(second: int, width: int) -> int:
    """The last multiple of a width at or before a second."""
    return second - second % width


def closing_span(after: int, newest: int) -> Span | None:
    """The raw rows from the beginning of the widest cell that is closed; None when none is.

    A cell is closed once no further observation can fall into it: when the newest observation is at its last second, or
    later.
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
    """The UTC months (their starts, unix s) of which a table has observations, by history."""
    found: dict[str, list[int]] = {}
    for history, month in store.frame("staged_months", table=table).iter_rows():
        found.setdefault(history, []).append(month)
    return found


def _spans(store: Store, history: str, months: Sequence[int], closing: Span | None) -> Iterator[Span]:
    """Spans that cover some months and a closing span. Each has a bounded number of months, and of rows of the history
    unless one series has more in a month."""
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


def _by_series(store: Store, history: str, whole: Span) -> Iterator[Span]:
    """A span in parts of some series each, so that statements about a month of many rows end in time."""
    counted = store.frame("rows_by_series", history=history, since=whole.since, until=whole.until)
    rows: Counter[str] = Counter(dict(counted.iter_rows()))
    first, total = "", 0
    for name, following in pairwise([*sorted(rows), ""]):
        total += rows[name]
        if not following:
            yield replace(whole, first=first)
        elif total + rows[following] > _ROWS_AT_ONCE:
            yield replace(whole, first=first, before=following)
            first, total = following, 0
