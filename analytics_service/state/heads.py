"""The newest heads that readers are shown. A thread looks at the ledger about once a second; no request waits for it.

A family that is being rewritten keeps the head that it had before, until the rewrite has finished (rule 8.4).
"""

import logging
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from analytics_service.errors import (
    AnalyticsError,
    NoSnapshot,
    SchemaError,
    StoreFailure,
    StoreUnavailable,
    Superseded,
    Unprepared,
)
from analytics_service.failures import ANY_FAILURE
from analytics_service.store.applied import pending
from analytics_service.store.connection import Store
from analytics_service.store.job_runs import read_runs, told_intervals
from analytics_service.store.ledger import Head, Ledger, Origin, read_ledger
from analytics_service.store.rewrite import Recovery

log = logging.getLogger(__name__)

# Seconds between looks. A completed run is shown within a second, a rewrite of much history within about two.
_EVERY = 0.75
# Seconds between looks while a request waits for a newer one.
_HASTE = 0.1
# How long heads hold while the ledger cannot be read, and how long a family may be kept back before that is a fault,
# seconds.
_LONGEST_OUTAGE = 300.0
# How long a request waits for the first look, seconds.
_FIRST_LOOK = 6.0
# Seconds between checks of a schema that was current, and between readings of the schedulers' intervals.
_CHECK_EVERY = 15.0
_OUTDATED = "The schema is not that of this version; `analytics-service migrate` brings an older one up to date."
# Why a family that has runs has no head.
_WITHOUT: Mapping[type[AnalyticsError], str] = {
    Unprepared: "The newest data of {} cannot be prepared.",
    StoreFailure: "ClickHouse refuses to read the history of {}.",
    StoreUnavailable: "ClickHouse cannot read the history of {} now.",
    Superseded: "{} is being rewritten.",
}
# Prepares for a head. True if readers should be shown it a little later, to let loads that it started finish.
Prepare = Callable[[Head], bool]


@dataclass(frozen=True, slots=True)
class Known:
    """Heads by family, the error that says why for families that have runs but no head, and where the data is from."""

    heads: Mapping[str, Head] = field(default_factory=dict)
    without: Mapping[str, type[AnalyticsError]] = field(default_factory=dict)
    origins: frozenset[Origin] = frozenset()

    def has(self, family: str) -> bool:
        """Whether a run of the family has been completed."""
        return family in self.heads or family in self.without

    def head(self, family: str) -> Head:
        """The family's head. NoSnapshot before its first completed run; Superseded when it is being rewritten;
        StoreFailure when ClickHouse refuses to read what it names, StoreUnavailable when it cannot do so now, and
        Unprepared when our own code fails at it."""
        if family in self.heads:
            return self.heads[family]
        if family in self.without:
            error = self.without[family]
            raise error(_WITHOUT[error].format(family))
        raise NoSnapshot(family)


@dataclass(frozen=True, slots=True)
class KeptBack:
    """Why the newest data of a family is not shown, and since when (seconds of the clock of heads)."""

    error: StoreFailure | StoreUnavailable | Unprepared
    since: float


@dataclass(frozen=True, slots=True)
class Seen:
    """The result of a look: the ledger, and whether the schema is that of this version."""

    ledger: Ledger
    schema_current: bool


class Heads:
    """Heads of all families, never much older than a second; while the store is away, up to five minutes.

    The first question starts the thread, so that every worker has its own. Without `every` there is no thread, and
    the caller calls `look` instead.
    """

    def __init__(
        self,
        store: Store,
        every: float | None = _EVERY,
        clock: Callable[[], float] = time.monotonic,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self.clock = clock
        self._store = store
        self._recovery = Recovery(store)
        self._every = every
        self._pause = pause
        self._prepare: dict[str, list[Prepare]] = {}
        self._settle: Callable[[], object] = lambda: None
        self._changed = threading.Condition()
        self._hurry = threading.Event()
        self._thread: threading.Thread | None = None
        self._rolling: threading.Thread | None = None
        self._known: Known | None = None
        self._looked_at = float("-inf")
        self._looks = 0
        self._error: AnalyticsError | None = None
        self._kept_back: dict[str, KeptBack] = {}
        self._seen: Seen | AnalyticsError | None = None
        self._checked_at = float("-inf")
        self._intervals: Mapping[str, int] = {}

    def before_showing(self, family: str, prepare: Prepare) -> None:
        """Call `prepare` with every head of a family before readers are shown it. It may raise Superseded; what else
        it raises keeps the head back."""
        self._prepare.setdefault(family, []).append(prepare)

    def settle_with(self, settle: Callable[[], object]) -> None:
        """Call `settle` before heads are shown if any of them is to be shown later. Once for all of them, because
        requests wait meanwhile, and other families are not looked at."""
        self._settle = settle

    def known(self) -> Known:
        """The newest heads: the same object until one of them changes. StoreUnavailable when none are recent enough."""
        known = self._known or self._first()
        if self._is_outdated:
            raise StoreUnavailable("The ledger could not be read for too long.")
        return known

    @property
    def shown(self) -> Known | None:
        """What readers are shown; None if they get errors only. Does not query the store, and does not wait."""
        return None if self._is_outdated else self._known

    @property
    def kept_back(self) -> Mapping[str, bool]:
        """The families whose newest data is not shown because it cannot be read, and whether that lasts.

        Where a repetition will not help it counts as lasting at once, otherwise after five minutes.
        """
        now = self.clock()
        return {
            family: not isinstance(one.error, StoreUnavailable) or now - one.since > _LONGEST_OUTAGE
            for family, one in self._kept_back.copy().items()
        }

    @property
    def _is_outdated(self) -> bool:
        return self.clock() - self._looked_at > _LONGEST_OUTAGE

    @property
    def origins(self) -> frozenset[Origin]:
        """Where the data that readers are shown is from; nothing before the first look."""
        known = self._known
        return frozenset() if known is None else known.origins

    def intervals(self, own: Mapping[str, int]) -> Mapping[str, int]:
        """Seconds between snapshots of each scheduled family, as schedulers recorded them (rule 1.3).

        Families of which none was recorded have those of this host's settings, `own`, which is empty if no jobs run.
        Does not query the store.
        """
        return {family: self._intervals.get(family, every) for family, every in own.items()}

    def seen(self) -> Seen:
        """The result of the last look. Does not query the store, and waits only before the first look.

        Raises the error of that look, and StoreUnavailable when the store is known not to answer now.
        """
        if self._seen is None:
            self._look_first()
        self._store.require_answers()
        # Read once: another thread may be looking.
        seen = self._seen
        if isinstance(seen, Seen):
            return seen
        raise seen or StoreUnavailable("The ledger has not been read yet.")

    def what_lacks(self) -> str:
        """Why requests cannot be answered from the store now, in words for its operator; empty when they can."""
        try:
            return "" if self.seen().schema_current else _OUTDATED
        except AnalyticsError as error:
            return str(error)

    def wait(self) -> None:
        """Return after a further look at the ledger, or after a moment."""
        if self._every is None:
            self._pause(_HASTE)
            self.look()
            return
        with self._changed:
            looks = self._looks
            self._hurry.set()
            self._changed.wait_for(lambda: self._looks > looks, timeout=2 * _HASTE)

    def look(self) -> None:
        """Look at the ledger now, and show what is new. Called by one thread at a time."""
        begun = self.clock()
        error: AnalyticsError | None = None
        ledger = Ledger({})
        known = self._known
        try:
            ledger = self._read(begun)
            known = self._shown(ledger, known or Known())
        except AnalyticsError as caught:
            error = caught
        with self._changed:
            self._tell(error)
            if error is None:
                # The answer of a slow store is as old as the question.
                self._known, self._looked_at = known, begun
            self._error = error
            self._looks += 1
            self._changed.notify_all()
        self._recover(ledger)

    def _read(self, now: float) -> Ledger:
        try:
            ledger = read_ledger(self._store)
            self._seen = Seen(ledger, self._schema_is_current(now))
        except AnalyticsError as error:
            self._seen = error
            raise
        return ledger

    def _schema_is_current(self, now: float) -> bool:
        """Whether the schema is current. It seldom changes, so a current one is not checked at every look. With it,
        the schedulers' intervals are read."""
        if isinstance(self._seen, Seen) and self._seen.schema_current and now < self._checked_at + _CHECK_EVERY:
            return True
        self._checked_at = now
        try:
            if pending(self._store):
                return False
        except SchemaError:
            return False
        self._read_intervals()
        return True

    def _read_intervals(self) -> None:
        """Read the schedulers' intervals. If that fails, the previous ones stay valid, and heads are shown as usual."""
        try:
            self._intervals = told_intervals(*read_runs(self._store))
        except AnalyticsError as error:
            log.debug("The schedulers' intervals cannot be read: %s", error)

    def _shown(self, ledger: Ledger, before: Known) -> Known:
        """What readers are shown of a look at the ledger."""
        heads: dict[str, Head] = {}
        later = False
        for family, head in ledger.heads.items():
            prepared = None if family in ledger.open else self._prepared(family, head)
            if prepared is not None:
                heads[family] = head
                later = later or prepared
            elif family in before.heads:
                heads[family] = before.heads[family]
        if later:
            self._settle()
        without = {family: self._why_without(family) for family in ledger.heads.keys() - heads.keys()}
        known = Known(heads, without, ledger.origins)
        return before if known == before else known

    def _why_without(self, family: str) -> type[AnalyticsError]:
        """The error of a family that has runs but no head: it is being rewritten unless it is kept back."""
        kept_back = self._kept_back.get(family)
        return next(kind for kind in _WITHOUT if isinstance(kept_back.error, kind)) if kept_back else Superseded

    def _prepared(self, family: str, head: Head) -> bool | None:
        """Prepare for a head; whether it is to be shown later, or None when it is being rewritten or cannot be read."""
        try:
            later = self._all_prepared(family, head)
        except Superseded:
            return None
        except StoreUnavailable as error:
            # A store that is away concerns all families; one query that takes too long or too much does not.
            self._store.require_answers()
            self._keep_back(family, error)
            return None
        except StoreFailure as error:
            self._keep_back(family, error)
            return None
        except AnalyticsError:
            raise
        except ANY_FAILURE as error:
            # A fault of our own in one family must not keep the others from being shown.
            self._keep_back(family, Unprepared(repr(error)), error)
            return None
        if self._kept_back.pop(family, None):
            log.info("%s can be read again.", family)
        return later

    def _all_prepared(self, family: str, head: Head) -> bool:
        """Whether any callback that prepares for the family's heads wants this one shown later.

        A callback that fails is called first the next time, so that the others stay at the head that is shown.
        """
        callbacks = self._prepare.get(family, [])
        later = False
        for prepare in tuple(callbacks):
            try:
                later = prepare(head) or later
            except BaseException:
                callbacks.remove(prepare)
                callbacks.insert(0, prepare)
                raise
        return later

    def _keep_back(
        self, family: str, error: StoreFailure | StoreUnavailable | Unprepared, traced: BaseException | None = None
    ) -> None:
        """Show nothing new of a family whose history could not be read. The store is there, so the other families are
        not affected. The log has the traceback of `traced`."""
        before = self._kept_back.get(family)
        if before is None or str(before.error) != str(error):
            level = logging.WARNING if isinstance(error, StoreUnavailable) else logging.ERROR
            log.log(level, "No new data of %s is shown: %s", family, error, exc_info=traced)
        self._kept_back[family] = KeptBack(error, self.clock() if before is None else before.since)

    def _first(self) -> Known:
        """The outcome of the first look; of a further one, if all so far have failed."""
        if self._looks and self._every is not None:
            self._store.take_turn()
            self.wait()
        else:
            self._look_first()
        if self._known is None:
            raise self._error or StoreUnavailable("The ledger has not been read yet.")
        return self._known

    def _look_first(self) -> None:
        """Begin to look, and wait for the first look."""
        if self._every is None:
            self.look()
            return
        self._store.watch()
        with self._changed:
            if self._thread is None:
                self._thread = threading.Thread(target=self._watch, args=(self._every,), name="heads", daemon=True)
                self._thread.start()
            self._changed.wait_for(lambda: self._looks, timeout=_FIRST_LOOK)

    def _watch(self, every: float) -> None:
        while True:
            try:
                self.look()
            except ANY_FAILURE:
                log.exception("A look at the ledger failed unexpectedly")
            if self._hurry.wait(every):
                self._hurry.clear()
                self._pause(_HASTE)

    def _tell(self, error: AnalyticsError | None) -> None:
        """Log when the ledger cannot be read, and when it can again."""
        if error is not None and self._error is None:
            log.warning("The ledger cannot be read: %s", error)
        elif error is None and self._error is not None:
            log.info("The ledger can be read again.")

    def _recover(self, ledger: Ledger) -> None:
        """Roll interrupted rewrites forward, one after the other, beside the looks."""
        if not ledger.silent or (self._rolling is not None and self._rolling.is_alive()):
            return
        if self._every is None:
            self._recovery.roll_forward(ledger.silent)
        else:
            self._rolling = threading.Thread(
                target=self._recovery.roll_forward, args=(ledger.silent,), name="rewrite", daemon=True
            )
            self._rolling.start()
