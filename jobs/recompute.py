"""Replaces complete snapshots: from a source, or, after a correction, recomputed from stored data.

The snapshots of a day are one rewrite. Values that follow from stored prices, markets, positions and events are
recomputed. Only values that differ are written, so this can be stopped and run again. Imported values stay.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import pairwise

import polars as pl

from analytics_service.clickhouse.columns import with_version
from analytics_service.clickhouse.connection import Store
from analytics_service.market.instants import DAY, from_unix, unix_second
from analytics_service.market.kinds import FOREVER
from analytics_service.sources.base import Source
from analytics_service.sources.registry import origin_of
from analytics_service.sources.stored import StoredSource
from analytics_service.store import rewrite
from analytics_service.store.commits import (
    Appended,
    Commit,
    CommitBase,
    Provenance,
    begin,
    commit,
    rows_of,
    unobserved_keys,
)
from analytics_service.store.datasets.events import EVENTS, changes_frame
from analytics_service.store.datasets.observations import KEY, OBSERVATIONS, read_observed_at, with_known_times
from analytics_service.store.datasets.positions import partly_known_addresses
from analytics_service.store.datasets.sums import SumChanges, changed_sums, summed_seconds, unsettled_from
from analytics_service.store.ledger import IMPORTED, Origin, last_covered_loans, read_head
from jobs import loans, markets, positions
from jobs.registry import Job
from jobs.runner import IF_OVERTAKEN, collected
from jobs.snapshot import Collect, JobContext

# Recomputes the snapshots of a batch.
_RECOMPUTE: Mapping[str, Collect] = {"markets": markets.collect, "positions": positions.recompute}
DATASETS = (*_RECOMPUTE, "loans")
# Snapshots of a rewrite, which are in memory together.
_AT_ONCE = 1_440
_PASSES = 10
# Cumulative sums do not belong to a snapshot.
_SUMS = Provenance("backfill", IMPORTED, "recompute")


@dataclass(frozen=True, slots=True)
class BackfillUnit:
    """Complete snapshots of a day with one provenance, which are replaced together. For loans also the events of a day,
    in [start, end) in unix seconds, or all sums from `start` on."""

    dataset: str
    provenance: Provenance
    instants: Sequence[datetime] = ()
    start: int = 0
    end: int = 0

    @property
    def first_instant(self) -> datetime:
        return self.instants[0] if self.instants else from_unix(self.start)


def plan(store: Store, dataset: str, start: datetime, end: datetime) -> list[BackfillUnit]:
    """The complete snapshots of a dataset in [start, end), whole seconds, oldest first. For loans, the units of events
    come before them, and the unit of sums after them."""
    first, end_second = unix_second(start), unix_second(end)
    rows = store.query("list_snapshot_sources", dataset=dataset, start=first, end=end_second).with_columns(
        day=pl.col("at") // DAY
    )
    days = rows.group_by("day", "kind", "source", "simulated", maintain_order=True)
    units = [
        BackfillUnit(
            dataset, Provenance(kind, Origin(source, bool(simulated)), "recompute"), [*map(from_unix, part["at"])]
        )
        for (_, kind, source, simulated), day in days
        for part in day.iter_slices(_AT_ONCE)
    ]
    covered = last_covered_loans(store, FOREVER) if dataset == "loans" else None
    if covered is None:
        return units
    end_second = min(end_second, covered.at + 1)
    bounds = [first, *range(first - first % DAY + DAY, end_second, DAY), end_second]
    events = [
        BackfillUnit(dataset, _SUMS, start=since, end=end_second)
        for since, end_second in pairwise(bounds)
        if since < end_second
    ]
    return [*events, *units, _sums_from(first)]


def _sums_from(first: int) -> BackfillUnit:
    return BackfillUnit("loans", _SUMS, start=first)


def replace_snapshots(job: Job, source: Source, store: Store, unit: BackfillUnit) -> None:
    """Replace a unit's content from a source. Positions are stored as changes, so only their risk is recomputed."""
    if unit.end:
        _compare_events(source, store, unit)
        return
    if unit.dataset == "positions" or not unit.instants:
        recompute(store, unit)
        return

    def attempt() -> None:
        base = _begin(store, unit)
        context = JobContext(job.dataset, source, store, unit.instants, base.present)
        changes = collected(replace(job, collect=loans.recompute) if job.name == "loans" else job, context)
        if changes.appended:
            commit(store, changes, Provenance(unit.provenance.kind, origin_of(source), "backfill"), base)

    IF_OVERTAKEN(attempt)


def _compare_events(source: Source, store: Store, unit: BackfillUnit) -> None:
    """Replace stored events that differ from the source's list, with their sums, all or nothing."""
    instants = [from_unix(unit.end - 1)]
    context = JobContext("loans", source, store, instants, None).with_canonical_ids()
    with context.rejections:
        _, changes = loans.compare(context, unit.start, unit.end, unit.end - 1)
    if not (changes.before or changes.after):
        return
    with rewrite.staging(store, "loans", None, what="backfill") as staged:
        if seconds := summed_seconds(changes):
            _stage(staged, changed_sums(store, unsettled_from(store, min(seconds)), changes))
        staged.insert(EVENTS, with_version(changes_frame(changes), staged.version))
        rewrite.publish(store, staged, [])


def day_by_day(store: Store, datasets: Sequence[str], start: datetime, end: datetime) -> list[BackfillUnit]:
    """The complete snapshots of datasets in [start, end), day by day. Sums of loans are one unit, because each sum
    depends on all earlier ones."""
    units = [unit for dataset in datasets if dataset != "loans" for unit in plan(store, dataset, start, end)]
    if "loans" in datasets and read_head(store, "loans"):
        units.append(_sums_from(unix_second(start)))
    return sorted(units, key=lambda unit: unix_second(unit.first_instant) // DAY)


def recompute(store: Store, unit: BackfillUnit) -> int:
    """Recompute snapshots, and write those that differ. Returns their number; for sums of loans, the number of changed
    observations."""
    if unit.dataset == "loans":
        return _recompute_sums(store, unit.start)
    return IF_OVERTAKEN(lambda: _recompute(store, unit))


def _recompute_sums(store: Store, first: int) -> int:
    """Recompute the sums of loans from a second on, repeatedly if a job has meanwhile continued from old sums."""
    changed = 0
    for _ in range(_PASSES):
        if changed_sums(store, unsettled_from(store, first)).is_empty:
            break
        with rewrite.staging(store, "loans", None, what="recompute") as staged:
            sums = changed_sums(store, unsettled_from(store, first))
            _stage(staged, sums)
            rewrite.publish(store, staged, [])
            changed += sums.added.height + sums.removed.height
    return changed


def _stage(staged: rewrite.Staging, sums: SumChanges) -> None:
    staged.insert(OBSERVATIONS, with_version(sums.added, staged.version))
    staged.remove(sums.removed)


def _begin(store: Store, unit: BackfillUnit) -> CommitBase:
    return begin(store, unit.dataset, unix_second(unit.instants[0]), unix_second(unit.instants[-1]) + 1)


def _recompute(store: Store, unit: BackfillUnit) -> int:
    dataset, seconds = unit.dataset, [unix_second(at) for at in unit.instants]
    base = _begin(store, unit)
    source, stored = StoredSource(store, unit.instants), read_observed_at(store, dataset, seconds)
    own, imported = stored.filter(~pl.col("imported")), stored.filter("imported")
    # Skip snapshots whose risk the source supplied, and those older than their inputs.
    supplied = partly_known_addresses(source.snapshots) if dataset == "positions" else set()
    instants = [at for at in unit.instants if unix_second(at) not in supplied and source.can_value(at, dataset)]
    if not instants:
        return 0
    computed = _RECOMPUTE[dataset](JobContext(dataset, source, store, instants, base.present))
    snapshots, observations = computed.appended, computed.observations.join(imported, on=KEY, how="anti")
    differing = {*_differing(snapshots, observations, own, source)}
    # The last snapshot may have observations at later instants.
    second = pl.col("observed_at").clip(upper_bound=unix_second(instants[-1]))
    changed = [
        replace(snapshot, observations=observations.filter(second == unix_second(snapshot.at)))
        for snapshot in snapshots
        if unix_second(snapshot.at) in differing
    ]
    if changed and dataset == "positions":
        _correct(store, changed, base.version, "recompute")
    elif changed:
        commit(store, Commit(changed), unit.provenance, base)
    return len(changed)


def _differing(
    snapshots: Sequence[Appended], observations: pl.DataFrame, stored: pl.DataFrame, source: StoredSource
) -> Iterator[int]:
    """The instants whose observations or other rows differ from the stored ones."""
    seconds = [unix_second(snapshot.at) for snapshot in snapshots]
    compared = [(observations, stored)]
    for table in snapshots[0].rows:
        rows = rows_of(snapshots, table)
        compared.append((rows, pl.concat([rows.clear(), *(source.snapshots.frames(table).values())], how="diagonal")))
    for now, before in compared:
        before = before.filter(pl.col("observed_at").is_in(seconds)).select(now.columns)
        for left, right in ((now, before), (before, now)):
            yield from left.join(right, on=now.columns, how="anti", nulls_equal=True)["observed_at"]


def _correct(store: Store, snapshots: Sequence[Appended], version: int, what: str) -> None:
    """Replace the observations of snapshots of positions. Other rows stay, because they are changes."""
    observations = pl.concat([snapshot.observations for snapshot in snapshots])
    with rewrite.staging(store, "positions", version, what=what, expected=observations.height) as staged:
        staged.insert(OBSERVATIONS, with_version(with_known_times(observations), version))
        staged.remove(
            unobserved_keys(store, "positions", [unix_second(snapshot.at) for snapshot in snapshots], observations)
        )
        rewrite.publish(store, staged, [])
