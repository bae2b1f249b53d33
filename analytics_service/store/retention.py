"""Drops raw rows of histories that are older than a number of days, once their cells exist (rule 8.14).

First the intention is noted. All readers and writers of old rows check that note, so an hour later nothing relies on
the rows any more, and they are dropped. Every step may be repeated.
"""

import logging
from collections.abc import Iterator, Sequence
from datetime import datetime

import polars as pl

from analytics_service.errors import ObservationsDropped
from analytics_service.market.instants import DAY, HOUR, instant, month_start, next_month, shown, unix_second
from analytics_service.store.cells import cells_agree, fill_month, rows_by_month
from analytics_service.store.connection import Store
from analytics_service.store.families import FAMILY_OF
from analytics_service.store.ledger import Ledger, read_ledger

log = logging.getLogger(__name__)

# Market histories and the events that loans and liquidations sum up are kept.
PRUNED = ("price", "lend_rate", "borrow_rate", "loans_originated", "liquidations")
_NOTES = "raw_dropped"
# Seconds from a note to the drop: longer than any run takes from its look at the notes to its announcement.
_GRACE = HOUR


def kept_from(store: Store, table: str) -> int:
    """The unix second from which on all raw rows of a table are kept; 0 where none was given up.

    Raw rows that were read before this was asked are complete from there on.
    """
    return _noted(store, table, 0)[0]


def require_kept(store: Store, table: str, oldest: int) -> None:
    """ObservationsDropped if the oldest row of a run (unix second) precedes the time from which on rows are kept."""
    since = kept_from(store, table)
    if oldest < since:
        raise ObservationsDropped(
            f"{FAMILY_OF[table]}: single observations before {shown(instant(since))} are not kept "
            f"(ANALYTICS_RAW_DAYS), so none can be added or corrected there; the oldest of these is of "
            f"{shown(instant(oldest))}. Leave out what lies before; nothing was written."
        )


def require_staged_kept(store: Store, tables: Sequence[str], suffix: str) -> None:
    """The same for the rows in the staging tables of some tables, which have a suffix."""
    for table in PRUNED:
        if table in tables and kept_from(store, table):
            for oldest in store.frame("staged_since", table=table + suffix)["oldest"]:
                require_kept(store, table, oldest)


def prune(store: Store, days: int, at: datetime) -> None:
    """Drop the raw rows that were noted an hour ago or earlier, and note those of further whole UTC months that ended
    so many days before `at` and before the family's newest observation."""
    ledger = read_ledger(store)
    for table in PRUNED:
        _drop(store, table, ledger, unix_second(at))
        _note(store, table, ledger, days, unix_second(at))


def _drop(store: Store, table: str, ledger: Ledger, now: int) -> None:
    family, settled = FAMILY_OF[table], _noted(store, table, max(now - _GRACE, 0))[1]
    # A run that was announced before the note may still need the rows.
    if family in ledger.open or ledger.appends.get(family):
        return
    for month in _summed_up(store, table, settled):
        store.execute(f"ALTER TABLE {table} DROP PARTITION {instant(month):%Y%m}")
        log.info(
            "%s: the single observations of %s are dropped; cells have their sums.", table, f"{instant(month):%Y-%m}"
        )


def _note(store: Store, table: str, ledger: Ledger, days: int, now: int) -> None:
    head = ledger.heads.get(FAMILY_OF[table])
    if head is None:
        return
    limit = month_start(max(min(now, head.last_observed_at) - days * DAY, 0))
    months = list(_summed_up(store, table, limit))
    until = next_month(months[-1]) if months else 0
    if until > kept_from(store, table):
        row = {"name": [table], "until": [until], "noted_at": [now]}
        store.insert(_NOTES, pl.DataFrame(row, schema={"name": pl.String, "until": pl.UInt32, "noted_at": pl.UInt32}))


def _summed_up(store: Store, table: str, until: int) -> Iterator[int]:
    """The months of a table before a unix second, oldest first, until one whose rows and cells disagree.

    Cells that are missing are computed.
    """
    for month in _months(store, table, until):
        if not cells_agree(store, table, month):
            fill_month(store, table, month)
            if not cells_agree(store, table, month):
                log.error("%s: cells and rows of %s disagree; the rows are kept.", table, f"{instant(month):%Y-%m}")
                return
        yield month


def _months(store: Store, table: str, until: int) -> Sequence[int]:
    return [month for month in rows_by_month(store, table) if month < until]


def _noted(store: Store, table: str, noted_by: int) -> tuple[int, int]:
    rows = store.frame("raw_dropped", table=table, noted_by=noted_by)
    return rows.row(0) if rows.height else (0, 0)
