"""How the service is, in one record, which probes, health, gauges, `status` and the operators' page show (rule 1.3).

Instants are aware.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Annotated

from analytics_service.config.settings import service_version
from analytics_service.errors import AccessRefused, AnalyticsError, StoreUnavailable
from analytics_service.market.doubts import Doubt
from analytics_service.market.instants import instant, shown, unix_second
from analytics_service.market.kinds import Count, Flag, Text, Time
from analytics_service.market.misfits import listed
from analytics_service.state.figures import AssetPrice
from analytics_service.state.heads import NOT_CURRENT, Heads, Look
from analytics_service.store.disk import Disk
from analytics_service.store.job_runs import ScheduledRun, Scheduler
from analytics_service.store.ledger import (
    RESTORE_INTERRUPTED,
    VALUES_ONLY,
    Head,
    Ledger,
    Origin,
    any_simulated,
    told_ahead,
)
from analytics_service.store.losses import Loss, told_losses
from analytics_service.store.shards import Replica, told_away

# A family is fresh while its newest snapshot is at most this many of its intervals old.
FRESH_INTERVALS = 5


@dataclass(frozen=True, slots=True)
class LastRun:
    """The last run of a job, on any host."""

    at: Annotated[datetime, Time("Instant of the snapshot that it was for")]
    outcome: Annotated[str, Text("What came of it")]
    took_ms: Annotated[int, Count("Milliseconds that it took, retries included")]
    rows: Annotated[int | None, Count("Rows of the snapshot, if there is one")]


@dataclass(frozen=True, slots=True)
class Family:
    """A family of data, whether its newest snapshot is as new as it should be, and what the store knows of its runs."""

    family: Annotated[str, Text("Name of the family")]
    newest: Annotated[datetime | None, Time("Instant of the newest snapshot, if there is one")]
    age_seconds: Annotated[int | None, Count("Age of that snapshot")]
    fresh: Annotated[bool, Flag("Whether that snapshot is as new as it should be")]
    interval: Annotated[int | None, Count("Seconds between scheduled snapshots; null if none are scheduled")] = None
    ahead: Annotated[datetime | None, Time("Instant of the first snapshot from the future, if there is any")] = None
    complete_until: Annotated[
        datetime | None, Time("Of loans, up to when the source says that its events are complete; null if it does not")
    ] = None
    rows: Annotated[int, Count("Rows that its completed runs have written")] = 0
    scheduled: ScheduledRun | None = None
    next_run: Annotated[datetime | None, Time("When the next snapshot is due")] = None
    failed_at: Annotated[datetime | None, Time("Instant of the last snapshot that failed")] = None
    error: str = ""
    last_run: LastRun | None = None

    @property
    def gaps(self) -> int | None:
        """The scheduled instants without a snapshot in the last 24 hours, from the first scheduled snapshot on."""
        return None if self.scheduled is None else self.scheduled.missing


@dataclass(frozen=True, slots=True)
class Http:
    """The HTTP service at an address."""

    bind: Annotated[str, Text("Its address")]
    alive: Annotated[bool, Flag("Whether it answers")]
    ready: Annotated[bool, Flag("Whether it is ready (rule 1.3)")]
    expected: Annotated[bool, Flag("Whether it should run there, as far as is known")]


@dataclass(frozen=True, slots=True)
class Imported:
    """A completed run of an import or a backfill."""

    family: Annotated[str, Text("The family that it wrote")]
    kind: Annotated[str, Text("Which of the two it was")]
    began: Annotated[datetime, Time("When it began to write")]
    snapshots: Annotated[int, Count("How many snapshots it brought; an import counts as one")]
    rows: Annotated[int, Count("How many observations it brought; a row of a file of rates has up to two")]
    first: Annotated[datetime, Time("Instant of the oldest of them")]
    last: Annotated[datetime, Time("Instant of the newest of them")]
    source: Annotated[str, Text("The spec of a source, or the names of files")]


@dataclass(frozen=True, slots=True)
class Rewriting:
    """A correction of history that is at work, or waits for another."""

    what: Annotated[str, Text("What it does, such as import, backfill or remove")]
    family: Annotated[str, Text("The family whose history it changes")]
    stage: Annotated[str, Text("What it is doing: waiting, staging or putting in place")]
    began: Annotated[datetime, Time("When it began")]
    rows: Annotated[int, Count("Rows that it has staged so far")]
    expected: Annotated[int, Count("Rows that it will have; 0 if nobody knows")]
    command: Annotated[str, Text("The command line that it came from")]


@dataclass(frozen=True, slots=True)
class Table:
    """A table on ClickHouse's disk."""

    table: Annotated[str, Text("Its name; with `, staged` what is staged for it")]
    rows: Annotated[int, Count("Its rows, as stored; of copies once")]
    bytes: Annotated[int, Count("Its bytes on disk, copies included")]


@dataclass(frozen=True, slots=True)
class Worker:
    """A process that answers requests."""

    pid: Annotated[int, Count("Its process id")]
    began: Annotated[datetime, Time("When it began")]
    requests: Annotated[int, Count("Requests of the main bind that it has answered")]
    history: Annotated[int, Count("Memory of history")]
    answers: Annotated[int, Count("Memory of rendered answers")]
    resident: Annotated[int | None, Count("All its memory, if it is known")]


@dataclass(frozen=True, slots=True)
class Status:
    """How everything is at an instant, as far as whoever made the record knows. What is unknown has its default.

    While the store cannot be reached, its data is as it was last, if memory still `answers`. `withheld` lists in plain
    words the data that readers are not shown although the store has it, and `losses` what it has lost. `doubts` are
    those of the last day, the newest first; they are no faults, because nobody judges them. `reported` are the faults
    that whoever read the store for operators lists; None means those of the ledger, which name no server. `replicas`
    are the servers of the cluster. `sql` says where SQL can be used. `outdated` says why the schema is not current, if
    it is not.
    """

    at: datetime
    reachable: bool = False
    schema_current: bool = False
    outdated: str = NOT_CURRENT
    answers: bool = True
    families: Sequence[Family] = ()
    prices: Sequence[AssetPrice] = ()
    doubts: Sequence[Doubt] = ()
    origins: Sequence[Origin] = ()
    withheld: Sequence[str] = ()
    losses: Mapping[str, Sequence[Loss]] = field(default_factory=dict)
    reported: Sequence[str] | None = None
    read_at: datetime | None = None
    replicas: Sequence[Replica] = ()
    disk: Disk | None = None
    database: str = ""
    url: str | None = None
    sql: Sequence[str] = ()
    clickhouse: str | None = None
    memory: int | None = None
    schema_pending: Sequence[str] | None = None
    schema_missing: Sequence[str] | None = None
    schedulers: Sequence[Scheduler] = ()
    imports: Sequence[Imported] = ()
    corrections: Sequence[Rewriting] = ()
    tables: Sequence[Table] = ()
    http: Http | None = None
    workers: Sequence[Worker] | None = None
    service: str = field(default_factory=service_version)

    @property
    def obstacles(self) -> list[str]:
        """The reasons why requests cannot be answered, in plain words."""
        if not self.answers:
            return ["the store cannot be reached"]
        if not self.schema_current:
            return [self.outdated]
        if not self.families:
            return [*self.withheld] or ["there is no history yet"]
        missing = [
            f"there is no snapshot of {family.family} yet"
            for family in self.families
            if family.newest is None and not family.fresh
        ]
        return [*missing, *self.withheld]

    def late(self, seconds: int = 0) -> list[str]:
        """The families whose newest snapshots are not fresh, and more than these seconds old, in plain words."""
        return [
            f"snapshots of {family.family} are not fresh"
            for family in self.families
            if not family.fresh and family.age_seconds is not None and family.age_seconds > seconds
        ]

    @property
    def ahead(self) -> list[str]:
        """The families with snapshots from the future, which readers pass over, in plain words."""
        ahead = {family.family: unix_second(family.ahead) for family in self.families if family.ahead}
        return [told_ahead(family, first, unix_second(self.at)) for family, first in ahead.items()]

    @property
    def unknown(self) -> list[str]:
        """The assets with a market whose price is not known any more, in plain words."""
        lost = [price for price in self.prices if not price.known and price.has_market]
        named = listed(f"{price.symbol} (last {shown(price.newest)})" for price in lost)
        return [f"no price is known of {named}: sums in USD and health that need one are null"] if lost else []

    @property
    def lost(self) -> list[str]:
        """What the store has lost, and what to do, in plain words."""
        return told_losses(self.losses)

    @property
    def faults(self) -> Sequence[str]:
        """What is wrong, in plain words."""
        if self.reported is not None:
            return self.reported
        if not self.reachable:
            return ["the store cannot be reached"]
        return [*told_away(self.replicas, named=False), *self.disk_faults, *self.data_faults]

    @property
    def disk_faults(self) -> Sequence[str]:
        """Why nothing can be written, in plain words."""
        return self.disk.faults if self.disk else []

    @property
    def data_faults(self) -> list[str]:
        """What is wrong with the data, in plain words."""
        return [*self.obstacles, *self.lost, *self.late(), *self.ahead, *self.unknown]

    @property
    def simulated(self) -> bool:
        return any_simulated(self.origins)

    @property
    def sources(self) -> list[str]:
        """The names of the origins. Only the name of a source is public; the rest of its spec may be an address."""
        return sorted({str(origin).partition(":")[0] for origin in self.origins})

    @property
    def healthy(self) -> bool:
        return not self.faults

    @property
    def stored_bytes(self) -> int:
        """Bytes of all tables on ClickHouse's disk."""
        return sum(table.bytes for table in self.tables)


class Monitor:
    """The status according to the heads' last look, so that no request waits for the store.

    `intervals` are those of the scheduled families. If settings do not say whether jobs run (`is_configured` is false),
    jobs are assumed to run if the store has data of a source. With `ready_max_age`, a host is not ready while snapshots
    are late and more than so many seconds old.
    """

    def __init__(
        self,
        heads: Heads,
        intervals: Callable[[], Mapping[str, int]],
        clock: Callable[[], datetime],
        *,
        is_configured: bool,
        ready_max_age: int | None = None,
    ) -> None:
        self._heads = heads
        self._intervals = intervals
        self._clock = clock
        self._is_configured = is_configured
        self._ready_max_age = ready_max_age

    def check(self) -> Status:
        """The status now. An unreachable store is part of it, not an error."""
        look: Look | None
        try:
            look, reachable = self._heads.last_look(), True
        except (StoreUnavailable, AccessRefused):
            look, reachable = self._heads.remembered, False
        except AnalyticsError:
            return Status(self._clock(), reachable=True, schema_current=False)
        if look is None:
            return Status(self._clock(), reachable=False, schema_current=False, answers=False)
        now, ledger = self._clock(), look.ledger
        has_jobs = self._is_configured or any(origin.spec for origin in ledger.origins)
        intervals = self._intervals() if has_jobs else {}
        families = dict.fromkeys([*intervals, *sorted(ledger.heads)])
        snapshots = tuple(_family(ledger, family, intervals.get(family), now) for family in families)
        figures = self._heads.figures
        complete = {"loans": figures.complete_until}
        return Status(
            now,
            reachable=reachable,
            schema_current=look.schema_current,
            outdated=look.outdated,
            answers=self._heads.remembered is not None,
            families=tuple(replace(family, complete_until=complete.get(family.family)) for family in snapshots),
            prices=tuple(price.at(now) for price in figures.prices),
            doubts=figures.doubts,
            replicas=self._heads.replicas,
            disk=self._heads.disk,
            origins=tuple(sorted(ledger.origins, key=str)),
            withheld=_withheld(ledger, self._heads.shown().without),
            losses=ledger.losses,
        )

    def obstacles(self) -> list[str]:
        """The reasons why this host is not ready, in plain words."""
        status, most = self.check(), self._ready_max_age
        return status.obstacles + ([] if most is None else status.late(most))


def _withheld(ledger: Ledger, without: Iterable[str]) -> Sequence[str]:
    """What readers are not shown, in plain words."""
    if ledger.restore_is_silent:
        return [RESTORE_INTERRUPTED]
    return [f"{family} cannot be shown" for family in sorted(without)]


def _family(ledger: Ledger, family: str, interval: int | None, now: datetime) -> Family:
    """The status of a family. Without an interval it is not scheduled, so it cannot be late."""
    head = ledger.heads.get(family)
    ahead = instant(ledger.ahead[family]) if family in ledger.ahead else None
    if head is None or head.at == VALUES_ONLY:
        # Imported values are history enough where nothing is scheduled.
        fresh = head is not None and interval is None
        return Family(family, newest=None, age_seconds=None, fresh=fresh, interval=interval, ahead=ahead)
    fresh = _is_fresh(head, interval, now)
    return Family(family, head.instant, unix_second(now) - head.at, fresh, interval, ahead)


def _is_fresh(head: Head, interval: int | None, now: datetime) -> bool:
    return interval is None or now.timestamp() - head.at <= FRESH_INTERVALS * interval
