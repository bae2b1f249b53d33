"""The newest heads as readers know them, and reads that a rewriting of history cannot tear apart."""

import logging
import threading
import time
from collections.abc import Callable, Collection, Mapping
from typing import TypeVar

from analytics_service.errors import NoSnapshot, StoreUnavailable, Superseded
from analytics_service.store.connection import Store
from analytics_service.store.ledger import Head, read_heads
from analytics_service.store.publication import NOTICE

log = logging.getLogger(__name__)

# From this age on knowledge is renewed, by one thread.
_MAX_AGE = 0.75
# Older knowledge than this is only good while the store is away: what was written a second ago, every caller sees.
_STALE = 1.0
_MAX_AGE_WITHOUT_STORE = 300.0
# A writer announces NOTICE seconds ahead that it will rewrite history. More than _STALE, so one look mostly does.
_TRUSTED = NOTICE - 0.1
_PATIENCE = 10.0
_POLL = 0.1
_ATTEMPTS = 3
_T = TypeVar("_T")
Known = Mapping[str, Head]


class Heads:
    """Heads of all families: read from the store about once a second, and never older than that.

    While the store is away the last heads hold on for five minutes, so that what is rendered can still be served.
    """

    def __init__(
        self,
        store: Store,
        clock: Callable[[], float] = time.monotonic,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self._store = store
        self._clock = clock
        self._pause = pause
        self._lock = threading.Lock()
        # The heads, and when reading them began.
        self._known: tuple[Known, float] = ({}, float("-inf"))
        self._tried_at = float("-inf")
        self._away = False

    def get(self, family: str) -> Head:
        """The family's head; NoSnapshot before its first completed run."""
        return self.of(self.all(), family)

    def all(self) -> Known:
        """The heads of all families that have one. StoreUnavailable when nothing recent enough is known."""
        return self._newest()[0]

    def steadily(self, families: Collection[str], read: Callable[[Known], _T]) -> _T:
        """What `read` answers, given the newest heads, when it reads the families' data from the store.

        None of what it reads is changed behind these heads while it reads: it waits for a run that rewrites history,
        and reads again where one may have begun. StoreUnavailable when that does not end in some seconds.
        """
        for _ in range(_ATTEMPTS):
            heads, looked_at = self._quiet(families)
            answer = read(heads)
            if self._clock() - looked_at < _TRUSTED:
                return answer
            # Reading took so long that a run may have announced itself and begun in the meantime.
            now, _looked_at = self._read()
            if all(now.get(family) == heads.get(family) for family in families) and not _rewriting(now, families):
                return answer
        raise StoreUnavailable("History changes faster than it can be read.")

    def steadily_at(self, head: Head, read: Callable[[], _T]) -> _T:
        """As `steadily`, for what belongs to one head. Superseded when that is not the newest."""

        def read_at(heads: Known) -> _T:
            if heads.get(head.family) != head:
                raise Superseded(f"{head.family} has a newer state.")
            return read()

        return self.steadily([head.family], read_at)

    def _quiet(self, families: Collection[str]) -> tuple[Known, float]:
        deadline = self._clock() + _PATIENCE
        known = self._newest()
        while _rewriting(known[0], families):
            if self._clock() > deadline:
                raise StoreUnavailable("History is being rewritten.")
            self._pause(_POLL)
            # Of many that wait one looks for all.
            known = self._read() if self._clock() - self._known[1] > _POLL / 2 else self._known
        return known

    def _newest(self) -> tuple[Known, float]:
        """One thread reads while others go on with what is known, if that is not stale."""
        now = self._clock()
        if now - self._tried_at >= _MAX_AGE:
            waits = now - self._known[1] >= (_MAX_AGE_WITHOUT_STORE if self._away else _STALE)
            if self._lock.acquire(blocking=waits):
                try:
                    self._refresh(now)
                finally:
                    self._lock.release()
        if self._clock() - self._known[1] >= _MAX_AGE_WITHOUT_STORE:
            raise StoreUnavailable("The ledger could not be read for too long.")
        return self._known

    def _refresh(self, asked_at: float) -> None:
        # Another thread may have read while this one waited.
        if asked_at - self._tried_at < _MAX_AGE:
            return
        # What a slow store answers is as old as the question; a failure counts from its end.
        tried_at = self._clock()
        try:
            self._read()
            self._away = False
        except StoreUnavailable as error:
            self._away = True
            tried_at = self._clock()
            log.warning("The ledger cannot be read: %s", error)
        finally:
            self._tried_at = tried_at

    def _read(self) -> tuple[Known, float]:
        begun = self._clock()
        known = read_heads(self._store), begun
        # Of two threads that read at once the later one's heads stay.
        if begun >= self._known[1]:
            self._known = known
        return known

    @staticmethod
    def of(heads: Known, family: str) -> Head:
        """The family's among heads; NoSnapshot when it is not there."""
        if family not in heads:
            raise NoSnapshot(f"No snapshot of {family} has been completed yet; the first one may be on its way.")
        return heads[family]


def _rewriting(heads: Known, families: Collection[str]) -> bool:
    return any(heads[family].rewriting for family in families if family in heads)
