"""/healthz, /readyz and /api/v1/status/health: whether the service is up, ready and healthy."""

from abc import abstractmethod
from collections.abc import Callable, Mapping
from datetime import datetime

from analytics_service.errors import AccessRefused, AnalyticsError, NotReady, StoreUnavailable
from analytics_service.http.envelope import success
from analytics_service.http.resource import Live
from analytics_service.present.shapes import Scope, Shape
from analytics_service.present.status import ALIVE, READY, STATUS, Probe, SnapshotStatus, Status
from analytics_service.state.heads import Heads
from analytics_service.store.ledger import Head

# A family is fresh while its newest snapshot is at most this many of its intervals old.
_FRESH_INTERVALS = 5


class Monitor:
    """The status by what the heads' last look has seen, so that no request waits for the store.

    `intervals` are those of the scheduled families, in seconds; empty if no jobs run. If the operator has not told
    whether jobs run, they do where the store has data of a source.
    """

    def __init__(
        self, heads: Heads, intervals: Mapping[str, int], clock: Callable[[], datetime], *, is_told: bool
    ) -> None:
        self._heads = heads
        self._intervals = intervals
        self._clock = clock
        self._is_told = is_told

    def check(self) -> Status:
        """The status now. An unreachable store is part of it, not an error."""
        try:
            seen = self._heads.seen()
        except (StoreUnavailable, AccessRefused):
            return Status(self._clock(), reachable=False, schema_current=False)
        except AnalyticsError:
            return Status(self._clock(), reachable=True, schema_current=False)
        now, ledger = self._clock(), seen.ledger
        has_jobs = self._is_told or any(origin.spec for origin in ledger.origins)
        intervals = self._intervals if has_jobs else {}
        families = dict.fromkeys([*intervals, *sorted(ledger.heads)])
        snapshots = tuple(_snapshot(ledger.heads.get(one), one, intervals.get(one), now) for one in families)
        origins = tuple(sorted(ledger.origins, key=str))
        return Status(now, reachable=True, schema_current=seen.schema_current, snapshots=snapshots, origins=origins)


def _snapshot(head: Head | None, family: str, interval: int | None, now: datetime) -> SnapshotStatus:
    """The status of a family. Without an interval it is not scheduled, so it cannot be late."""
    if head is None:
        return SnapshotStatus(family, newest=None, age_seconds=None, fresh=False)
    fresh = interval is None or now.timestamp() - head.at <= _FRESH_INTERVALS * interval
    return SnapshotStatus(family, head.instant, int(now.timestamp()) - head.at, fresh)


class _Operational(Live):
    """A path whose answer is a record of this moment."""

    shape: Shape

    @abstractmethod
    def record(self) -> Probe | Status:
        """The record of this moment. NotReady if there is none."""

    def body(self) -> bytes:
        """The record in the path's shape."""
        return success(self.shape.render(self.record(), Scope()))


class Alive(_Operational):
    """Whether the process is up."""

    shape = ALIVE

    def record(self) -> Probe:
        """Always the same."""
        return Probe("up")


class Ready(_Operational):
    """Whether the store is reachable, its schema current, and there is fresh data of everything that jobs bring."""

    shape = READY

    def __init__(self, monitor: Monitor) -> None:
        self._monitor = monitor

    def record(self) -> Probe:
        """Requests can be answered from fresh data. NotReady says what is missing."""
        faults = self._monitor.check().faults
        if faults:
            raise NotReady(f"Not ready: {'; '.join(faults)}.")
        return Probe("ready")


class Health(_Operational):
    """How the service is, part by part."""

    shape = STATUS

    def __init__(self, monitor: Monitor) -> None:
        self._monitor = monitor

    def record(self) -> Status:
        """Never an error; `healthy` says whether /readyz would answer 200."""
        return self._monitor.check()
