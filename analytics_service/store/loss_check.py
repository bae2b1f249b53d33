"""Finds lost rows (rule 8.19, losses).

The check compares row counts: observations with 15min rollups, these with days, days with months, and snapshots with
the ledger. A part that ClickHouse found broken counts only where rows cannot be compared.
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

# All observations of a row of `rollup`, including unknown values.
_COUNTED = "count + unknown"
# By width: the end of a rollup, the next smaller width, the start of the rollup that contains a rollup of this width,
# and the period whose differing rollups are reported as one loss.
_WIDTHS = {
    "15min": ("begins_at + 900", "", "", "toStartOfDay"),
    "day": ("begins_at + 86400", "15min", "toStartOfDay(start)", "toStartOfMonth"),
    "month": ("addMonths(begins_at, 1)", "day", "toDateTime(toStartOfMonth(start), 'UTC')", "toStartOfYear"),
}
# Tables with rows for each snapshot, which the ledger counts; and tables that are not partitioned by month.
_UNCOUNTED = (EVENTS, "position_digest")
_COUNTED_TABLES = {name: dataset for dataset, names in TABLES.items() for name in names if name not in _UNCOUNTED}
_NOT_BY_MONTH = ("position_change",)
# Tables that no answer needs: their rows are recomputed, or describe the service itself.
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
# Ranges of one query: their series are parameters.
_MOST_RANGES = 1_000
# Seconds of snapshots compared with the ledger in one query: half a million snapshots in a year of one each minute.
_AT_ONCE = 366 * DAY

Losses = dict[str, list[Loss]]


@dataclass(frozen=True, slots=True)
class _Range:
    """Where rollups of a series differ: [first, end) in unix seconds."""

    history: str
    asset_id: str
    first: int
    end: int


@dataclass(frozen=True, slots=True)
class BrokenPart:
    """A part of a table that ClickHouse has detached at `found_at` (unix second). `restored`: the parts that it was
    merged from are active instead."""

    table: str
    partition: str
    name: str
    found_at: int
    restored: bool = False

    @property
    def began_before(self) -> int:
        """A version greater than that of all commits that may have rows in it."""
        return (self.found_at + 1) * NANOSECONDS

    @property
    def span(self) -> tuple[int, int]:
        """The unix seconds of its rows, both included. A partition is a month, a year, or everything."""
        digits = self.partition.rpartition("-")[2]
        if len(digits) == len("202501"):
            month = _start_of(digits)
            return month, next_month(month) - 1
        if len(digits) == len("2025"):
            return _start_of(f"{digits}01"), next_month(_start_of(f"{digits}12")) - 1
        return 0, FOREVER


def check(store: Store) -> bool:
    """Find lost rows, and record them for all readers. Returns whether to check again soon: something is lost, or a
    dataset was rewritten meanwhile, which keeps its known losses."""
    broken = _broken_parts(store)
    if any(part.table == HEADS for part in broken):
        _raise_heads(store)
    ledger = read_ledger(store)
    known = {dataset: [*losses] for dataset, losses in ledger.losses.items() if losses}
    found = _found(store, ledger, broken)
    if _has_new(found, known):
        # A commit that completed meanwhile may look like a loss.
        again = _found(store, ledger, broken)
        found = {
            dataset: [loss for loss in losses if loss in again.get(dataset, ())] for dataset, losses in found.items()
        }
    changed = [dataset for dataset in found.keys() | known.keys() if found.get(dataset, []) != known.get(dataset, [])]
    settled = {dataset: found.get(dataset, []) for dataset in sorted(changed) if _is_settled(store, ledger, dataset)}
    _log_changes(settled, known)
    _record(store, settled)
    return len(settled) < len(changed) or any({**known, **settled}.values())


def _has_new(found: Losses, known: Losses) -> bool:
    return any(loss not in known.get(dataset, ()) for dataset, losses in found.items() for loss in losses)


def _is_settled(store: Store, ledger: Ledger, dataset: str) -> bool:
    """Whether no rewrite of the dataset was announced since the ledger was read (rule 8.3, atomic rewrites)."""
    try:
        require_unchanged(store, *filter(None, [ledger.heads.get(dataset)]))
    except Superseded:
        return False
    return True


def _log_changes(now: Losses, before: Losses) -> None:
    new = {dataset: [loss for loss in losses if loss not in before.get(dataset, ())] for dataset, losses in now.items()}
    for line in describe_losses(new):
        log.error("%s", line)
    for dataset, losses in now.items():
        if not losses:
            log.info("%s: all losses are repaired.", dataset or "The store")


def _record(store: Store, losses: Losses) -> None:
    """Record the losses of datasets for readers."""
    if any(loss.what.startswith("position") for own in losses.values() for loss in own):
        # A digest may be newer or older than the rows of its address.
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
    """Derive the heads from the ledger."""
    for dataset in TABLES:
        ends = named_query("derive_head", {"dataset": dataset, "newest": "max(s.last_observed_at)"})
        store.execute(named_query("raise_head", {"dataset": dataset, "ends": ends}))


def _start_of(month: str) -> int:
    """The start of a month such as 202501, unix second."""
    return unix_second(datetime(int(month[:4]), int(month[4:]), 1, tzinfo=UTC))


def _differing(store: Store, ledger: Ledger) -> Iterator[tuple[str, Loss]]:
    """Where closed rollups count other numbers of observations than their inputs."""
    heads = ledger.heads
    closed = {h.name: heads[h.dataset].last_observed_at + 1 for h in HISTORIES if h.dataset in heads}
    if not closed:
        return
    ranges = _joined(_ranges(store, closed))
    end = _until_observed(store, ranges)
    for history in HISTORIES:
        own = [each for each in ranges if each.history == history.name]
        # No page shows a series without rollups.
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
    """The UTC months of all observations and rollups: start and end of each, unix seconds."""
    month = month_start(store.query("find_first_observed")["first"].item())
    while month < newest:
        following = next_month(month)
        yield month, following
        month = following


def _joined(ranges: Iterable[_Range]) -> list[_Range]:
    """Joins ranges of a series that are less than a day apart, or all of them if there are too many."""
    found = sorted(ranges, key=lambda each: (each.history, each.asset_id, each.first))
    by_series = [[*group] for _, group in groupby(found, key=lambda each: (each.history, each.asset_id))]
    gap = DAY if len(found) <= _MOST_RANGES else FOREVER
    return [
        _Range(series[0].history, series[0].asset_id, first, end)
        for series in by_series
        for first, end in _union([(each.first, each.end) for each in series], gap)
    ]


def _union(spans: Iterable[tuple[int, int]], gap: int = 1) -> list[tuple[int, int]]:
    """Sorts spans, and joins those that are at most `gap` apart."""
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
            "ends": [each.end for each in some],
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
            # A row is valid until the next row of its item.
            yield _COUNTED_TABLES[what], Loss(what, min(seconds), FOREVER)
        else:
            yield from (
                (_COUNTED_TABLES[what], Loss(what, *span)) for span in _union([(at, at) for at in seconds], DAY)
            )


def _broken_parts(store: Store) -> list[BrokenPart]:
    """The broken parts whose rows are missing. Tables with copies have none: ClickHouse fetches broken parts
    from another server."""
    if store.layout.is_replicated:
        return []
    try:
        rows = store.query("list_broken_parts", (), database=store.database)
    except StoreFailure as error:
        # Comparing rows finds losses all the same.
        log.warning("Broken parts cannot be listed; grant SELECT on system.detached_parts. %s", error)
        return []
    parts = [BrokenPart(*row) for row in rows.iter_rows()]
    for part in parts:
        if part.restored:
            _delete(store, part)
    return [part for part in parts if not part.restored]


def _delete(store: Store, part: BrokenPart) -> None:
    """Delete a broken part that nobody needs. Once the other parts are merged, nothing would show that they have its
    rows."""
    with suppress(AnalyticsError):
        store.command(f"ALTER TABLE {part.table} DROP DETACHED PART '{part.name}' SETTINGS allow_drop_detached = 1")
        log.info("A broken part of %s was deleted; ClickHouse still has its rows in other parts.", part.table)


def _uncounted(store: Store, ledger: Ledger, broken: Sequence[BrokenPart]) -> Iterator[tuple[str, Loss]]:
    """Losses by broken parts whose rows cannot be compared."""
    for part in broken:
        if part.table == OBSERVATIONS:
            yield from _uncounted_observations(store, ledger, part, broken)
        elif part.table != ROLLUPS and (part.table not in _COUNTED_TABLES or part.table in _NOT_BY_MONTH):
            start, last = part.span
            for dataset in _datasets_of(part.table, ledger):
                # A table that is not partitioned by month lacks nothing before the first snapshot.
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
    """Observations that no rollup summarizes, or only lost rollups, until they are written again."""
    (start, last), before = part.span, part.began_before
    lost = {each.partition for each in broken if each.table == ROLLUPS}
    for dataset, written in store.query("find_written_until", (), before=before, moment=part.found_at).iter_rows():
        first, newest = max(start, _summarized_until(written + 1, part.partition, lost)), min(written, last)
        bound = {"dataset": dataset, "first": first, "last": newest, "before": before}
        if first > newest or not store.query("check_written_before", (), **bound).item():
            continue
        for name in names_of(dataset):
            following = store.query("find_all_observed_after", history=name, after=newest).item()
            span = (first, following - 1 if following else FOREVER)
            # Without its rollups, the month's series are unknown.
            yield dataset, Loss(name, *((0, FOREVER) if _fifteen_minutes(part.partition) in lost else span))


def _summarized_until(end: int, month: str, lost: set[str]) -> int:
    """The second before which rollups summarize a month when the newest observation is before `end`."""
    if _fifteen_minutes(month) not in lost:
        return floor_to_width(end, FIFTEEN_MINUTES)
    if _DAYS not in lost:
        return floor_to_width(end, DAY)
    return month_start(end) if _MONTHS not in lost else 0


def _fifteen_minutes(month: str) -> str:
    return f"1-{month}"
