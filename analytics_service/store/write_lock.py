"""The write lock: one correction of a store's history at a time (rule 8.5, one writer).

A writer inserts a row, reads the table, and withdraws if another row is live. If two writers are simultaneous, the
later reader sees the other's row, so at most one continues. A row is live for LOCK_SECONDS after its last heartbeat, by
ClickHouse's clock. Only a live row can be extended, so a writer that was paused for longer has lost the lock for good,
and stops before its next step.
"""

import logging
import random
import secrets
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Annotated

from analytics_service.clickhouse.connection import Store
from analytics_service.clickhouse.queries import named_query
from analytics_service.concurrency import beside
from analytics_service.errors import AnalyticsError, CorrectionInProgress, WriteLockLost
from analytics_service.market.instants import format_instant, from_unix
from analytics_service.market.kinds import Text, Time

log = logging.getLogger(__name__)

LOCKS = "write_lock"
# Stands for a dataset in an operation that corrects no single dataset.
ALL = "all"
# The view `corrections` has this number, too. It is long enough for the embedded server to restart.
LOCK_SECONDS = 15
_HEARTBEAT_SECONDS = 1.0
# Jobs hold the lock for a moment only, so others retry for PATIENCE seconds, with random pauses in between.
PATIENCE, _LONGEST_PAUSE = 3.0, 0.5


@dataclass(frozen=True, slots=True)
class LockHolder:
    """A process that holds or requests the lock; `holder` is a random token."""

    holder: str
    operation: Annotated[str, Text("Operation, such as import, backfill or remove")]
    dataset: Annotated[str, Text("Dataset whose history it changes")]
    command: Annotated[str, Text("Command line of the writer")]
    began: Annotated[datetime, Time("When it began")]

    def __str__(self) -> str:
        what = self.operation if self.dataset == ALL else f"{self.operation} of {self.dataset}"
        return f"{what}{f' by `{self.command}`' if self.command else ''}"


@dataclass(frozen=True, slots=True)
class WriteLock:
    """The lock as held by this process; `holder` is a random token."""

    store: Store
    operation: str
    dataset: str
    holder: str

    def require(self) -> None:
        """WriteLockLost once the lock is lost. Call it before what readers see."""
        if not self.store.query("check_lock_held", holder=self.holder, seconds=LOCK_SECONDS)["held"].item():
            raise _stopped()

    def announce(self, dataset: str, version: int, rows: int, span: tuple[int, int], *, finished: int = 0) -> None:
        """Record a rewrite of `rows` rows in `span` (first and last unix second) as announced, or as finished.
        WriteLockLost, with nothing recorded, once the lock is lost."""
        own = {**self._own, "dataset": dataset, "version": version, "rows": rows, "seconds": LOCK_SECONDS}
        held = {"held": named_query("check_lock_held", ())}
        self.store.run("announce_rewrite", held, **own, first_at=span[0], last_at=span[1], finished=finished)
        self.require()

    def others(self) -> list[LockHolder]:
        return [other for other in lock_holders(self.store) if other.holder != self.holder]

    def write(self, *, released: bool) -> None:
        """Request the lock, or release it for good."""
        self.store.run("insert_lock", **self._own, dataset=self.dataset, released=int(released))

    @property
    def _own(self) -> dict[str, str]:
        return {"holder": self.holder, "operation": self.operation, "command": self.store.author}


def lock_holders(store: Store) -> list[LockHolder]:
    """The processes that hold or request the lock now, oldest first."""
    rows = store.query("list_lock_holders", seconds=LOCK_SECONDS)
    return [
        LockHolder(holder, operation, dataset, command, from_unix(began))
        for holder, operation, dataset, command, began in rows.iter_rows()
    ]


@contextmanager
def write_lock(store: Store, dataset: str, operation: str, *, patience: float = PATIENCE) -> Iterator[WriteLock]:
    """Hold the lock during the block. CorrectionInProgress, which names the holder's command, if another process still
    holds it after `patience` seconds. `operation` describes the correction to people."""
    lock = _acquire(store, dataset, operation, patience)
    try:
        with beside("heartbeat", partial(_send_heartbeats, lock)):
            yield lock
    finally:
        # A lock that cannot be released expires.
        with suppress(AnalyticsError):
            lock.write(released=True)


def _acquire(store: Store, dataset: str, operation: str, patience: float) -> WriteLock:
    ends = time.monotonic() + patience
    while True:
        lock = WriteLock(store, operation, dataset, secrets.token_hex(8))
        if not (others := lock.others()):
            lock.write(released=False)
            if not (others := lock.others()):
                return lock
            lock.write(released=True)
        if time.monotonic() >= ends:
            raise CorrectionInProgress(
                f"Another command has held the write lock since {format_instant(others[0].began)}: "
                f"{others[0]}. Try again when it has ended; if it was killed, in {LOCK_SECONDS} s."
            )
        time.sleep(random.uniform(0, _LONGEST_PAUSE))


def _send_heartbeats(lock: WriteLock, stop: threading.Event) -> None:
    while not stop.wait(_HEARTBEAT_SECONDS):
        try:
            lock.store.run("extend_lock", holder=lock.holder, seconds=LOCK_SECONDS)
        except AnalyticsError as error:
            log.debug("A heartbeat cannot be sent: %s", error)


def _stopped() -> WriteLockLost:
    return WriteLockLost(
        f"This correction was paused for more than {LOCK_SECONDS} s, lost the write lock and has stopped. Run the "
        "command again."
    )
