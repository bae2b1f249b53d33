"""The status of the service in one record (rule 1.6, status record): probes and `status/health` show its verdicts,
gauges its numbers, /operations shows it as JSON, and `status` prints it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Annotated

from analytics_service.config.settings import service_version
from analytics_service.errors import AccessDenied, AnalyticsError, StoreUnavailable
from analytics_service.market.instants import format_instant, from_unix, unix_second
from analytics_service.market.kinds import Count, Flag, Text, Time
from analytics_service.market.validation import list_in_words
from analytics_service.state.facts import Facts, LostPrice
from analytics_service.state.watcher import NOT_CURRENT, HeadWatcher, Look
from analytics_service.store.ledger import (
    VALUES_ONLY,
    Head,
    Ledger,
    Origin,
    any_simulated,
    describe_ahead,
)
from analytics_service.store.losses import Loss, describe_losses

# Environment variable of the HTTP service: a file that exists while the past is filled in.
FILLING = "_ANALYTICS_FILLING"
# A dataset is fresh while its newest snapshot is at most this many intervals old.
FRESH_INTERVALS = 5


@dataclass(frozen=True, slots=True)
class Dataset:
    """The newest snapshot of a dataset, and failures of its job."""

    dataset: Annotated[str, Text("Name of the dataset")]
    newest: Annotated[datetime | None, Time("Instant of the newest snapshot, if there is one")]
    age_seconds: Annotated[int | None, Count("Age of the newest snapshot")]
    fresh: Annotated[bool, Flag("Whether the newest snapshot is recent enough")]
    interval: Annotated[int | None, Count("Seconds between scheduled snapshots; null if none are scheduled")] = None
    ahead: datetime | None = None
    """Instant of the first snapshot from the future, if there is one (rule 8.16, future snapshots)."""
    complete_until: Annotated[
        datetime | None, Time("For loans, time up to which the source reports its events as complete; else null")
    ] = None
    gaps: Annotated[int | None, Count("Scheduled instants of the last day without a snapshot")] = None
    failed_at: Annotated[datetime | None, Time("Instant of the last snapshot that failed")] = None
    error: Annotated[str, Text("Why it failed; empty without a failure")] = ""


@dataclass(frozen=True, slots=True)
class Status:
    """The status at an instant. Unknown attributes have their defaults. Lists are for people.

    While the store cannot be reached, its data is as of the last look, if memory still `answers`. `error` says, for
    operators only, why the store cannot be reached or read in full. `outdated` says why the schema is not current.
    `withheld` describes data that readers are not shown although the store has it. `unserved` says why the HTTP service
    does not answer the command `status`. `filling` says that the past is still being filled in.
    """

    at: datetime
    reachable: bool = False
    error: str = ""
    schema_current: bool = False
    outdated: str = NOT_CURRENT
    answers: bool = True
    datasets: Sequence[Dataset] = ()
    facts: Facts = field(default_factory=Facts)
    origins: Sequence[Origin] = ()
    withheld: Sequence[str] = ()
    losses: Mapping[str, Sequence[Loss]] = field(default_factory=dict)
    unserved: Sequence[str] = ()
    filling: bool = False
    version: str = field(default_factory=service_version)

    @property
    def obstacles(self) -> list[str]:
        """The reasons why requests cannot be answered."""
        if not self.answers:
            return ["the store cannot be reached"]
        if not self.schema_current:
            return [self.outdated]
        if not self.datasets:
            return [*self.withheld] or ["there is no history yet"]
        missing = [
            f"there is no snapshot of {dataset.dataset} yet"
            for dataset in self.datasets
            if dataset.newest is None and not dataset.fresh
        ]
        return [*missing, *self.withheld]

    def late(self, seconds: int = 0) -> list[str]:
        """The datasets whose newest snapshots are not fresh, and more than `seconds` old."""
        return [
            f"snapshots of {dataset.dataset} are not fresh"
            for dataset in self.datasets
            if not dataset.fresh and dataset.age_seconds is not None and dataset.age_seconds > seconds
        ]

    @property
    def ahead(self) -> list[str]:
        """The datasets with snapshots from the future, which readers ignore."""
        ahead = {dataset.dataset: unix_second(dataset.ahead) for dataset in self.datasets if dataset.ahead}
        return [describe_ahead(dataset, first, unix_second(self.at)) for dataset, first in ahead.items()]

    @property
    def lost_prices(self) -> list[LostPrice]:
        """The assets whose last price is too old to be used."""
        return [price.at(self.at) for price in self.facts.lost_prices]

    @property
    def unknown(self) -> list[str]:
        """The assets with a market whose last price is too old to be used."""
        lost = [price for price in self.facts.lost_prices if price.has_market]
        named = list_in_words(f"{price.symbol} (last {format_instant(price.newest)})" for price in lost)
        return [f"no recent price of {named}: sums in USD and health that need it are null"] if lost else []

    @property
    def idle(self) -> list[str]:
        """Says that no scheduler runs, if jobs are scheduled. On a full disk, no scheduler can report."""
        schedulers = self.facts.schedulers
        if schedulers is None or self.full or not any(dataset.interval for dataset in self.datasets):
            return []
        return [] if any(scheduler.alive for scheduler in schedulers) else ["no scheduler is running"]

    @property
    def full(self) -> Sequence[str]:
        """Why nothing can be written."""
        return self.facts.disk.faults if self.facts.disk else []

    @property
    def faults(self) -> Sequence[str]:
        """Everything that is wrong."""
        if not self.reachable:
            return ["the store cannot be reached", *self.unserved]
        unread = ["the store cannot be read in full"] if self.facts.error else []
        data = [*describe_losses(self.losses), *self.late(), *self.ahead, *self.unknown]
        return [*self.full, *self.obstacles, *unread, *data, *self.idle, *self.unserved]

    @property
    def simulated(self) -> bool:
        return any_simulated(self.origins)

    @property
    def sources(self) -> list[str]:
        """Names of the data's sources. Only the name of a source is public; the rest of its spec may be an address."""
        return sorted({str(origin).partition(":")[0] for origin in self.origins})

    @property
    def healthy(self) -> bool:
        return not self.faults


class Monitor:
    """The status according to the watcher's last look, so that no request waits for the store.

    `intervals` returns the intervals of scheduled datasets. If no source is configured (`is_configured` is false), jobs
    are assumed to run if the store has data from a source. A host is not ready while snapshots are late and more than
    `ready_max_age` seconds old. `is_filling` returns whether the past is still being filled in.
    """

    def __init__(
        self,
        heads: HeadWatcher,
        intervals: Callable[[], Mapping[str, int]],
        clock: Callable[[], datetime],
        *,
        is_configured: bool,
        ready_max_age: int | None = None,
        is_filling: Callable[[], bool] = lambda: False,
    ) -> None:
        self._heads = heads
        self._intervals = intervals
        self._clock = clock
        self._is_configured = is_configured
        self._ready_max_age = ready_max_age
        self._is_filling = is_filling

    def check(self) -> Status:
        """The status now. An unreachable store is part of the status, not an error."""
        return replace(self._checked(), filling=self._is_filling())

    def _checked(self) -> Status:
        look: Look | None
        error = ""
        try:
            look, reachable = self._heads.last_look(), True
        except (StoreUnavailable, AccessDenied) as caught:
            look, reachable, error = self._heads.remembered, False, str(caught)
        except AnalyticsError as caught:
            return Status(self._clock(), reachable=True, error=str(caught))
        if look is None:
            return Status(self._clock(), error=error, answers=False)
        now, ledger = self._clock(), look.ledger
        has_jobs = self._is_configured or any(origin.spec for origin in ledger.origins)
        intervals = self._intervals() if has_jobs else {}
        datasets = dict.fromkeys([*intervals, *sorted(ledger.heads)])
        facts = self._heads.facts
        return Status(
            now,
            reachable=reachable,
            error=error or facts.error,
            schema_current=look.schema_current,
            outdated=look.outdated,
            answers=self._heads.remembered is not None,
            datasets=tuple(_dataset(ledger, facts, dataset, intervals.get(dataset), now) for dataset in datasets),
            facts=facts,
            origins=tuple(sorted(ledger.origins, key=str)),
            withheld=[f"{dataset} cannot be shown" for dataset in sorted(self._heads.shown().without)]
            if look.schema_current
            else (),
            losses=ledger.losses,
        )

    def obstacles(self) -> list[str]:
        """The reasons why this host is not ready."""
        status, most = self.check(), self._ready_max_age
        return status.obstacles + ([] if most is None else status.late(most))


def _dataset(ledger: Ledger, facts: Facts, name: str, interval: int | None, now: datetime) -> Dataset:
    """The status of a dataset. Without an interval the dataset is not scheduled, so it cannot be late."""
    head = ledger.heads.get(name)
    is_empty = head is None or head.at == VALUES_ONLY
    failure = facts.last_failure(name)
    return Dataset(
        name,
        newest=None if head is None or is_empty else head.instant,
        age_seconds=None if head is None or is_empty else unix_second(now) - head.at,
        # Without a schedule, imported values are enough.
        fresh=head is not None and (interval is None or (not is_empty and _is_fresh(head, interval, now))),
        interval=interval,
        ahead=from_unix(ledger.ahead[name]) if name in ledger.ahead else None,
        complete_until=facts.complete_until if name == "loans" else None,
        gaps=facts.gaps.get(name) if interval else None,
        failed_at=from_unix(failure.failed_at) if failure and failure.failed_at else None,
        error=failure.error if failure else "",
    )


def _is_fresh(head: Head, interval: int, now: datetime) -> bool:
    return now.timestamp() - head.at <= FRESH_INTERVALS * interval
