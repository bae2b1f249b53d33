"""Whether the service is up, ready, and how it is: for load balancers, and for people."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from analytics_service.errors import AnalyticsError, NotReady, StoreUnavailable
from analytics_service.http.envelope import success
from analytics_service.http.resource import Live
from analytics_service.present.status import ALIVE, READY, STATUS
from analytics_service.present.text import rfc3339
from analytics_service.store.connection import Store
from analytics_service.store.ledger import Head, read_heads
from analytics_service.store.migrations import pending

# A family is fresh while its newest snapshot is no older than this many of its intervals.
_FRESH_INTERVALS = 5


@dataclass(frozen=True, slots=True)
class Health:
    """The state of what the service stands on."""

    store: bool
    schema: bool
    snapshots: dict[str, tuple[Head | None, bool]]

    @property
    def faults(self) -> list[str]:
        """What keeps the service from being ready, in plain words."""
        if not self.store:
            return ["the store cannot be reached"]
        if not self.schema:
            return ["the schema is not current"]
        return [f"snapshots of {family} are not fresh" for family, (_, fresh) in self.snapshots.items() if not fresh]


class Monitor:
    """Looks at the store as of now. `every` is the interval of each scheduled family, seconds; empty without jobs."""

    def __init__(self, store: Store, every: dict[str, int], clock: Callable[[], datetime]) -> None:
        self._store = store
        self._every = every
        self.clock = clock

    def look(self) -> Health:
        """The health as of now; never raises for a store that is away."""
        try:
            current = not pending(self._store)
            heads = read_heads(self._store)
        except StoreUnavailable:
            return Health(store=False, schema=False, snapshots={})
        except AnalyticsError:
            return Health(store=True, schema=False, snapshots={})
        now = self.clock().timestamp()
        families = dict.fromkeys([*self._every, *sorted(heads)])
        return Health(True, current, {family: self._judge(family, heads.get(family), now) for family in families})

    def _judge(self, family: str, head: Head | None, now: float) -> tuple[Head | None, bool]:
        every = self._every.get(family)
        return head, every is None or (head is not None and now - head.at <= _FRESH_INTERVALS * every)


class Alive(Live):
    """Whether the process is up."""

    shape = ALIVE

    def body(self) -> bytes:
        """Always the same."""
        return success({"status": "up"})


class Ready(Live):
    """Whether the store is reachable, its schema current and its snapshots fresh."""

    shape = READY

    def __init__(self, monitor: Monitor) -> None:
        self._monitor = monitor

    def body(self) -> bytes:
        """That requests can be answered from fresh data. NotReady says what is missing."""
        faults = self._monitor.look().faults
        if faults:
            raise NotReady(f"Not ready: {'; '.join(faults)}.")
        return success({"status": "ready"})


class Status(Live):
    """How the service is, part by part."""

    shape = STATUS

    def __init__(self, monitor: Monitor) -> None:
        self._monitor = monitor

    def body(self) -> bytes:
        """Never an error; `healthy` says whether /readyz would be 200."""
        health = self._monitor.look()
        now = self._monitor.clock()
        return success(
            {
                "healthy": not health.faults,
                "faults": health.faults,
                "at": rfc3339(now),
                "store": {"reachable": health.store, "schema_current": health.schema},
                "snapshots": [
                    _snapshot(family, head, fresh, now) for family, (head, fresh) in health.snapshots.items()
                ],
            }
        )


def _snapshot(family: str, head: Head | None, fresh: bool, now: datetime) -> dict[str, object]:
    return {
        "family": family,
        "newest": rfc3339(head.instant) if head else None,
        "age_seconds": int(now.timestamp()) - head.at if head else None,
        "fresh": fresh,
    }
