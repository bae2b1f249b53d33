"""The queue of corrections: one rewrites history at a time, and all can see which, and how far it is.

A writer tells once a second that it is there. One that is silent for five seconds holds up nobody.
"""

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass

import polars as pl

from analytics_service.clickhouse.connection import Store
from analytics_service.clickhouse.retries import Retries
from analytics_service.errors import AnalyticsError
from analytics_service.store.ledger import new_version

log = logging.getLogger(__name__)

HEARTBEAT_SECONDS = 1.0
WAITING, STAGING, PUTTING_IN_PLACE, DONE, STOPPED = "waiting", "staging", "putting in place", "done", "stopped"
# The table of corrections, and what a backup, which only keeps others out, is in it.
PROGRESS = "correction_progress"
BACKUP = "backup"
_SCHEMA = {
    "began_ns": pl.UInt64,
    "family": pl.String,
    "version": pl.UInt64,
    "what": pl.String,
    "command": pl.String,
    "stage": pl.String,
    "rows": pl.UInt64,
    "expected": pl.UInt64,
    "first_at": pl.UInt32,
    "last_at": pl.UInt32,
}


@dataclass(slots=True)
class Correction:
    """A rewrite as others see it: a row of table `correction_progress`."""

    began_ns: int
    family: str
    version: int
    what: str
    command: str
    expected: int
    stage: str = WAITING
    rows: int = 0
    first_at: int = 0
    last_at: int = 0

    def precedes(self, other: "Correction") -> bool:
        """Whether another must wait for this one: it is at work, or has waited for longer. One correction may rewrite
        several families at once."""
        return self.version != other.version and (self.stage != WAITING or self.began_ns < other.began_ns)

    def tell(self, store: Store) -> None:
        """Write the row."""
        store.insert(PROGRESS, pl.DataFrame([asdict(self)], schema=_SCHEMA))


@contextmanager
def in_turn(
    store: Store, family: str, version: int | None, retry: Retries, *, what: str, expected: int
) -> Iterator[Correction]:
    """Let all others know of a rewrite during the block, which begins when those before it have ended. What a job
    rewrites does not wait."""
    began = retry(lambda: new_version(store))
    own = Correction(began, family, version or began, what, store.author, expected)
    retry(lambda: own.tell(store))
    with beating(lambda: own.tell(store)):
        try:
            if what != "job":
                _wait(store, own, retry)
            own.version, own.stage = version or retry(lambda: new_version(store)), STAGING
            retry(lambda: own.tell(store))
            yield own
            own.stage = DONE
        finally:
            # Of one that was only waiting, there is nothing to tell.
            if own.stage != WAITING:
                own.stage = DONE if own.stage == DONE else STOPPED
                with suppress(AnalyticsError):
                    own.tell(store)


def _wait(store: Store, own: Correction, retry: Retries) -> None:
    is_told = False
    while ahead := [other for other in retry(lambda: running_corrections(store)) if other.precedes(own)]:
        if not is_told:
            first = ahead[0]
            log.warning("Waiting for another correction: %s of %s (%s).", first.what, first.family, first.command)
            is_told = True
        time.sleep(HEARTBEAT_SECONDS)


def running_corrections(store: Store) -> list[Correction]:
    """The corrections that are at work, or wait for others, oldest first."""
    return [Correction(**row) for row in store.frame("running_corrections").iter_rows(named=True)]


@contextmanager
def beating(beat: Callable[[], None]) -> Iterator[None]:
    """Call a function every second during the block, in a thread."""
    stop = threading.Event()

    def go_on() -> None:
        while not stop.wait(HEARTBEAT_SECONDS):
            try:
                beat()
            except AnalyticsError as error:
                log.debug("A heartbeat cannot be sent: %s", error)

    heart = threading.Thread(target=go_on, name="heartbeat", daemon=True)
    heart.start()
    try:
        yield
    finally:
        stop.set()
        heart.join()
