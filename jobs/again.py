"""Takes complete snapshots again: from a source, or after a correction from what the store holds.

Those of a day are one rewrite. What follows from stored prices, markets, positions and events is computed again; what
then comes out as it is stored is not written, so this may be stopped and run again. Values of imports stay.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import pairwise

import polars as pl

from analytics_service.clickhouse.columns import versioned
from analytics_service.clickhouse.connection import Store
from analytics_service.clickhouse.retries import ONCE
from analytics_service.market.instants import DAY, instant, unix_second
from analytics_service.market.kinds import FOREVER
from analytics_service.sources.base import Source
from analytics_service.sources.registry import origin_of
from analytics_service.sources.stored import StoredSource
from analytics_service.store import rewrite
from analytics_service.store.commits import Appended, Beginning, Commit, Taking, begin, commit, gone, rows_of
from analytics_service.store.datasets.events import EVENTS, changes_frame
from analytics_service.store.datasets.observations import KEY, OBSERVATIONS, read_observed_at, with_known
from analytics_service.store.datasets.positions import known_in_part, read_activity
from analytics_service.store.datasets.sums import SumChanges, changed_sums, summed_seconds, unsettled_from
from analytics_service.store.ledger import IMPORTED, Origin, last_covered, read_state
from jobs import loans, markets, positions
from jobs.registry import Job
from jobs.runner import collected, retry_overtaken
from jobs.snapshot import Batch, Collect

# Takes the snapshots of a batch again.
_AGAIN: Mapping[str, Collect] = {"markets": markets.collect, "positions": positions.collect_again}
FAMILIES = (*_AGAIN, "loans")
# Snapshots of a rewrite, which are in memory together.
_AT_ONCE = 1_440
_PASSES = 10
# Sums are of no snapshots.
_SUMS = Taking("backfill", IMPORTED, "recompute")


@dataclass(frozen=True, slots=True)
class Portion:
    """Complete snapshots of a day that came in the same way, and are replaced together; of loans also the events of a
    day, in [since, until) (unix seconds), or all sums from one second on."""

    family: str
    taking: Taking
    instants: Sequence[datetime] = ()
    since: int = 0
    until: int = 0

    @property
    def start(self) -> datetime:
        """Where it begins."""
        return self.instants[0] if self.instants else instant(self.since)


def plan(store: Store, family: str, start: datetime, end: datetime) -> list[Portion]:
    """The complete snapshots of a family in [start, end), whole seconds, oldest first; of loans, before and after them,
    events and sums."""
    first, until = unix_second(start), unix_second(end)
    rows = store.frame("list_snapshot_sources", family=family, start=first, end=until).with_columns(
        day=pl.col("at") // DAY
    )
    days = rows.group_by("day", "kind", "source", "simulated", maintain_order=True)
    portions = [
        Portion(family, Taking(kind, Origin(source, bool(simulated)), "recompute"), [*map(instant, part["at"])])
        for (_, kind, source, simulated), day in days
        for part in day.iter_slices(_AT_ONCE)
    ]
    covered = last_covered(store, FOREVER) if family == "loans" else None
    if covered is None:
        return portions
    until = min(until, covered.at + 1)
    bounds = [first, *range(first - first % DAY + DAY, until, DAY), until]
    events = [Portion(family, _SUMS, since=since, until=until) for since, until in pairwise(bounds) if since < until]
    return [*events, *portions, _sums_from(first)]


def _sums_from(first: int) -> Portion:
    return Portion("loans", _SUMS, since=first)


def retake(job: Job, source: Source, store: Store, portion: Portion) -> None:
    """Take snapshots, or what else a portion is, again from a source. Of positions, which are stored as changes, only
    the risk is computed again."""
    if portion.until:
        _compare_events(source, store, portion)
        return
    if portion.family == "positions" or not portion.instants:
        recompute(store, portion)
        return

    def attempt() -> None:
        beginning = _begin(store, portion)
        batch = Batch(job.family, source, store, portion.instants, beginning.present)
        again = replace(job, collect=loans.collect_again) if job.name == "loans" else job
        changes = collected(again, batch)
        if changes.appended:
            commit(store, changes, Taking(portion.taking.kind, origin_of(source), "backfill"), beginning)

    retry_overtaken(attempt, ONCE)


def _compare_events(source: Source, store: Store, portion: Portion) -> None:
    """Put right what differs of stored events and those that a source lists, with their sums: all or nothing."""
    instants = [instant(portion.until - 1)]
    batch = Batch("loans", source, store, instants, None).with_canonical_ids()
    with batch.left_out:
        _, changes = loans.compare(batch, portion.since, portion.until, portion.until - 1)
    if not (changes.before or changes.after):
        return
    with rewrite.staging(store, "loans", None, what="backfill") as staged:
        if seconds := summed_seconds(changes):
            _stage(staged, changed_sums(store, unsettled_from(store, min(seconds)), changes))
        staged.insert(EVENTS, versioned(changes_frame(changes), staged.version))
        rewrite.publish(store, staged, [])


def day_by_day(store: Store, families: Sequence[str], start: datetime, end: datetime) -> list[Portion]:
    """The complete snapshots of families in [start, end), those of a day together. Sums of loans are one portion,
    because all later ones are made from those before."""
    portions = [portion for family in families if family != "loans" for portion in plan(store, family, start, end)]
    if "loans" in families and read_state(store, "loans"):
        portions.append(_sums_from(unix_second(start)))
    return sorted(portions, key=lambda portion: unix_second(portion.start) // DAY)


def seconds_for(store: Store, portions: Sequence[Portion]) -> float:
    """Roughly how long computing takes, as measured on one core."""
    head = read_state(store, "positions")
    accounts = read_activity(store, head.at).borrower_account_active if head else 0
    each = {"markets": 0.006, "positions": 0.005 + accounts * 1.2e-6, "loans": 1}
    return sum((len(portion.instants) or 1) * each[portion.family] for portion in portions)


def recompute(store: Store, portion: Portion) -> int:
    """Compute snapshots again, and write those that come out otherwise. Returns their number; of sums of loans, that of
    observations."""
    if portion.family == "loans":
        return _recompute_sums(store, portion.since)
    return retry_overtaken(lambda: _recompute(store, portion), ONCE)


def _recompute_sums(store: Store, first: int) -> int:
    """Compute the sums of loans from a second on, once more if a job has meanwhile gone on from those of before."""
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
    staged.insert(OBSERVATIONS, versioned(sums.added, staged.version))
    staged.remove(sums.removed)


def _begin(store: Store, portion: Portion) -> Beginning:
    return begin(store, portion.family, unix_second(portion.instants[0]), unix_second(portion.instants[-1]) + 1)


def _recompute(store: Store, portion: Portion) -> int:
    family, seconds = portion.family, [unix_second(at) for at in portion.instants]
    beginning = _begin(store, portion)
    source, stored = StoredSource(store, portion.instants), read_observed_at(store, family, seconds)
    own, imported = stored.filter(~pl.col("imported")), stored.filter("imported")
    # Of some positions there is no risk but what the source states; nothing has a value before what it is made with.
    stated = known_in_part(source.snapshots) if family == "positions" else set()
    instants = [at for at in portion.instants if unix_second(at) not in stated and source.can_value(at, family)]
    if not instants:
        return 0
    computed = _AGAIN[family](Batch(family, source, store, instants, beginning.present))
    snapshots, observations = computed.appended, computed.observations.join(imported, on=KEY, how="anti")
    differing = {*_differing(snapshots, observations, own, source)}
    # With the last snapshot may come observations of later ones.
    second = pl.col("observed_at").clip(upper_bound=unix_second(instants[-1]))
    changed = [
        replace(snapshot, observations=observations.filter(second == unix_second(snapshot.at)))
        for snapshot in snapshots
        if unix_second(snapshot.at) in differing
    ]
    if changed and family == "positions":
        _correct(store, changed, beginning.version, "recompute")
    elif changed:
        commit(store, Commit(changed), portion.taking, beginning)
    return len(changed)


def _differing(
    snapshots: Sequence[Appended], observations: pl.DataFrame, stored: pl.DataFrame, source: StoredSource
) -> Iterator[int]:
    """The instants whose observations, or other rows, come out otherwise than they are stored."""
    seconds = [unix_second(snapshot.at) for snapshot in snapshots]
    compared = [(observations, stored)]
    for table in snapshots[0].rows:
        rows = rows_of(snapshots, table)
        compared.append((rows, pl.concat([rows.clear(), *(source.snapshots.frames(table).values())], how="diagonal")))
    for now, before in compared:
        before = before.filter(pl.col("observed_at").is_in(seconds)).select(now.columns)
        for one, other in ((now, before), (before, now)):
            yield from one.join(other, on=now.columns, how="anti", nulls_equal=True)["observed_at"]


def _correct(store: Store, snapshots: Sequence[Appended], version: int, what: str) -> None:
    """Replace the observations of snapshots of positions, whose other rows stay: they are stored as changes."""
    observations = pl.concat([snapshot.observations for snapshot in snapshots])
    with rewrite.staging(store, "positions", version, what=what, expected=observations.height) as staged:
        staged.insert(OBSERVATIONS, versioned(with_known(observations), version))
        staged.remove(gone(store, "positions", [unix_second(snapshot.at) for snapshot in snapshots], observations))
        rewrite.publish(store, staged, [])
