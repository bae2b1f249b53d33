"""Watches the heads of datasets. A thread looks at the ledger; requests wait for a look only at the start, and after a
rewrite.

A dataset that is being rewritten keeps its previous head until the rewrite has finished (rule 8.4, kept heads).
"""

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from analytics_service.clickhouse.connection import Store
from analytics_service.clickhouse.errors import ANY_FAILURE
from analytics_service.concurrency import deadline
from analytics_service.errors import (
    AnalyticsError,
    Busy,
    NoSnapshot,
    NotReady,
    OtherShards,
    SchemaError,
    StoreUnavailable,
    Superseded,
)
from analytics_service.state.facts import Facts, read_facts
from analytics_service.store.ledger import Head, Ledger, Origin, hide_future_snapshots, read_ledger
from analytics_service.store.losses import Loss
from analytics_service.store.schema import pending_migrations

log = logging.getLogger(__name__)

# Seconds between pings of ClickHouse, and time limits of a ping and of a look. A look follows every other ping, so a
# commit is shown, and a hanging ClickHouse is noticed, within two seconds.
_LOOK_INTERVAL, _PROBE_SECONDS, _LOOK_SECONDS = 1.0, 1.0, 1.0
# Seconds between looks while a request waits for a newer look.
_SHORT_INTERVAL = 0.1
# Seconds for which heads are shown while the ledger cannot be read.
_LONGEST_OUTAGE = 300.0
# Seconds that a request, and a probe, wait for the first look.
_FIRST_SECONDS, _FIRST_SECONDS_OF_PROBES = 4.5, 0.5
# Seconds between checks of a current schema, and between readings of facts; and the time limit of a reading.
_CHECK_INTERVAL, _FACT_INTERVAL, _FACT_SECONDS = 60.0, 30.0, 15.0
# Every so many readings all facts are read, else only those that take little.
_ALL_FACTS = 10
# Seconds between checks where large tables are split: these checks also compare shards.
_SHARDS_INTERVAL = 5.0
NOT_CURRENT = "the schema is not current"
_OTHER_SHARDS = (
    "the shards of cluster {} differ from the shards that the store records. `analytics-service migrate` names them; "
    "restart the service when they match"
)


@dataclass(frozen=True, slots=True)
class Heads:
    """Heads by dataset. `without` has datasets with commits but no head, because they are being rewritten; `losses`
    what the store has lost (rule 8.19, losses); `rewritten` the unix second of each dataset's last rewrite."""

    heads: Mapping[str, Head] = field(default_factory=dict)
    without: frozenset[str] = frozenset()
    origins: frozenset[Origin] = frozenset()
    losses: Mapping[str, Sequence[Loss]] = field(default_factory=dict)
    rewritten: Mapping[str, int] = field(default_factory=dict, compare=False)

    def has(self, dataset: str) -> bool:
        """Whether the dataset has a commit."""
        return dataset in self.heads or dataset in self.without

    def head(self, dataset: str) -> Head:
        """The dataset's head. Raises NoSnapshot before its first commit, Superseded while it is being rewritten and has
        no previous head."""
        if dataset in self.heads:
            return self.heads[dataset]
        if dataset in self.without:
            raise Superseded(f"{dataset} is being rewritten.")
        raise NoSnapshot(dataset)


@dataclass(frozen=True, slots=True)
class Look:
    """The result of a look: the ledger, and why the schema is not current (empty if it is)."""

    ledger: Ledger
    outdated: str

    @property
    def schema_current(self) -> bool:
        return not self.outdated


class HeadWatcher:
    """Heads of all datasets, at most about two seconds old; while the store is away, up to five minutes. Pings open and
    close the query slots (rule 8.9, query slots). The first use starts the thread, so that every worker has its own.
    Without `interval` there is no thread, and the caller calls `look`."""

    def __init__(
        self,
        store: Store,
        interval: float | None = _LOOK_INTERVAL,
        clock: Callable[[], float] = time.monotonic,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self.clock = clock
        self._store = store
        self.facts = Facts()
        """Facts for operators beside the ledger, from the last reading."""
        self._interval = interval
        self._pause = pause
        self._changed = threading.Condition()
        self._hurry = threading.Event()
        self._thread: threading.Thread | None = None
        self._facts_read_at = float("-inf")
        self._readings = 0
        self._newest: Heads | None = None
        self._looked_at = float("-inf")
        self._looks = 0
        self._error: AnalyticsError | None = None
        self._last_look: Look | AnalyticsError | None = None
        self._last_success: Look | None = None
        self._checked_at = float("-inf")
        self._other_shards = ""

    def shown(self) -> Heads:
        """The heads for readers: the same object until a head changes.

        Raises StoreUnavailable if they are too old, NotReady if the cluster has other shards than the store.
        """
        newest = self._newest or self._first()
        if self._other_shards:
            raise NotReady(f"Not ready: {self._other_shards}.")
        if self._is_outdated:
            raise StoreUnavailable("The ledger could not be read for too long.")
        return newest

    @property
    def _is_outdated(self) -> bool:
        return self.clock() - self._looked_at > _LONGEST_OUTAGE

    @property
    def remembered(self) -> Look | None:
        """The last successful look; None if it is so old that readers are shown nothing."""
        return None if self._is_outdated else self._last_success

    def intervals(self, configured: Mapping[str, int]) -> Mapping[str, int]:
        """Seconds between snapshots of each scheduled dataset, as schedulers recorded them (rule 1.3, readiness).

        `configured` are the intervals of this host's settings, for datasets without a recorded interval; empty if no
        jobs run. Does not query the store.
        """
        return {dataset: self.facts.intervals.get(dataset, interval) for dataset, interval in configured.items()}

    def last_look(self) -> Look:
        """The result of the last look; raises its error. Waits briefly for the first look, but not for the store."""
        if self._last_look is None:
            self._look_first(_FIRST_SECONDS_OF_PROBES)
        # Read once: another thread may be looking.
        look = self._last_look
        if isinstance(look, Look):
            return look
        raise look or StoreUnavailable("The ledger has not been read yet.")

    def wait(self) -> None:
        """Return after another look at the ledger, or after a moment."""
        if self._interval is None:
            self._pause(_SHORT_INTERVAL)
            self.look()
            return
        with self._changed:
            looks = self._looks
            self._hurry.set()
            self._changed.wait_for(lambda: self._looks > looks, timeout=2 * _SHORT_INTERVAL)

    def look(self) -> None:
        """Look at the ledger now, and show changed heads. Called by one thread at a time."""
        begun = self.clock()
        error: AnalyticsError | None = None
        ledger = Ledger({})
        newest = self._newest
        try:
            self._store.probe(_PROBE_SECONDS)
            with deadline(_LOOK_SECONDS):
                ledger = self._read(begun)
            newest = self._shown(ledger, newest or Heads())
        except AnalyticsError as caught:
            error = caught
            if not isinstance(caught, Busy):
                self._last_look = caught
        with self._changed:
            if error is None:
                # A slow answer is as old as its query.
                self._newest, self._looked_at = newest, begun
            if not isinstance(error, Busy):
                self._log_change(error)
                self._error = error
            self._looks += 1
            self._changed.notify_all()
        is_current = self._last_success is not None and self._last_success.schema_current
        if error is None and is_current and begun >= self._facts_read_at + _FACT_INTERVAL:
            self._facts_read_at = begun
            reading = threading.Thread(target=self._read_facts, args=(ledger.heads,), name="facts", daemon=True)
            reading.start()
            if self._interval is None:
                reading.join()

    def _read_facts(self, heads: Mapping[str, Head]) -> None:
        """Read the facts. If that fails, the previous facts stay, and heads are shown as usual."""
        known = self.facts if self._readings % _ALL_FACTS else None
        try:
            with deadline(_FACT_SECONDS):
                self.facts = read_facts(self._store, heads, known)
                self._readings += 1
        except Busy:
            log.debug("Reading facts for operators took too long.")
        except AnalyticsError as error:
            self.facts = replace(self.facts, error=str(error))

    def _read(self, now: float) -> Ledger:
        ledger = hide_future_snapshots(self._store, read_ledger(self._store))
        self._last_look = self._last_success = Look(ledger, self._schema_obstacle(now))
        return ledger

    def _schema_obstacle(self, now: float) -> str:
        """Why the schema is not current. A current schema is checked again after a while, since it seldom changes.
        Other shards remain an obstacle, because memory may hold rows from them."""
        if self._other_shards:
            return self._other_shards
        was_current = isinstance(self._last_look, Look) and self._last_look.schema_current
        interval = _SHARDS_INTERVAL if self._store.layout.is_split else _CHECK_INTERVAL
        if was_current and now < self._checked_at + interval:
            return ""
        self._checked_at = now
        try:
            if pending_migrations(self._store):
                return NOT_CURRENT
        except OtherShards as error:
            log.error("%s", error)
            self._other_shards = _OTHER_SHARDS.format(self._store.layout.cluster)
            return self._other_shards
        except SchemaError as error:
            if was_current:
                log.error("%s", error)
            return NOT_CURRENT
        return ""

    def _shown(self, ledger: Ledger, before: Heads) -> Heads:
        """The heads for readers after a look; `before` if nothing has changed."""
        kept = {dataset: before.heads[dataset] for dataset in ledger.open if dataset in before.heads}
        heads = {dataset: head for dataset, head in ledger.heads.items() if dataset not in ledger.open} | kept
        without = frozenset(ledger.heads.keys() - heads.keys())
        shown = Heads(heads, without, ledger.origins, ledger.losses, ledger.rewritten)
        return before if shown == before else shown

    def _first(self) -> Heads:
        """The heads of the first look that succeeds. Looks that take too long are repeated; after one that has failed,
        only the next is waited for."""
        if self._error is not None and self._interval is not None:
            self.wait()
        else:
            self._look_first(_FIRST_SECONDS)
        if self._newest is None:
            raise self._error or Busy
        return self._newest

    def _look_first(self, seconds: float) -> None:
        """Start the thread, and wait at most this many seconds for a look that succeeds or fails."""
        if self._interval is None:
            self.look()
            return
        with self._changed:
            if self._thread is None:
                self._thread = threading.Thread(target=self._watch, args=(self._interval,), name="heads", daemon=True)
                self._thread.start()
            self._changed.wait_for(lambda: self._newest is not None or self._error is not None, timeout=seconds)

    def _watch(self, interval: float) -> None:
        is_enough = False
        while True:
            begun = self.clock()
            try:
                # After a look, a ping suffices once.
                is_enough = not is_enough and self._looks > 0 and self._error is None and self._answers()
                if not is_enough:
                    self.look()
            except ANY_FAILURE:
                log.exception("A look at the ledger failed unexpectedly")
            if self._hurry.wait(max(begun + interval - self.clock(), 0)):
                self._hurry.clear()
                is_enough = True
                self._pause(_SHORT_INTERVAL)

    def _answers(self) -> bool:
        """Whether ClickHouse answers a ping. If not, the next look reports why."""
        try:
            self._store.probe(_PROBE_SECONDS)
        except AnalyticsError:
            return False
        return True

    def _log_change(self, error: AnalyticsError | None) -> None:
        """Log when the ledger becomes unreadable, and when it is readable again."""
        if error is not None and self._error is None:
            log.warning("The ledger cannot be read: %s", error)
        elif error is None and self._error is not None:
            log.info("The ledger can be read again.")
