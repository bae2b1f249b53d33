"""Finds out what the store has lost (rule 8.19).

Truth is a comparison of rows: observations with rollups of 15 minutes, these with days, days with months, and
snapshots with the ledger. A part that ClickHouse has found broken counts only where rows cannot be compared.
"""

import logging
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from itertools import groupby

import polars as pl

from analytics_service.clickhouse.connection import Store
from analytics_service.clickhouse.queries import named_query
from analytics_service.errors import AnalyticsError, StoreFailure, Superseded
from analytics_service.market.instants import DAY, NANOSECONDS, month_start, next_month, unix_second
from analytics_service.market.kinds import FOREVER
from analytics_service.store.datasets.events import EVENTS
from analytics_service.store.datasets.histories import HISTORIES, names_of
from analytics_service.store.datasets.observations import OBSERVATIONS, read_series
from analytics_service.store.datasets.positions import forget_digests
from analytics_service.store.ledger import (
    HEADS,
    Ledger,
    first_moment,
    new_version,
    read_ledger,
    require_unchanged,
)
from analytics_service.store.losses import LOSSES, Loss, describe_losses
from analytics_service.store.rollups import FIFTEEN_MINUTES, ROLLUPS, floor_to_width
from analytics_service.store.schema import TABLES

log = logging.getLogger(__name__)

# All observations of a row of `rollup`, those included that say that there is no value.
_COUNTED = "count + unknown"
# By width: the end of a rollup, the next smaller width, the start of the rollup that holds one of that width, and the
# spans whose differing rollups are told as one.
_WIDTHS = {
    "15min": ("begins_at + 900", "", "", "toStartOfDay"),
    "day": ("begins_at + 86400", "15min", "toStartOfDay(start)", "toStartOfMonth"),
    "month": ("addMonths(begins_at, 1)", "day", "toDateTime(toStartOfMonth(start), 'UTC')", "toStartOfYear"),
}
# Tables with rows for each snapshot, which the ledger counts; and those of them that are not stored by month.
_UNCOUNTED = (EVENTS, "position_digest")
_COUNTED_TABLES = {name: dataset for dataset, names in TABLES.items() for name in names if name not in _UNCOUNTED}
_NOT_BY_MONTH = ("position_change",)
# Tables of which no answer lacks rows: what they are for is made again, or is about the past of the service itself.
_SILENT = (
    "position_digest",
    "snapshot_head",
    "rewrite",
    "owner",
    "schema_migration",
    "job_run",
    "write_lock",
)
# The partitions of the rollups of days and months.
_DAYS, _MONTHS = "2-0", "3-0"
_LOSS = {"name": pl.String, "first_at": pl.UInt32, "last_at": pl.UInt32, "part": pl.String}
_SCHEMA: dict[str, type[pl.DataType] | pl.DataType] = {
    "dataset": pl.String,
    "losses": pl.List(pl.Struct(_LOSS)),
    "version": pl.UInt64,
}
# Ranges of series whose next observations are looked up; their names are parameters.
_MOST_RANGES = 1_000

# Seconds whose snapshots are compared with the ledger together: half a million in a year of one each minute.
_AT_ONCE = 366 * DAY

Losses = dict[str, list[Loss]]


@dataclass(frozen=True, slots=True)
class _Range:
    """Where rollups of a series differ, unix seconds: from `first` to before `until`."""

    history: str
    asset_id: str
    first: int
    end: int


@dataclass(frozen=True, slots=True)
class BrokenPart:
    """A part of a table that ClickHouse has put aside, and when (unix second), and whether the parts that it was merged
    from are there instead."""

    table: str
    partition: str
    name: str
    found_at: int
    restored: bool = False

    @property
    def began_before(self) -> int:
        """A version greater than that of all runs that may have rows in it."""
        return (self.found_at + 1) * NANOSECONDS

    @property
    def span(self) -> tuple[int, int]:
        """The unix seconds of its rows, both included. Partitions are months, years, or all."""
        digits = self.partition.rpartition("-")[2]
        if len(digits) == len("202501"):
            month = _start_of(digits)
            return month, next_month(month) - 1
        if len(digits) == len("2025"):
            return _start_of(f"{digits}01"), next_month(_start_of(f"{digits}12")) - 1
        return 0, FOREVER


def check(store: Store) -> bool:
    """Find out what is lost, and record it for all readers. Returns whether to check again soon: something is lost, or
    was rewritten meanwhile. Of that stays what was known before.
    """
    broken = _broken_parts(store)
    if any(part.table == HEADS for part in broken):
        _raise_heads(store)
    ledger = read_ledger(store)
    known = {dataset: [*losses] for dataset, losses in ledger.losses.items() if losses}
    found = _found(store, ledger, broken)
    if _fresh(found, known):
        # A run that was completed meanwhile may look like a loss.
        again = _found(store, ledger, broken)
        found = {
            dataset: [loss for loss in losses if loss in again.get(dataset, ())] for dataset, losses in found.items()
        }
    changed = [dataset for dataset in found.keys() | known.keys() if found.get(dataset, []) != known.get(dataset, [])]
    settled = {dataset: found.get(dataset, []) for dataset in sorted(changed) if _is_settled(store, ledger, dataset)}
    _tell(settled, known)
    _record(store, settled)
    return len(settled) < len(changed) or any({**known, **settled}.values())


def _fresh(found: Losses, known: Losses) -> bool:
    return any(loss not in known.get(dataset, ()) for dataset, losses in found.items() for loss in losses)


def _is_settled(store: Store, ledger: Ledger, dataset: str) -> bool:
    """Whether no rewrite of the dataset has been announced since the ledger was read (rule 8.3)."""
    try:
        require_unchanged(store, *filter(None, [ledger.heads.get(dataset)]))
    except Superseded:
        return False
    return True


def _tell(now: Losses, before: Losses) -> None:
    """Log what is lost that was not, and the reverse."""
    fresh = {
        dataset: [loss for loss in losses if loss not in before.get(dataset, ())] for dataset, losses in now.items()
    }
    for told in describe_losses(fresh):
        log.error("%s", told)
    for dataset, losses in now.items():
        if not losses:
            log.info("%s: nothing is lost any more.", dataset or "The store")


def _record(store: Store, losses: Losses) -> None:
    """Tell readers what is lost of some datasets."""
    if any(loss.what.startswith("position") for own in losses.values() for loss in own):
        # What digests say of an address may be newer than its rows, or older.
        forget_digests(store)
    version = new_version(store) if losses else 0
    rows = [
        {"dataset": dataset, "losses": [_stored(loss) for loss in own], "version": version}
        for dataset, own in losses.items()
    ]
    store.insert(LOSSES, pl.DataFrame(rows, schema=_SCHEMA))


def _stored(loss: Loss) -> dict[str, object]:
    return dict(zip(_LOSS, asdict(loss).values(), strict=True))


def _found(store: Store, ledger: Ledger, broken: Sequence[BrokenPart]) -> Losses:
    """All losses by dataset, in order."""
    found: defaultdict[str, set[Loss]] = defaultdict(set)
    for dataset, loss in (*_differing(store, ledger), *_missing(store, ledger), *_uncounted(store, ledger, broken)):
        found[dataset].add(loss)
    return {
        dataset: sorted(losses, key=lambda loss: (loss.what, loss.first, loss.last))
        for dataset, losses in found.items()
    }


def _raise_heads(store: Store) -> None:
    """Make heads of what the ledger lists; they follow from it."""
    for dataset in TABLES:
        ends = named_query("derive_head", {"dataset": dataset, "newest": "max(s.last_observed_at)"})
        store.execute(named_query("raise_head", {"dataset": dataset, "ends": ends}))


def _start_of(month: str) -> int:
    """The start of a month such as 202501, unix second."""
    return unix_second(datetime(int(month[:4]), int(month[4:]), 1, tzinfo=UTC))


def _differing(store: Store, ledger: Ledger) -> Iterator[tuple[str, Loss]]:
    """Where closed rollups have other numbers of observations than what they are made from."""
    heads = ledger.heads
    closed = {h.name: heads[h.dataset].last_observed_at + 1 for h in HISTORIES if h.dataset in heads}
    if not closed:
        return
    ranges = _joined(_ranges(store, closed))
    end = _until_observed(store, ranges)
    for history in HISTORIES:
        own = [each for each in ranges if each.history == history.name]
        # A series without any rollup is in no page.
        listed = read_series(store, history, heads[history.dataset].last_observed_at + 1) if own else {}
        spans = [(each.first if each.asset_id in listed else 0, end[each]) for each in own]
        yield from ((history.dataset, Loss(history.name, *span)) for span in _union(spans))


def _ranges(store: Store, closed: Mapping[str, int]) -> list[_Range]:
    """Where rollups of series differ from the next smaller width."""
    bound: dict[str, object] = {"histories": [*closed], "ends": [*closed.values()]}
    newest = max(closed.values())
    rows = []
    for start, end in _months(store, newest):
        rows += _differing_rows(store, "15min", start=start, end=end, **bound)
    for width in ("day", "month"):
        rows += _differing_rows(store, width, start=0, end=newest, **bound)
    return [_Range(*row) for row in rows]


def _differing_rows(store: Store, width: str, **bound: object) -> list[tuple[str, str, int, int]]:
    ends_at, narrower, begins_at, span = _WIDTHS[width]
    counted = {"counted": _COUNTED}
    part = (
        named_query("count_narrower_rollups", {**counted, "begins_at": begins_at})
        if narrower
        else named_query("count_15min_observations", ())
    )
    parts = {**counted, "narrower": part, "ends_at": ends_at, "span": span}
    return store.query("compare_rollups", parts, width=width, narrower_width=narrower, **bound).rows()


def _months(store: Store, newest: int) -> Iterator[tuple[int, int]]:
    """The starts and ends of the UTC months of all observations and rollups, unix seconds."""
    month = month_start(store.query("find_first_observed")["first"].item())
    while month < newest:
        following = next_month(month)
        yield month, following
        month = following


def _joined(ranges: Iterable[_Range]) -> list[_Range]:
    """Ranges with those of the same series joined that are less than a day apart, or all if there are too many."""
    found = sorted(ranges, key=lambda each: (each.history, each.asset_id, each.first))
    by_series = [[*group] for _, group in groupby(found, key=lambda each: (each.history, each.asset_id))]
    gap = DAY if len(found) <= _MOST_RANGES else FOREVER
    return [
        _Range(series[0].history, series[0].asset_id, first, end)
        for series in by_series
        for first, end in _union([(each.first, each.end) for each in series], gap)
    ]


def _union(spans: Iterable[tuple[int, int]], gap: int = 1) -> list[tuple[int, int]]:
    """Spans in order, with those joined that are not more than a gap apart."""
    joined: list[tuple[int, int]] = []
    for first, last in sorted(spans):
        if joined and first <= joined[-1][1] + gap:
            joined[-1] = joined[-1][0], max(joined[-1][1], last)
        else:
            joined.append((first, last))
    return joined


def _until_observed(store: Store, ranges: Sequence[_Range]) -> Mapping[_Range, int]:
    """The last second at which each range changes answers: before the next observation of its series."""
    next_at: dict[tuple[str, str, int], int] = {}
    for start in range(0, len(ranges), _MOST_RANGES):
        some = ranges[start : start + _MOST_RANGES]
        bound = {
            "histories": [each.history for each in some],
            "ids": [each.asset_id for each in some],
            "untils": [each.end for each in some],
        }
        next_at |= {row[:3]: row[3] for row in store.query("find_observed_after", (), **bound).iter_rows()}
    return {each: next_at.get((each.history, each.asset_id, each.end), FOREVER + 1) - 1 for each in ranges}


def _missing(store: Store, ledger: Ledger) -> Iterator[tuple[str, Loss]]:
    """Snapshots with fewer rows than the ledger counts."""
    if not ledger.heads:
        return
    newest = max(head.at for head in ledger.heads.values())
    by_month = [name for name in _COUNTED_TABLES if name not in _NOT_BY_MONTH]
    first = store.query("find_first_counted")["first"].item()
    spans = [(by_month, start, start + _AT_ONCE - 1) for start in range(first, newest + 1, _AT_ONCE)]
    found: defaultdict[str, list[int]] = defaultdict(list)
    for names, start, last in [*spans, ([*_NOT_BY_MONTH], 0, FOREVER)]:
        queries = [
            named_query("find_missing_rows", {"table": name, "dataset": _COUNTED_TABLES[name]}) for name in names
        ]
        rows = store.query("union_queries", {"queries": " UNION ALL ".join(queries)}, start=start, last=last)
        for _, what, at in rows.iter_rows():
            found[what].append(at)
    for what, seconds in found.items():
        if what in _NOT_BY_MONTH:
            # A row holds until the next one of its item.
            yield _COUNTED_TABLES[what], Loss(what, min(seconds), FOREVER)
        else:
            yield from (
                (_COUNTED_TABLES[what], Loss(what, *span)) for span in _union([(at, at) for at in seconds], DAY)
            )


def _broken_parts(store: Store) -> list[BrokenPart]:
    """The broken parts whose rows are not there otherwise. Where tables have copies, ClickHouse fetches what is broken
    from another server."""
    if store.layout.is_replicated:
        return []
    try:
        rows = store.query("list_broken_parts", (), database=store.database)
    except StoreFailure as error:
        # What can be compared is found all the same.
        log.warning("Broken parts are not listed; grant SELECT on system.detached_parts. %s", error)
        return []
    parts = [BrokenPart(*row) for row in rows.iter_rows()]
    for part in parts:
        if part.restored:
            _delete(store, part)
    return [part for part in parts if not part.restored]


def _delete(store: Store, part: BrokenPart) -> None:
    """Delete a broken part that nobody needs: once others are merged, nobody could tell that its rows are there."""
    with suppress(AnalyticsError):
        store.command(f"ALTER TABLE {part.table} DROP DETACHED PART '{part.name}' SETTINGS allow_drop_detached = 1")
        log.info("A broken part of %s was deleted; ClickHouse still has its rows in other parts.", part.table)


def _uncounted(store: Store, ledger: Ledger, broken: Sequence[BrokenPart]) -> Iterator[tuple[str, Loss]]:
    """What broken parts may have had beyond what is compared."""
    for part in broken:
        if part.table == OBSERVATIONS:
            yield from _uncounted_observations(store, ledger, part, broken)
        elif part.table != ROLLUPS and (part.table not in _COUNTED_TABLES or part.table in _NOT_BY_MONTH):
            start, last = part.span
            for dataset in _datasets_of(part.table, ledger):
                # Of a table without months, nothing can be missing from before the first snapshot.
                first = start or (first_moment(store, dataset) or 0 if dataset else 0)
                yield dataset, Loss(part.table, first, last, part.name)


def _datasets_of(table: str, ledger: Ledger) -> Sequence[str]:
    """The datasets whose answers need a table that nothing counts."""
    if table in _SILENT:
        return [""]
    return [dataset for dataset, names in TABLES.items() if table in names] or [*ledger.heads]


def _uncounted_observations(
    store: Store, ledger: Ledger, part: BrokenPart, broken: Sequence[BrokenPart]
) -> Iterator[tuple[str, Loss]]:
    """Observations that no rollup summarizes, or only lost ones, until they are written anew."""
    (start, last), before = part.span, part.began_before
    lost = {each.partition for each in broken if each.table == ROLLUPS}
    for dataset, end in store.query("find_written_until", (), before=before, moment=part.found_at).iter_rows():
        first, end = max(start, _summarized_until(end + 1, part.partition, lost)), min(end, last)
        bound = {"dataset": dataset, "first": first, "last": end, "before": before}
        if first > end or not store.query("check_written_before", (), **bound).item():
            continue
        for name in names_of(dataset):
            following = store.query("find_all_observed_after", history=name, after=end).item()
            span = (first, following - 1 if following else FOREVER)
            # Without its rollups, nobody knows which series there were.
            yield dataset, Loss(name, *((0, FOREVER) if _fifteen_minutes(part.partition) in lost else span))


def _summarized_until(end: int, month: str, lost: set[str]) -> int:
    """The second before which rollups summarize a month when the newest observation is before `end`."""
    if _fifteen_minutes(month) not in lost:
        return floor_to_width(end, FIFTEEN_MINUTES)
    if _DAYS not in lost:
        return floor_to_width(end, DAY)
    return month_start(end) if _MONTHS not in lost else 0


def _fifteen_minutes(month: str) -> str:
    """The partition of the rollups of 15 minutes of a month."""
    return f"1-{month}"
