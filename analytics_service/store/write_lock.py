"""The write lock: one correction of a store's history at a time (rule 8.5, one writer).

Whoever wants the lock inserts a row, then reads the table, and withdraws if another row is live. Of two at once the
later reader sees the other's row, so they never both go on. A row is live for LOCK_SECONDS after its last heartbeat, by
ClickHouse's clock. A heartbeat counts only while the row is live, so a writer that was paused for longer has lost the
lock for good, and stops before its next step.
"""

import logging
import random
import secrets
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial

from analytics_service.clickhouse.connection import Store
from analytics_service.clickhouse.errors import ONCE, Retries
from analytics_service.clickhouse.queries import named_query
from analytics_service.concurrency import beside
from analytics_service.errors import AnalyticsError, CorrectionInProgress, WriteLockLost
from analytics_service.market.instants import format_instant, from_unix

log = logging.getLogger(__name__)

LOCKS = "write_lock"
# In place of a dataset: what the holder does is no correction of one.
ALL = "all"
# The view `corrections` has the same number. In these seconds the embedded server restarts.
LOCK_SECONDS = 15
_HEARTBEAT_SECONDS = 1.0
# Jobs hold the lock for a moment, so others try for some seconds, after random pauses of at most so many.
PATIENCE, _LONGEST_PAUSE = 3.0, 0.5


@dataclass(frozen=True, slots=True)
class LockHolder:
    """Who holds the lock, or asks for it: a random token; what it corrects, by which command, and since when (unix
    second)."""

    holder: str
    operation: str
    dataset: str
    command: str
    requested_at: int

    def __str__(self) -> str:
        what = self.operation if self.dataset == ALL else f"{self.operation} of {self.dataset}"
        return f"{what}{f' by `{self.command}`' if self.command else ''}"


@dataclass(frozen=True, slots=True)
class WriteLock:
    """The lock in the hands of its holder, known by a random token."""

    store: Store
    operation: str
    dataset: str
    holder: str

    def require(self) -> None:
        """Before each step of a correction. CorrectionStopped once the lock is lost."""
        if not self.store.query("check_lock_held", holder=self.holder, seconds=LOCK_SECONDS)["held"].item():
            raise _stopped()

    def announce(self, dataset: str, version: int, rows: int, span: tuple[int, int], *, finished: int = 0) -> None:
        """Record a rewrite, of so many rows from a second to another, as announced or at once as finished, unless the
        lock is lost. CorrectionStopped then."""
        own = {**self._own, "dataset": dataset, "version": version, "rows": rows, "seconds": LOCK_SECONDS}
        held = {"held": named_query("check_lock_held", ())}
        self.store.run("announce_rewrite", held, **own, first_at=span[0], last_at=span[1], finished=finished)
        self.require()

    def others(self) -> list[LockHolder]:
        """The other live rows, oldest first."""
        return [other for other in lock_holders(self.store) if other.holder != self.holder]

    def write(self, *, released: bool) -> None:
        """Ask for the lock, or release it for good."""
        self.store.run("insert_lock", **self._own, dataset=self.dataset, released=int(released))

    @property
    def _own(self) -> dict[str, str]:
        return {"holder": self.holder, "operation": self.operation, "command": self.store.author}


def lock_holders(store: Store) -> list[LockHolder]:
    """The live rows, oldest first: that of the correction that is at work, and of those that ask just now."""
    return [LockHolder(*row) for row in store.query("list_lock_holders", seconds=LOCK_SECONDS).iter_rows()]


@contextmanager
def write_lock(
    store: Store, dataset: str, operation: str, retry: Retries = ONCE, *, patience: float = PATIENCE
) -> Iterator[WriteLock]:
    """Hold the lock during the block. CorrectionRefused, which names the other's command, if another still holds it
    after `patience` seconds. `operation` is done to a dataset is shown to people."""
    lock = _taken(store, dataset, operation, retry, patience)
    try:
        with beside("heartbeat", partial(_send_heartbeats, lock)):
            yield lock
    finally:
        # One that cannot be released is lost in some seconds.
        with suppress(AnalyticsError):
            lock.write(released=True)


def _taken(store: Store, dataset: str, operation: str, retry: Retries, patience: float) -> WriteLock:
    ends = time.monotonic() + patience
    while True:
        lock = WriteLock(store, operation, dataset, secrets.token_hex(8))
        if not (others := retry(lock.others)):
            retry(partial(lock.write, released=False))
            if not (others := retry(lock.others)):
                return lock
            retry(partial(lock.write, released=True))
        if time.monotonic() >= ends:
            raise CorrectionInProgress(
                f"One correction runs at a time. Since {format_instant(from_unix(others[0].requested_at))} it is "
                f"{others[0]}. Try again when that has ended; if it was killed, in {LOCK_SECONDS} s."
            )
        time.sleep(random.uniform(0, _LONGEST_PAUSE))


def _send_heartbeats(lock: WriteLock, stop: threading.Event) -> None:
    """Send heartbeats until told to stop."""
    while not stop.wait(_HEARTBEAT_SECONDS):
        try:
            lock.store.run("extend_lock", holder=lock.holder, seconds=LOCK_SECONDS)
        except AnalyticsError as error:
            log.debug("A heartbeat cannot be sent: %s", error)


def _stopped() -> WriteLockLost:
    return WriteLockLost(
        f"This correction stood still for more than {LOCK_SECONDS} s and has lost the write lock, so it has stopped. "
        "Run the same command again."
    )
