"""Finds lost rows (rule 8.19, losses).

The check compares row counts: observations with 15min rollups, these with days, days with months, and snapshots with
the ledger. A part that ClickHouse found broken counts only where rows cannot be compared.
"""

import logging
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime

import polars as pl

from analytics_service.clickhouse.connection import Store
from analytics_service.clickhouse.queries import named_query
from analytics_service.errors import AnalyticsError, StoreFailure, Superseded
from analytics_service.market.instants import month_start, next_month, unix_second
from analytics_service.market.kinds import FOREVER
from analytics_service.store.datasets.events import EVENTS
from analytics_service.store.datasets.histories import HISTORIES, names_of
from analytics_service.store.datasets.observations import OBSERVATIONS
from analytics_service.store.datasets.positions import forget_digests
from analytics_service.store.ledger import HEADS, Ledger, first_moment, new_version, read_ledger, require_unchanged
from analytics_service.store.losses import LOSSES, Loss, describe_losses
from analytics_service.store.rollups import FIFTEEN_MINUTES, ROLLUPS, floor_to_width
from analytics_service.store.schema import TABLES

log = logging.getLogger(__name__)

# Tables with rows for each snapshot, which the ledger counts.
_COUNTED = {
    name: dataset for dataset, names in TABLES.items() for name in names if name not in (EVENTS, "position_digest")
}
# Each row is valid until the next row of its item, and the table is not partitioned by month.
_CHANGES = "position_change"
# Tables that no answer needs: their rows are recomputed, or describe the service itself.
_SILENT = ("position_digest", HEADS, "rewrite", "owner", "schema_migration", "job_run", "write_lock")
_LOSS = {"name": pl.String, "first_at": pl.UInt32, "last_at": pl.UInt32, "part": pl.String}
_SCHEMA: dict[str, type[pl.DataType] | pl.DataType] = {
    "dataset": pl.String,
    "losses": pl.List(pl.Struct(_LOSS)),
    "version": pl.UInt64,
}
# Series of one query: their ids are parameters.
_AT_ONCE = 1_000

Losses = dict[str, list[Loss]]


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
    def span(self) -> tuple[int, int]:
        """The unix seconds of its rows, both included. A partition is a month, a year, or everything."""
        digits = self.partition.rpartition("-")[2]
        if len(digits) not in (len("2025"), len("202501")):
            return 0, FOREVER
        first, last = (
            unix_second(datetime(int(digits[:4]), int(digits[4:] or month), 1, tzinfo=UTC)) for month in (1, 12)
        )
        return first, next_month(last) - 1


def check(store: Store) -> bool:
    """Find lost rows, and record them for all readers. Returns whether to check again soon: something is lost, or a
    dataset was rewritten meanwhile, which keeps what is known."""
    broken = _broken_parts(store)
    if any(part.table == HEADS for part in broken):
        _raise_heads(store)
    ledger = read_ledger(store)
    known = {dataset: [*losses] for dataset, losses in ledger.losses.items() if losses}
    found = _found(store, ledger, broken)
    if found:
        # A commit that completed meanwhile may look like a loss.
        again = _found(store, ledger, broken)
        kept = {dataset: [loss for loss in found[dataset] if loss in again.get(dataset, ())] for dataset in found}
        found = {dataset: losses for dataset, losses in kept.items() if losses}
    try:
        require_unchanged(store, *ledger.heads.values())
    except Superseded:
        return True
    changed = {name: found.get(name, []) for name in sorted(found.keys() | known) if found.get(name) != known.get(name)}
    for line in describe_losses(changed):
        log.error("%s", line)
    _record(store, changed)
    return bool(found)


def _record(store: Store, losses: Losses) -> None:
    """Record the losses of datasets for readers."""
    if any(loss.what.startswith("position") for own in losses.values() for loss in own):
        # A digest may be newer or older than the rows of its address.
        forget_digests(store)
    version = new_version(store) if losses else 0
    rows = [
        {
            "dataset": dataset,
            "losses": [dict(zip(_LOSS, asdict(loss).values(), strict=True)) for loss in own],
            "version": version,
        }
        for dataset, own in losses.items()
    ]
    store.insert(LOSSES, pl.DataFrame(rows, schema=_SCHEMA))


def _found(store: Store, ledger: Ledger, broken: Sequence[BrokenPart]) -> Losses:
    """All losses by dataset, in order."""
    found: defaultdict[str, set[Loss]] = defaultdict(set)
    for dataset, loss in (*_differing(store, ledger), *_missing(store, ledger), *_uncounted(store, ledger, broken)):
        found[dataset].add(loss)
    return {dataset: sorted(losses) for dataset, losses in found.items()}


def _raise_heads(store: Store) -> None:
    """Derive the heads from the ledger."""
    for dataset in TABLES:
        ends = named_query("derive_head", {"dataset": dataset, "newest": "max(s.last_observed_at)"})
        store.execute(named_query("raise_head", {"dataset": dataset, "ends": ends}))


def _months(store: Store, ledger: Ledger) -> Iterator[tuple[int, int]]:
    """The UTC months of all rows: start and end of each, unix seconds."""
    newest = max((max(head.at, head.last_observed_at) for head in ledger.heads.values()), default=0)
    month = month_start(store.query("find_first_counted")["first"].item())
    while month <= newest:
        following = next_month(month)
        yield month, following
        month = following


def _differing(store: Store, ledger: Ledger) -> Iterator[tuple[str, Loss]]:
    """Where closed rollups of a month count other numbers of observations than their inputs: until the next observation
    of their series."""
    closed = {h: ledger.heads[h.dataset].last_observed_at + 1 for h in HISTORIES if h.dataset in ledger.heads}
    datasets, ends = {history.name: history.dataset for history in closed}, [*closed.values()]
    for start, end in _months(store, ledger):
        rows = store.query("compare_rollups", start=start, end=end, histories=[*datasets], ends=ends)
        for series in rows.iter_slices(_AT_ONCE):
            names, ids, untils = (series[name].to_list() for name in ("history", "asset_id", "until"))
            after = store.query("find_observed_after", histories=names, ids=ids, ends=untils)
            both = series.join(after, on=["history", "asset_id"], how="left").fill_null(FOREVER + 1)
            for history, first, following in both.select("history", "first", "next").iter_rows():
                yield datasets[history], Loss(history, first, following - 1)


def _missing(store: Store, ledger: Ledger) -> Iterator[tuple[str, Loss]]:
    """The snapshots of each month that have fewer rows than the ledger counts."""
    by_month = [name for name in _COUNTED if name != _CHANGES]
    for names, start, end in [*((by_month, *month) for month in _months(store, ledger)), ([_CHANGES], 0, FOREVER)]:
        queries = [named_query("find_missing_rows", {"table": name, "dataset": _COUNTED[name]}) for name in names]
        rows = store.query("union_queries", {"queries": " UNION ALL ".join(queries)}, start=start, end=end)
        for dataset, what, first, last in rows.iter_rows():
            yield dataset, Loss(what, first, FOREVER if what == _CHANGES else last)


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
            # Once the other parts are merged, nothing would show that they have its rows.
            with suppress(AnalyticsError):
                store.command(
                    f"ALTER TABLE {part.table} DROP DETACHED PART '{part.name}' SETTINGS allow_drop_detached = 1"
                )
    return [part for part in parts if not part.restored]


def _uncounted(store: Store, ledger: Ledger, broken: Sequence[BrokenPart]) -> Iterator[tuple[str, Loss]]:
    """Losses by broken parts whose rows cannot be compared."""
    for part in broken:
        if part.table == OBSERVATIONS:
            yield from _newest_observations(store, part, has_rollups=all(each.table != ROLLUPS for each in broken))
        elif part.table != ROLLUPS and (part.table not in _COUNTED or part.table == _CHANGES):
            start, last = part.span
            for dataset in _datasets_of(part.table, ledger):
                # A table that is not partitioned by month lacks nothing before the first snapshot.
                first = start or (first_moment(store, dataset) or 0 if dataset else 0)
                yield dataset, Loss(part.table, first, last, part.name)


def _datasets_of(table: str, ledger: Ledger) -> Iterable[str]:
    """The datasets whose answers need a table that nothing counts."""
    if table in _SILENT:
        return [""]
    return [dataset for dataset, names in TABLES.items() if table in names] or ledger.heads


def _newest_observations(store: Store, part: BrokenPart, *, has_rollups: bool) -> Iterator[tuple[str, Loss]]:
    """Observations of a part that no rollup summarizes: the last 15 minutes, or without rollups all of them. They are
    lost until each series has a later observation."""
    start, end = part.span
    for dataset, written in store.query("find_written_until", (), moment=part.found_at).iter_rows():
        first = max(start, floor_to_width(written + 1, FIFTEEN_MINUTES)) if has_rollups else start
        last = min(written, end)
        for name in names_of(dataset) if first <= last else ():
            following = store.query("find_all_observed_after", history=name, after=last).item()
            yield dataset, Loss(name, first, following - 1 if following and has_rollups else FOREVER, part.name)
