"""The ledger lists complete commits, and so decides what readers may see."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

import polars as pl

from analytics_service.clickhouse.connection import Store
from analytics_service.errors import Superseded
from analytics_service.market.instants import MINUTE, format_instant, from_unix
from analytics_service.store.losses import Loss

LEDGER = "snapshot"
REWRITES = "rewrite"
HEADS, HEADS_VIEW = "snapshot_head", "snapshot_head_view"
# Stands for the instant of a missing snapshot.
NONE = -1
# The instant of imports that bring values of a history, but no snapshot of its dataset.
VALUES_ONLY = 0
# The kind of a rewrite that removes observations or commits, or adds observations without a commit.
CORRECTION = "correction"
# A snapshot is from the future if it is more seconds ahead of ClickHouse's clock (rule 8.16, future snapshots).
MOST_AHEAD = 60
_SCHEMA: dict[str, type[pl.DataType] | pl.DataType] = {
    "dataset": pl.String,
    "at": pl.UInt32,
    "kind": pl.String,
    "first_observed_at": pl.UInt32,
    "last_observed_at": pl.UInt32,
    "rows": pl.UInt64,
    "source": pl.String,
    "version": pl.UInt64,
    "simulated": pl.Boolean,
    "import_id": pl.UInt64,
    "reported_histories": pl.List(pl.String),
    "complete_until": pl.UInt32,
    "tables": pl.List(pl.String),
    "table_rows": pl.List(pl.UInt64),
}
_REWRITE = {"dataset": pl.String, "version": pl.UInt64, "finished": pl.UInt8}


@dataclass(frozen=True, slots=True)
class Origin:
    """The origin of data: the spec of a source, or an empty spec for imported files."""

    spec: str
    simulated: bool = False

    def __str__(self) -> str:
        return self.spec or "imported history"


IMPORTED = Origin("")


def any_simulated(origins: Iterable[Origin]) -> bool:
    return any(origin.simulated for origin in origins)


@dataclass(frozen=True, slots=True)
class LedgerRow:
    """A complete commit of a job, a backfill or an import. Instants are unix seconds.

    `at` is the snapshot's instant; for an import its newest observation, or VALUES_ONLY. `source` is the spec of a
    source, or the names of imported files. `version` is the start of the commit in unix nanoseconds by ClickHouse's
    clock. `import_id` is the version of an import or a correction, whose row no other replaces; 0 for jobs.
    `reported_histories` are histories of loans whose values the source reported. The source has all events up to
    `complete_until`, 0 if it does not say. Each of `tables` has as many rows of the commit as `table_rows`.
    """

    dataset: str
    at: int
    kind: str
    first_observed_at: int
    last_observed_at: int
    rows: int
    source: str
    version: int
    simulated: bool = False
    import_id: int = 0
    reported_histories: Sequence[str] = ()
    complete_until: int = 0
    tables: Sequence[str] = ()
    table_rows: Sequence[int] = ()

    @property
    def origin(self) -> Origin:
        return IMPORTED if self.kind == "import" else Origin(self.source, self.simulated)


@dataclass(frozen=True, slots=True)
class Head:
    """The newest state of a dataset that readers may see. Instants are unix seconds.

    Equal heads mean equal data (rule 8.2, equal heads): `version` is the greatest of all complete commits, `runs`
    counts these commits, and `rewrites` those that changed history which readers had seen. `losses` is the version of
    the dataset's losses, 0 if it never lost anything (rule 8.19, losses).
    """

    dataset: str
    at: int
    last_observed_at: int
    version: int
    runs: int
    rewrites: int = 0
    losses: int = 0

    @property
    def instant(self) -> datetime:
        """The newest snapshot's instant, aware."""
        return from_unix(self.at)

    @property
    def newest(self) -> int:
        """The instant (unix second) of the newest snapshot, or of the newest observation if there is no snapshot."""
        return self.at if self.at != VALUES_ONLY else self.last_observed_at

    @property
    def newest_while_open(self) -> "Head | None":
        """The dataset's newest head, as long as newer commits may change what this head shows."""
        return self

    def follows(self, other: "Head") -> bool:
        """Whether this is a later state of the dataset than `other`."""
        own, others = ((head.rewrites, head.version, head.runs, head.losses) for head in (self, other))
        return own > others

    def is_current(self, newest: "Head | None") -> bool:
        """Whether an answer made from this head may be shown while `newest` is the dataset's newest head."""
        return newest == self


@dataclass(frozen=True, slots=True)
class PastHead(Head):
    """The state of a dataset at a moment of the past (rule 8.12, as-of state). Later snapshots have followed.

    `at` is the instant of its newest snapshot or observation at that moment, NONE if there was none, and `version` the
    snapshot's version. If assets are defined with the dataset, `max_version` is the greatest version of all commits
    that may have rows at or before the moment. `open_with` is the dataset's newest head while an append may change the
    state: jobs may be late, observations may be added, or definitions of assets may be missing. Otherwise it is None.
    """

    max_version: int = 0
    open_with: Head | None = None

    @property
    def newest_while_open(self) -> Head | None:
        """The dataset's newest head, until no job can be late for the moment."""
        return self.open_with

    def awaits_jobs_only(self, moment: int) -> bool:
        """Whether only late jobs can still change the state at the moment (unix second). False before the first
        snapshot, which decides how assets are defined."""
        return self.at != NONE and (self.open_with is None or moment < self.open_with.last_observed_at)

    def is_current(self, newest: Head | None) -> bool:
        """Whether an answer made from this state still holds. An open state holds until the head changes, a closed
        state until the dataset is rewritten or loses rows."""
        if self.open_with is not None:
            return newest == self.open_with
        return change_counts(newest) == (self.rewrites, self.losses)


def change_counts(head: Head | None) -> tuple[int, int]:
    """The head's counts of changes to the past: rewrites and losses. -1 and 0 without a head."""
    return (-1, 0) if head is None else (head.rewrites, head.losses)


@dataclass(frozen=True, slots=True)
class Ledger:
    """The ledger as read by one query.

    All mappings are by dataset. `open` has the versions of unfinished rewrites, `rewritten` the unix second of the last
    rewrite, `ahead` the first snapshot from the future, if any (rule 8.16), and `losses` under "" also those that
    change no answer. `origins` are the origins of all complete commits, and `now` is ClickHouse's unix second.
    """

    heads: Mapping[str, Head]
    open: Mapping[str, Sequence[int]] = field(default_factory=dict)
    origins: frozenset[Origin] = frozenset()
    rewritten: Mapping[str, int] = field(default_factory=dict, compare=False)
    now: int = field(default=0, compare=False)
    ahead: Mapping[str, int] = field(default_factory=dict)
    losses: Mapping[str, Sequence[Loss]] = field(default_factory=dict)


def ledger_frame(runs: Sequence[LedgerRow]) -> pl.DataFrame:
    return pl.DataFrame(runs, schema=_SCHEMA)


def parse_ledger_rows(rows: pl.DataFrame) -> list[LedgerRow]:
    return [LedgerRow(**row) for row in rows.select(list(_SCHEMA)).iter_rows(named=True)]


def new_version(store: Store) -> int:
    """A version for new rows, greater than every version in the store. The row with the greatest version wins."""
    return int(store.query("make_version")["version"][0])


def record_rewrite(store: Store, datasets: Sequence[str], version: int, finished: int) -> None:
    """Announce a rewrite of datasets, or with `finished` = 1 record its end (rule 8.5, one writer)."""
    rows = [{"dataset": dataset, "version": version, "finished": finished} for dataset in datasets]
    store.insert(REWRITES, pl.DataFrame(rows, schema=_REWRITE))


def last_snapshot_before(store: Store, dataset: str, before: int) -> int | None:
    """The last instant before `before` with a snapshot of a job or a backfill."""
    rows = store.query("find_snapshot_before", dataset=dataset, before=before)
    return int(rows["at"][0]) if rows.height else None


@dataclass(frozen=True, slots=True)
class Covered:
    """A complete snapshot of loans (unix second), and the second up to which its source had all events, 0 if the source
    did not say."""

    at: int
    complete_until: int


def last_covered_loans(store: Store, before: int) -> Covered | None:
    """The last snapshot of loans before a unix second."""
    rows = store.query("find_snapshot_before", dataset="loans", before=before)
    return Covered(*rows.select("at", "complete_until").row(0)) if rows.height else None


def nth_snapshot(store: Store, dataset: str, number: int, start: int, end: int) -> int | None:
    """The nth instant, from 1, in [start, end) with a snapshot of a job or a backfill."""
    rows = store.query("find_nth_snapshot", dataset=dataset, number=number, start=start, end=end)
    return int(rows["at"][0]) if rows.height else None


def newest_snapshots_at(
    store: Store, datasets: Sequence[str], seconds: Sequence[int]
) -> dict[str, list[tuple[int, int] | None]]:
    """Instant (unix second) and version of each dataset's newest complete snapshot at each of the ascending `seconds`;
    None before the first snapshot."""
    starts = [0, *(second + 1 for second in seconds[:-1])]
    rows = store.query("find_snapshots_at", datasets=list(datasets), starts=starts, last=seconds[-1])
    found = {(dataset, start): (at, version) for dataset, start, at, version in rows.iter_rows()}
    newest: dict[str, list[tuple[int, int] | None]] = {}
    for dataset in datasets:
        last = None
        newest[dataset] = [last := found.get((dataset, start), last) for start in starts]
    return newest


def imported_spans(store: Store, dataset: str) -> list[tuple[int, int]]:
    """The first and the last instant (unix second) of each import of a dataset."""
    rows = store.query("list_overlapping_imports", dataset=dataset, start=0, version=2**64 - 1)
    return list(rows.select("first_observed_at", "at").iter_rows())


def snapshot_versions(store: Store, dataset: str, start: int, end: int) -> Mapping[int, int]:
    """The versions of the complete snapshots in [start, end) (unix seconds), by instant."""
    rows = store.query("list_snapshots", dataset=dataset, start=start, end=end)
    return dict(rows.select("at", "version").iter_rows())


def first_moment(store: Store, dataset: str) -> int | None:
    """The first unix second with a snapshot or an imported observation of a dataset."""
    rows = store.query("find_first_moment", dataset=dataset)
    return int(rows["first"][0]) if rows.height else None


def past_head(store: Store, head: Head, at: int, *, late: bool, imported: bool, described: bool) -> PastHead:
    """The state of a dataset as of a moment (unix second) before its head.

    `late`: jobs may still be late for the moment. `imported`: the store may have imports. `described`: assets are
    defined with the dataset. `last_observed_at` becomes the instant of the newest snapshot, or the moment itself if
    imported observations may lie between the two; but at most that of the head.
    """
    rows = store.query("find_snapshot_before", dataset=head.dataset, before=at + 1)
    newest, version = rows.select("at", "version").row(0) if rows.height else (NONE, 0)
    last, max_version = newest, 0
    if imported or described:
        earlier, imports = store.query(
            "find_max_version",
            dataset=head.dataset,
            at=at,
            start=max(newest, 0),
            version=version,
            imported=int(imported),
        ).row(0)
        max_version, last = max(version, earlier), at if imports else newest
    # While the oracle stands still, snapshots are later than all observations.
    last = min(last, head.last_observed_at)
    return PastHead(
        head.dataset,
        at=newest,
        last_observed_at=last,
        version=version or max_version,
        runs=0,
        rewrites=head.rewrites,
        losses=head.losses,
        max_version=max_version,
        open_with=head if late else None,
    )


def read_ledger(store: Store) -> Ledger:
    """Read heads, unfinished rewrites, origins and losses in one query."""
    heads: dict[str, Head] = {}
    origins: set[Origin] = set()
    rewrites: Counter[str] = Counter()
    rewritten: dict[str, int] = {}
    unfinished: dict[str, list[int]] = {}
    lost: dict[str, Sequence[Loss]] = {}
    changed: dict[str, int] = {}
    rows = store.query("read_ledger")
    for kind, dataset, version, runs, at, last_observed_at, sources, _, found in rows.iter_rows():
        if kind == "loss":
            lost[dataset], changed[dataset] = tuple(Loss(*loss.values()) for loss in found), version
            continue
        if kind == "head":
            heads[dataset] = Head(dataset, at, last_observed_at, version, runs)
            origins.update(Origin(source["source"], source["simulated"]) for source in sources)
            continue
        rewrites[dataset] += runs
        rewritten[dataset] = max(rewritten.get(dataset, 0), at)
        if version:
            unfinished.setdefault(dataset, []).append(version)
    counted = {
        dataset: replace(head, rewrites=rewrites[dataset], losses=changed.get(dataset, 0))
        for dataset, head in heads.items()
    }
    now = max(rows["now"], default=0)
    return Ledger(counted, unfinished, frozenset(origins), rewritten, now, losses=lost)


def hide_future_snapshots(store: Store, ledger: Ledger) -> Ledger:
    """The ledger for readers: heads without snapshots from the future (rule 8.16)."""
    presents = {dataset: head_without_future(store, head, ledger.now) for dataset, head in ledger.heads.items()}
    heads = {dataset: head for dataset, (head, _) in presents.items()}
    return replace(ledger, heads=heads, ahead={dataset: first for dataset, (_, first) in presents.items() if first})


def head_without_future(store: Store, head: Head, now: int) -> tuple[Head, int]:
    """A head without the dataset's snapshots from the future, and the first of these, or 0 (rule 8.16). Takes a query
    only if the head is ahead."""
    if head.at <= now + MOST_AHEAD:
        return head, 0
    at, last, first = store.query("read_present_head", dataset=head.dataset, latest=now + MOST_AHEAD).row(0)
    return replace(head, at=at, last_observed_at=last), first


def describe_ahead(dataset: str, first: int, now: int) -> str:
    """A line for operators about a snapshot from the future."""
    at = format_instant(from_unix(first))
    return (
        f"{dataset}: the snapshot of {at} is {(first - now) // MINUTE:,} minutes in the future; "
        f"`analytics-service remove {dataset} --start {at}` removes it"
    )


def read_heads(store: Store) -> Mapping[str, Head]:
    """The heads by dataset."""
    return read_ledger(store).heads


def read_head(store: Store, dataset: str) -> Head | None:
    """The head of a dataset, without its count of rewrites."""
    rows = store.query("read_head", dataset=dataset)
    return Head(dataset, *rows.row(0)) if rows.height else None


def require_unchanged(store: Store, *heads: Head) -> None:
    """Accept data that was read as of heads (rule 8.3, atomic rewrites). Superseded if a rewrite of their datasets was
    announced since. Appends change nothing that a head shows."""
    rows = store.query("count_rewrites", datasets=[head.dataset for head in heads])
    counted = {dataset: (announced, finished) for dataset, announced, finished in rows.iter_rows()}
    for head in heads:
        if counted.get(head.dataset, (0, 0)) != (head.rewrites, head.rewrites):
            raise Superseded(f"{head.dataset} was rewritten while it was read.")


def oldest_change(store: Store, start: Head, head: Head) -> int | None:
    """The oldest instant (unix second) whose observations may differ between two heads of a dataset.

    None if no commit completed in between. 0 if unsure: after a loss, or if a commit with a version below `start`'s
    completed after `start` was read, which only the count of commits shows.
    """
    if start.losses != head.losses:
        return 0
    if (start.runs, start.version) == (head.runs, head.version):
        return None
    counted = store.query("count_runs_since", dataset=head.dataset, after=start.version, max_version=head.version)
    runs, oldest = counted.row(0)
    return int(oldest) if runs == head.runs - start.runs else 0
