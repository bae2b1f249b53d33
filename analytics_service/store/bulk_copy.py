"""Adds the rows of staging tables to a cluster's tables, in pieces.

A single server attaches the parts of a staging table in a moment. On replicas only an INSERT waits for a majority of
copies, and one of tens of millions of rows takes longer than anybody waits for a statement. So it is one for each
million rows, or for a day. Rows that are there already are left out: whoever goes on after a process that died, or
works beside one that was only slow, repeats nothing but the piece that was under way.
"""

from collections.abc import Iterable, Iterator

from analytics_service.clickhouse.connection import Store
from analytics_service.market.instants import DAY
from analytics_service.store.datasets.events import EVENTS
from analytics_service.store.datasets.observations import OBSERVATIONS

# Rows of a statement, unless a day has more. ClickHouse writes about as many as one part of each month.
_ROWS_AT_ONCE = 1_000_000
# By table: the column of a row's time, and those that identify the row.
_ROWS = {
    OBSERVATIONS: ("observed_at", "history, asset_id, observed_at"),
    EVENTS: ("at", "address, at, uuid"),
}


def add_in_pieces(store: Store, table: str, staged: str, version: int, at_once: int = _ROWS_AT_ONCE) -> None:
    """Add the rows of a staging table, which are of a version. It may be repeated."""
    time, key = _ROWS[table]
    parts = {"table": table, "staged": staged, "time": time, "key": key}
    days = store.query("count_staged_by_day", {"staged": staged, "time": time}).iter_rows()
    for start, end in day_batches(days, at_once):
        bound = {"start": start, "end": end, "version": version}
        # To count rows takes less than to leave them out.
        if not store.query("check_staged_inserted", parts, **bound)["is_added"].item():
            store.run("insert_staged", parts, **bound)


def day_batches(days: Iterable[tuple[int, int]], at_once: int) -> Iterator[tuple[int, int]]:
    """Ranges of time (unix seconds, the end excluded) that cover some days, given by their start and count of rows,
    ascending: each with so many rows at most, or a single day."""
    start, end, total = 0, 0, 0
    for day, rows in days:
        if total and total + rows > at_once:
            yield start, end
            total = 0
        start = start if total else day
        end, total = day + DAY, total + rows
    if total:
        yield start, end
