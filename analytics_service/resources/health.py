"""/healthz, /readyz and /api/v1/status/health: whether the service is up, ready and healthy."""

from abc import abstractmethod
from collections.abc import Callable, Mapping
from datetime import datetime

from analytics_service.errors import AnalyticsError, NotReady, StoreUnavailable
from analytics_service.http.envelope import success
from analytics_service.http.resource import Live
from analytics_service.present.shapes import Scope, Shape
from analytics_service.present.status import ALIVE, READY, STATUS, Probe, SnapshotStatus, Status
from analytics_service.store.connection import Store
from analytics_service.store.ledger import Head, read_heads
from analytics_service.store.migrations import pending

# A family is fresh while its newest snapshot is at most this many of its intervals old.
_FRESH_INTERVALS = 5


class Monitor:
    """Checks the store. `intervals` are those of the scheduled families, in seconds; empty if no jobs run."""

    def __init__(self, store: Store, intervals: Mapping[str, int], clock: Callable[[], datetime]) -> None:
        self._store = store
        self._intervals = intervals
        self._clock = clock

    def check(self) -> Status:
        """The status now. An unreachable store is part of it, not an error."""
        try:
            schema_current = not pending(self._store)
            heads = read_heads(self._store)
        except StoreUnavailable:
            return Status(self._clock(), reachable=False, schema_current=False)
        except AnalyticsError:
            return Status(self._clock(), reachable=True, schema_current=False)
        now = self._clock()
        families = dict.fromkeys([*self._intervals, *sorted(heads)])
        snapshots = tuple(self._snapshot(family, heads.get(family), now) for family in families)
        return Status(now, reachable=True, schema_current=schema_current, snapshots=snapshots)

    def _snapshot(self, family: str, head: Head | None, now: datetime) -> SnapshotStatus:
        interval = self._intervals.get(family)
        if head is None:
            return SnapshotStatus(family, newest=None, age_seconds=None, fresh=interval is None)
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
    """Whether the store is reachable, its schema current and its snapshots fresh."""

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
