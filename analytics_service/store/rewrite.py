"""Rewrites of history that readers already see: staged apart, announced, put in place, completed (rules 8.1 to 8.6).

A run writes all of its rows into staging tables first, the rows of the ledger included. From its announcement on,
readers accept nothing that they read of the family until the rewrite has finished. The writer sends a heartbeat every
second. A writer that stays silent may be dead or only paused: any process that notices rolls the rewrite forward from
what is staged, which takes the same steps again. Tables absorb repeated rows, so it does no harm when the writer goes
on.
"""

import logging
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Protocol, TypeVar

import polars as pl

from analytics_service.errors import AnalyticsError, StoreUnavailable
from analytics_service.store.admission import claim
from analytics_service.store.connection import Store
from analytics_service.store.ledger import LEDGER, Head, Ledger, Run, ledger_frame, read_ledger
from analytics_service.store.staging import Staging, drop_abandoned

log = logging.getLogger(__name__)

_HEARTBEAT_SECONDS = 1.0
# Looks at the ledger, a second apart, before the schema changes. A writer counts as silent after three.
_LOOKS_BEFORE_CHANGE = 8
_SCHEMA = {"family": pl.String, "version": pl.UInt64, "finished": pl.UInt8}
_T = TypeVar("_T")


class Retry(Protocol):
    """Calls a function, again when it fails because ClickHouse is away."""

    def __call__(self, act: Callable[[], _T], /) -> _T:
        """What the function returns in the end."""


def once(act: Callable[[], _T], /) -> _T:
    """Call a function without retrying."""
    return act()


def appends(head: Head | None, runs: Sequence[Run]) -> bool:
    """Whether runs only add to the end of what a head shows, so that they need no announcement (rule 8.1)."""
    if head is None:
        return True
    oldest, version = min(run.first_observed_at for run in runs), min(run.version for run in runs)
    return oldest > head.last_observed_at and version > head.version


@contextmanager
def staging(store: Store, family: str, tables: Sequence[str], version: int, retry: Retry = once) -> Iterator[Staging]:
    """Staging tables for the duration of the block. They stay when a rewrite was announced and has not finished.

    StoreUnavailable when a run of another process has the same version; a new attempt has another one.
    """
    staged = Staging(store, family, version)
    recover(store)
    retry(lambda: drop_abandoned(store))
    if not retry(staged.claim):
        raise StoreUnavailable("Another run began in the same millisecond. Run this one again.")
    try:
        retry(lambda: staged.create(tables))
        yield staged
    finally:
        try:
            if not _is_open(store, staged):
                staged.drop()
        except AnalyticsError as error:
            log.warning("Staging tables are left for a later run to drop: %s", error)


def publish(store: Store, staged: Staging, runs: Sequence[Run], retry: Retry = once) -> None:
    """Make everything that is staged visible at once, as completed runs of one origin.

    SourceRefused, with nothing shown, when the store holds data that theirs must not be mixed with (rule 8.7).
    StoreUnavailable when ClickHouse stays away. An announced rewrite is then rolled forward by others, or by the next
    run.
    """
    retry(lambda: claim(store, runs[0].origin))
    retry(lambda: staged.insert(LEDGER, ledger_frame(runs)))
    _rewrite(store, staged, retry)


class Recovery:
    """Rolls silent rewrites forward, and never raises. Logs a failure once for each rewrite and cause."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._failures: dict[tuple[str, int], str] = {}

    def look(self) -> Ledger:
        """Look at the ledger, and complete the rewrites whose writers have gone silent."""
        try:
            ledger = read_ledger(self._store)
        except AnalyticsError:
            # ClickHouse is away, or its schema is yet to come. Whoever works with the store reports that.
            return Ledger({})
        self.roll_forward(ledger.silent)
        return ledger

    def roll_forward(self, rewrites: Sequence[tuple[str, int]]) -> None:
        """Complete rewrites, given by family and version, from what is staged.

        Others may do so at the same time, their writers too.
        """
        for family, version in rewrites:
            staged = Staging(self._store, family, version)
            try:
                _rewrite(self._store, staged, once)
                log.warning("A rewrite of %s was interrupted; it is complete now.", family)
                staged.drop()
            except Exception as error:
                self._report(staged, error)

    def _report(self, staged: Staging, error: Exception) -> None:
        rewrite, cause = (staged.family, staged.version), f"{type(error).__name__}: {error}"
        if self._failures.get(rewrite) != cause:
            self._failures[rewrite] = cause
            unexpected = None if isinstance(error, AnalyticsError) else error
            log.error("An interrupted rewrite of %s cannot be completed: %s", staged.family, error, exc_info=unexpected)


def recover(store: Store) -> None:
    """Roll forward the rewrites whose writers have gone silent, as far as possible now."""
    Recovery(store).look()


def settle(store: Store, pause: Callable[[float], None] = time.sleep) -> None:
    """Wait until no rewrite is open, but not for long: what is staged can only be put in place under its own schema."""
    recovery = Recovery(store)
    for _ in range(_LOOKS_BEFORE_CHANGE):
        if not recovery.look().open:
            return
        pause(_HEARTBEAT_SECONDS)


@contextmanager
def announced(store: Store, staged: Staging, retry: Retry = once, every: float = _HEARTBEAT_SECONDS) -> Iterator[None]:
    """Announce a rewrite, send heartbeats during the block, and finish it; after an error it stays open."""
    stop = threading.Event()

    def send_heartbeats() -> None:
        sent = True
        while not stop.wait(every):
            try:
                tell(store, [staged.family], staged.version, finished=0)
                sent = True
            except AnalyticsError as error:
                if sent:
                    log.warning("Heartbeats cannot be sent: %s", error)
                sent = False

    retry(lambda: tell(store, [staged.family], staged.version, finished=0))
    heart = threading.Thread(target=send_heartbeats, name="heartbeat", daemon=True)
    heart.start()
    try:
        yield
        retry(lambda: tell(store, [staged.family], staged.version, finished=1))
    finally:
        stop.set()
        heart.join()


def _rewrite(store: Store, staged: Staging, retry: Retry) -> None:
    with announced(store, staged, retry):
        try:
            retry(staged.put_in_place)
        except AnalyticsError:
            # Tables are gone when another process has rolled the rewrite forward.
            if _is_open(store, staged):
                raise


def _is_open(store: Store, staged: Staging) -> bool:
    announced, finished = store.frame("rewrite_state", family=staged.family, version=staged.version).row(0)
    return bool(announced and not finished)


def tell(store: Store, families: Sequence[str], version: int, finished: int) -> None:
    """Announce a rewrite of families, send its heartbeat, or finish it (rule 8.5)."""
    rows = [{"family": family, "version": version, "finished": finished} for family in families]
    store.insert("publication", pl.DataFrame(rows, schema=_SCHEMA))
