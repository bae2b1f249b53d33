"""How every run gets into the store: staged apart, announced, put in place, completed (rules 8.1 to 8.6).

A run writes all of its rows into staging tables first, the rows of the ledger included. Once it is announced it will be
completed. The writer sends a heartbeat every second. A writer that stays silent may be dead or only paused: any process
that notices rolls the run forward from what is staged, which takes the same steps again. Tables absorb repeated rows,
so it does no harm when the writer goes on.

A rewrite changes history that readers already see: they accept nothing that they read of the family until it has
finished. A run that only appends is of no concern to them, since they see nothing beyond their head. But the runs of a
family that append are put in place one after the other, so that no head passes one that is unfinished.
"""

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from analytics_service.errors import AnalyticsError, BackupFailed, StoreUnavailable
from analytics_service.failures import ANY_FAILURE
from analytics_service.store.admission import claim
from analytics_service.store.announcements import (
    APPEND,
    HEARTBEAT_SECONDS,
    REWRITE,
    announced,
    announcements,
)
from analytics_service.store.applied import require_current
from analytics_service.store.connection import Store
from analytics_service.store.ledger import (
    Head,
    Ledger,
    Run,
    completed,
    read_heads,
    read_ledger,
    read_state,
)
from analytics_service.store.retention import require_staged_kept
from analytics_service.store.retries import ONCE, Retries
from analytics_service.store.staging import Staging

log = logging.getLogger(__name__)

# Looks at the ledger, a second apart, before the schema changes. A writer counts as silent after three.
_LOOKS_BEFORE_CHANGE = 8


def appends(head: Head | None, runs: Sequence[Run]) -> bool:
    """Whether runs only add to the end of what a head shows, so that readers need not know of them (rule 8.1)."""
    if head is None:
        return True
    oldest, version = min(run.first_observed_at for run in runs), min(run.version for run in runs)
    return oldest > head.last_observed_at and version > head.version


@contextmanager
def staging(store: Store, family: str, tables: Sequence[str], version: int, retry: Retries = ONCE) -> Iterator[Staging]:
    """Staging tables for the duration of the block. They stay when the run was announced and has not finished.

    StoreUnavailable when a run of another process has the same version; a new attempt has another one.
    """
    staged = Staging(store, family, version)
    if not retry(staged.claim):
        raise StoreUnavailable("Another run began in the same millisecond. Run this one again.")
    try:
        retry(lambda: staged.create(tables))
        yield staged
    finally:
        try:
            # Although this process has finished it, another one may still be completing it.
            if not announcements(store, staged).open:
                staged.drop()
        except AnalyticsError as error:
            log.warning("Staging tables are left for a later run to drop: %s", error)


def publish(
    store: Store,
    staged: Staging,
    runs: Sequence[Run],
    retry: Retries = ONCE,
    require: Callable[[], None] = lambda: None,
) -> None:
    """Make everything that is staged visible at once, as completed runs of one origin. `require` is called just before
    they are announced, and may raise.

    SourceRefused, with nothing shown, when the store holds data that theirs must not be mixed with (rule 8.7),
    ObservationsDropped when raw rows beside theirs are not kept (rule 8.14), SchemaError when the schema is of another
    version (rule 8.15). StoreUnavailable when ClickHouse stays away, or when an earlier run of the family cannot be
    completed. What was announced is then rolled forward by others, or by the next run.
    """
    retry(lambda: require_current(store))
    retry(lambda: claim(store, runs[0].origin))
    retry(lambda: staged.insert_runs(runs))
    retry(lambda: require_staged_kept(store, staged.tables, staged.suffix))
    require()
    if appends(retry(lambda: read_state(store, staged.family)), runs):
        _append(store, staged, retry)
    else:
        retry(staged.compute_cells)
        _rewrite(store, staged, retry)


def complete_appends(store: Store, family: str) -> None:
    """Complete the unfinished appends of a family, for a snapshot that builds on the ones before it. Also complete, if
    possible, runs of other families whose writers have gone silent.

    StoreUnavailable when a run of the family cannot be completed.
    """
    for version in recover(store).appends.get(family, ()):
        _resume(store, Staging(store, family, version))


class Recovery:
    """Rolls silent runs forward, and never raises. Logs a failure once for each run and cause."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._failures: dict[tuple[str, int], str] = {}

    def look(self) -> Ledger:
        """Look at the ledger, and complete the runs whose writers have gone silent."""
        try:
            ledger = read_ledger(self._store)
        except AnalyticsError:
            # ClickHouse is away, or has no schema yet. Other users of the store report that.
            return Ledger({})
        self.roll_forward(ledger.silent)
        return ledger

    def roll_forward(self, runs: Sequence[tuple[str, int]]) -> None:
        """Complete runs, given by family and version, from what is staged.

        Others may do so at the same time, their writers too.
        """
        for family, version in runs:
            staged = Staging(self._store, family, version)
            try:
                _resume(self._store, staged)
                self._failures.pop((family, version), None)
                log.warning("A run of %s was interrupted; it is complete now.", family)
            except ANY_FAILURE as error:
                self._report(staged, error)

    def _report(self, staged: Staging, error: BaseException) -> None:
        run, cause = (staged.family, staged.version), f"{type(error).__name__}: {error}"
        if self._failures.get(run) != cause:
            self._failures[run] = cause
            unexpected = None if isinstance(error, AnalyticsError) else error
            log.error("An interrupted run of %s cannot be completed: %s", staged.family, error, exc_info=unexpected)


def recover(store: Store) -> Ledger:
    """Roll forward the runs whose writers have gone silent, as far as possible now; the ledger as it was before."""
    return Recovery(store).look()


def settle(store: Store, pause: Callable[[float], None] = time.sleep) -> None:
    """Wait a few seconds until no run is unfinished: staged rows can only be put in place under their own schema."""
    recovery = Recovery(store)
    for _ in range(_LOOKS_BEFORE_CHANGE):
        ledger = recovery.look()
        if not ledger.open and not ledger.appends:
            return
        pause(HEARTBEAT_SECONDS)


def settled(store: Store, pause: Callable[[float], None] = time.sleep) -> Ledger:
    """The ledger once no rewrite is unfinished. BackupFailed if one still is after a few seconds."""
    settle(store, pause)
    ledger = read_ledger(store)
    if ledger.open:
        raise BackupFailed(
            f"{', '.join(sorted(ledger.open))}: history is being rewritten. Stop imports and backfills, or wait for "
            "their end, and try again."
        )
    return ledger


def _resume(store: Store, staged: Staging) -> None:
    known = announcements(store, staged)
    if known.append:
        _append(store, staged, ONCE)
        known = announcements(store, staged)
    # A process that took it for a rewrite may have died before the writer finished it as an append.
    if known.open:
        _rewrite(store, staged, ONCE)
    staged.drop()


def _append(store: Store, staged: Staging, retry: Retries) -> None:
    """Put a run in place after all other runs that append to its family.

    Of two runs that are announced at the same time, either both see the other one, or only the later one does. With
    a third run the order is unknown, so this one becomes a rewrite, for which order does not matter.
    """
    with announced(store, staged, APPEND, retry):
        ledger = retry(lambda: read_ledger(store))
        others = [one for one in ledger.appends.get(staged.family, ()) if one != staged.version]
        for version in others:
            other = Staging(store, staged.family, version)
            with announced(store, other, APPEND, retry):
                _place(store, other, retry, ledger, alone=len(others) == 1)
            retry(other.drop)
            ledger = retry(lambda: read_ledger(store))
        _place(store, staged, retry, ledger, alone=len(others) <= 1)


def _place(store: Store, staged: Staging, retry: Retries, ledger: Ledger, *, alone: bool) -> None:
    """Put a run in place that was announced as an append. If it no longer is one, put it in place as a rewrite."""
    runs = retry(staged.runs)
    if not runs:
        # Another process has completed it, and dropped its tables.
        return
    head = ledger.heads.get(staged.family)
    if alone and appends(head, runs) and staged.version not in ledger.open.get(staged.family, ()):
        _put_in_place(store, staged, retry, head, is_rewrite=False)
    elif retry(staged.is_there) and not retry(lambda: _is_taken(store, runs)):
        _rewrite(store, staged, retry)


def _is_taken(store: Store, runs: Sequence[Run]) -> bool:
    """Whether the runs are of a job, and another scheduler has completed the same snapshots."""
    family, instants = runs[0].family, {run.at for run in runs}
    if any(run.kind == "import" for run in runs):
        return False
    return instants <= completed(store, family, min(instants), max(instants))


def _rewrite(store: Store, staged: Staging, retry: Retries) -> None:
    with announced(store, staged, REWRITE, retry):
        head = retry(lambda: read_heads(store)).get(staged.family)
        _put_in_place(store, staged, retry, head, is_rewrite=True)


def _put_in_place(store: Store, staged: Staging, retry: Retries, head: Head | None, *, is_rewrite: bool) -> None:
    try:
        retry(lambda: staged.put_in_place(head, is_rewrite=is_rewrite))
    except AnalyticsError:
        # Tables are gone when another process has rolled the run forward.
        if announcements(store, staged).open and staged.is_there():
            raise
