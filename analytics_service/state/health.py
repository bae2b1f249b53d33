"""The state of what the service depends on, and whether this host can answer (rule 1.3)."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime

from analytics_service.errors import AccessRefused, AnalyticsError, StoreUnavailable
from analytics_service.market.instants import unix_second
from analytics_service.state.heads import Heads, Look
from analytics_service.store.ledger import VALUES_ONLY, Head, Origin, any_simulated

# A family is fresh while its newest snapshot is at most this many of its intervals old.
_FRESH_INTERVALS = 5


@dataclass(frozen=True, slots=True)
class SnapshotStatus:
    """The newest snapshot of a family, if any, and whether it is as new as it should be.

    `interval` is the time between its snapshots in seconds, None if they are not scheduled.
    """

    family: str
    newest: datetime | None
    age_seconds: int | None
    fresh: bool
    interval: int | None = None


@dataclass(frozen=True, slots=True)
class Status:
    """The status of everything that the service depends on, at an instant.

    While the store cannot be reached, the rest is as it was last, if memory still `answers`. `withheld` lists in plain
    words the data that readers are not shown although the store has it.
    """

    at: datetime
    reachable: bool
    schema_current: bool
    answers: bool = True
    snapshots: tuple[SnapshotStatus, ...] = ()
    origins: tuple[Origin, ...] = ()
    withheld: tuple[str, ...] = ()

    @property
    def obstacles(self) -> list[str]:
        """The reasons why requests cannot be answered, in plain words."""
        if not self.answers:
            return ["the store cannot be reached"]
        if not self.schema_current:
            return ["the schema is not current"]
        if not self.snapshots:
            return ["there is no history yet"]
        missing = [
            f"there is no snapshot of {snapshot.family} yet"
            for snapshot in self.snapshots
            if snapshot.newest is None and not snapshot.fresh
        ]
        return [*missing, *self.withheld]

    def late(self, seconds: int = 0) -> list[str]:
        """The families whose newest snapshots are not fresh, and more than these seconds old, in plain words."""
        return [
            f"snapshots of {snapshot.family} are not fresh"
            for snapshot in self.snapshots
            if not snapshot.fresh and snapshot.age_seconds is not None and snapshot.age_seconds > seconds
        ]

    @property
    def faults(self) -> list[str]:
        """What is wrong, in plain words."""
        return [*self.obstacles, *self.late()] if self.reachable else ["the store cannot be reached"]

    @property
    def simulated(self) -> bool:
        """Whether any of the data is simulated."""
        return any_simulated(self.origins)

    @property
    def sources(self) -> list[str]:
        """The names of the origins. Only the name of a source is public; the rest of its spec may be an address."""
        return sorted({str(origin).partition(":")[0] for origin in self.origins})

    @property
    def healthy(self) -> bool:
        """Whether there is no fault."""
        return not self.faults


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
        snapshots = tuple(
            _snapshot(ledger.heads.get(family), family, intervals.get(family), now) for family in families
        )
        return Status(
            now,
            reachable=reachable,
            schema_current=look.schema_current,
            answers=self._heads.remembered is not None,
            snapshots=snapshots,
            origins=tuple(sorted(ledger.origins, key=str)),
            withheld=tuple(f"{family} cannot be shown" for family in sorted(self._heads.shown().without)),
        )

    def obstacles(self) -> list[str]:
        """The reasons why this host is not ready, in plain words."""
        status, most = self.check(), self._ready_max_age
        return status.obstacles + ([] if most is None else status.late(most))


def _snapshot(head: Head | None, family: str, interval: int | None, now: datetime) -> SnapshotStatus:
    """The status of a family. Without an interval it is not scheduled, so it cannot be late."""
    if head is None or head.at == VALUES_ONLY:
        # Imported values are history enough where nothing is scheduled.
        fresh = head is not None and interval is None
        return SnapshotStatus(family, newest=None, age_seconds=None, fresh=fresh, interval=interval)
    fresh = _is_fresh(head, interval, now)
    return SnapshotStatus(family, head.instant, unix_second(now) - head.at, fresh, interval)


def _is_fresh(head: Head, interval: int | None, now: datetime) -> bool:
    return interval is None or now.timestamp() - head.at <= _FRESH_INTERVALS * interval
