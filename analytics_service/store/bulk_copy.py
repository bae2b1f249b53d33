"""Copies the rows of staging tables into a cluster's tables, in batches.

A single server attaches the parts of a staging table in a moment. On replicas only an INSERT waits for a majority of
copies, and an INSERT of tens of millions of rows outlasts every time limit. So each INSERT copies a million rows, or a
day. Rows that the table already has are skipped, so a writer that takes over repeats at most one batch.
"""

from collections.abc import Iterable, Iterator

from analytics_service.clickhouse.connection import Store
from analytics_service.market.instants import DAY
from analytics_service.store.datasets.events import EVENTS
from analytics_service.store.datasets.observations import OBSERVATIONS

# Rows of a statement, unless a single day has more. ClickHouse writes up to about this many rows as one part.
_ROWS_AT_ONCE = 1_000_000
# By table: the column of a row's time, and the columns that identify a row.
_ROWS = {
    OBSERVATIONS: ("observed_at", "history, asset_id, observed_at"),
    EVENTS: ("at", "address, at, uuid"),
}


def add_in_pieces(store: Store, table: str, staged: str, version: int, at_once: int = _ROWS_AT_ONCE) -> None:
    """Copy the rows of a staging table, which all have `version`. Safe to repeat."""
    time, key = _ROWS[table]
    parts = {"table": table, "staged": staged, "time": time, "key": key}
    days = store.query("count_staged_by_day", {"staged": staged, "time": time}).iter_rows()
    for start, end in day_batches(days, at_once):
        store.run("insert_staged", parts, start=start, end=end, version=version)


def day_batches(days: Iterable[tuple[int, int]], at_once: int) -> Iterator[tuple[int, int]]:
    """Ranges [start, end) (unix seconds) that cover `days`: ascending pairs of a day's start and its row count. Each
    range has at most `at_once` rows, or is a single day."""
    start, end, total = 0, 0, 0
    for day, rows in days:
        if total and total + rows > at_once:
            yield start, end
            total = 0
        start = start if total else day
        end, total = day + DAY, total + rows
    if total:
        yield start, end
