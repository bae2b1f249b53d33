"""Cells: summaries of the observations in 15 minutes, in a UTC day and in a UTC month (rule 8.11).

They are computed from raw rows, by the run that closes them and by each rewrite that touches them. A rewrite computes
them into staging before it is announced, so that readers do not wait for that. There may also be cells of periods that
have not ended; nobody reads those, and they are computed again when they close.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from itertools import pairwise
from typing import TypeVar

from analytics_service.market.instants import DAY, month_start, next_month
from analytics_service.store.connection import Store
from analytics_service.store.progress import Reporter

_Key = TypeVar("_Key")

QUARTER = 900
# Rows whose cells one statement computes or checks, so that none takes long, and seconds from the first of its months
# to the last: an insert may write to 100 partitions at most, and each month has one.
_ROWS_AT_ONCE = 4_000_000
_SECONDS_AT_ONCE = 5 * 366 * DAY
# Which cells are written: those that a run closes, and those with an observation that it has brought.
_CLOSING = "ends_at > toDateTime({closing_from:UInt32}, 'UTC') AND ends_at <= toDateTime({closing_until:UInt32}, 'UTC')"
_CLOSED = {"where": _CLOSING, "having": "true"}
_CLOSED_OR_TOUCHED = {"where": "true", "having": f"max(version = {{version:UInt64}} OR ({_CLOSING}))"}
_ALL = {"where": "true", "having": "true"}
# Raw rows of a span of time: those in place, or those in place and in staging. Both may have a row for an instant.
_WITHIN = """observed_at >= toDateTime({since:UInt32}, 'UTC') AND observed_at < toDateTime({until:UInt32}, 'UTC')
AND asset_id >= {first:String} AND ({before:String} = '' OR asset_id < {before:String})"""
_ROWS = "SELECT asset_id, observed_at, {value:Identifier} AS value, version FROM"
_IN_PLACE = f"{_ROWS} {{table:Identifier}} FINAL WHERE {_WITHIN}"
_WITH_STAGED = f"{_IN_PLACE} UNION ALL {_ROWS} {{staged:Identifier}} FINAL WHERE {_WITHIN}"
# The unix second at which a cell ends, in SQL.
ENDS_AT = "toUnixTimestamp(multiIf(width = 'quarter', cell + 900, width = 'day', cell + 86400, addMonths(cell, 1)))"


def cell_table(table: str) -> str:
    """The name of a table's cells."""
    return f"{table}_cell"


@dataclass(frozen=True, slots=True)
class Span:
    """A range of time, unix seconds: from `since` to before `until`.

    It is of all series, or of those whose asset ids are from `first` to before `before`; an empty `before` is no limit.
    """

    since: int
    until: int
    first: str = ""
    before: str = ""


@dataclass(frozen=True, slots=True)
class Change:
    """What a run changes: it closes the cells that end in (`newest_before`, `newest`], unix seconds, and, if it is a
    rewrite, touches those of its rows. They have its `version`, and its staging tables have the suffix `staged`."""

    newest_before: int
    newest: int
    staged: str = ""
    version: int = 0


def write_cells(store: Store, tables: Sequence[str], change: Change) -> None:
    """Compute the cells of some tables that a run closes or touches, once its rows are in place. Repeating it does no
    harm."""
    _compute(store, tables, change, _IN_PLACE)


def stage_cells(store: Store, tables: Sequence[str], change: Change) -> None:
    """Compute the cells of some tables that a rewrite closes or touches into staging, where its rows still are."""
    _compute(store, tables, change, _WITH_STAGED, into=change.staged)


def write_all_cells(store: Store, reporter: Reporter) -> None:
    """Compute all cells of all histories, some months at a time."""
    for table, value in celled(store).items():
        spans = list(_spans(store, {table}, list(rows_by_month(store, table)), None))
        if spans:
            reporter.stage(f"Computing {cell_table(table)}", len(spans))
        for span in spans:
            _fill_all(store, table, value, span)
            reporter.advance(1)


def closing_span(change: Change) -> Span | None:
    """The raw rows, from the beginning of the widest cell that a run closes; None when it closes none.

    A cell is closed once no further observation can fall into it: when the newest observation is at its last second, or
    later.
    """
    begin, end = change.newest_before + 1, change.newest + 1
    if month_start(begin) != month_start(end):
        since = month_start(begin)
    elif begin // DAY != end // DAY:
        since = begin - begin % DAY
    elif begin // QUARTER != end // QUARTER:
        since = begin - begin % QUARTER
    else:
        return None
    return Span(since, end)


def cells_agree(store: Store, table: str, month: int) -> bool:
    """Whether the cells of a month, given by its start (unix s), sum up its raw rows, and no others."""
    names = {"table": table, "cells": cell_table(table)}
    spans = _spans(store, {table}, [month], None)
    return all(store.frame("cells_amiss", (), **names, **asdict(span)).is_empty() for span in spans)


def fill_month(store: Store, table: str, month: int) -> None:
    """Compute all cells of a month that is closed, given by its start (unix s)."""
    value = celled(store)[table]
    for span in _spans(store, {table}, [month], None):
        _fill_all(store, table, value, span)


def rows_by_month(store: Store, table: str) -> dict[int, int]:
    """Rows of a table in each UTC month, by its start (unix s), in order; repeated rows count."""
    rows = store.frame("history_density", table=table).sort("month").iter_rows()
    return {int(datetime(int(name[:4]), int(name[4:]), 1, tzinfo=UTC).timestamp()): count for name, count in rows}


def celled(store: Store) -> Mapping[str, str]:
    """The column of values of each table that has cells."""
    return dict(store.frame("celled_tables").iter_rows())


def _compute(store: Store, tables: Sequence[str], change: Change, rows: str, into: str = "") -> None:
    closing = closing_span(change)
    if closing is None and not change.staged:
        return
    chosen = _CLOSED_OR_TOUCHED if change.staged else _CLOSED
    for table, value in celled(store).items():
        if table not in tables:
            continue
        staged = table + change.staged
        touched = list(rows_by_month(store, staged)) if change.staged else []
        for span in _spans(store, {table, staged} if into else {table}, touched, closing):
            store.run(
                "fill_cells",
                {"rows": rows, **chosen},
                table=table,
                staged=staged,
                cells=cell_table(table) + into,
                value=value,
                **asdict(span),
                closing_from=change.newest_before,
                closing_until=change.newest + 1,
                version=change.version,
            )


def _fill_all(store: Store, table: str, value: str, span: Span) -> None:
    """Compute all cells of a span of whole months."""
    names = {"table": table, "cells": cell_table(table), "value": value}
    store.run("fill_cells", {"rows": _IN_PLACE, **_ALL}, **names, **asdict(span))


def _spans(store: Store, tables: Set[str], months: Sequence[int], closing: Span | None) -> Iterator[Span]:
    """Spans that cover some months and a closing span. Each has a bounded number of months, and of rows of some tables
    unless one series has more in a month."""
    begins = {month: month for month in months}
    if closing is not None:
        month = month_start(closing.since)
        begins.setdefault(month, closing.since)
        while (month := next_month(month)) < closing.until:
            begins[month] = month
    if not begins:
        return
    rows = _sum(rows_by_month(store, table) for table in tables)
    ordered = sorted(begins)
    first, total = begins[ordered[0]], 0
    for month, following in pairwise([*ordered, 0]):
        total += rows[month]
        is_full = total + rows[following] > _ROWS_AT_ONCE or following - first > _SECONDS_AT_ONCE
        if is_full or following != next_month(month):
            span = Span(first, next_month(month))
            yield from [span] if total <= _ROWS_AT_ONCE else _by_series(store, tables, span)
            first, total = begins.get(following, 0), 0


def _by_series(store: Store, tables: Set[str], whole: Span) -> Iterator[Span]:
    """A span in parts of some series each, so that statements about a month of many rows end in time.

    Every asset id is in one of them: a series without rows may have cells.
    """
    counts = (
        store.frame("rows_by_series", (), table=table, since=whole.since, until=whole.until).iter_rows()
        for table in tables
    )
    rows: Counter[str] = _sum(map(dict, counts))
    first, total = "", 0
    for name, following in pairwise([*sorted(rows), ""]):
        total += rows[name]
        if not following:
            yield replace(whole, first=first)
        elif total + rows[following] > _ROWS_AT_ONCE:
            yield replace(whole, first=first, before=following)
            first, total = following, 0


def _sum(counts: Iterable[Mapping[_Key, int]]) -> Counter[_Key]:
    return sum(map(Counter, counts), Counter())
