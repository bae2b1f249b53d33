"""The snapshot ledger: which runs are complete, and so what readers may see."""

import logging
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

import polars as pl

from analytics_service.errors import NoSnapshot, StoreUnavailable
from analytics_service.store.connection import Store

log = logging.getLogger(__name__)

_MAX_AGE = 1.0
_MAX_AGE_WITHOUT_STORE = 300.0
_SCHEMA = {
    "family": pl.String,
    "at": pl.UInt32,
    "kind": pl.String,
    "first_observed_at": pl.UInt32,
    "last_observed_at": pl.UInt32,
    "rows": pl.UInt64,
    "source": pl.String,
    "version": pl.UInt64,
}


@dataclass(frozen=True, slots=True)
class Run:
    """A completed run of a job, a backfill or an import. Instants are unix seconds."""

    family: str
    at: int
    kind: str
    first_observed_at: int
    last_observed_at: int
    rows: int
    source: str
    version: int


@dataclass(frozen=True, slots=True)
class Head:
    """The newest state of a family that readers may see. Instants are unix seconds.

    `version` grows with every completed run, so equal heads mean equal data.
    """

    family: str
    at: int
    last_observed_at: int
    version: int

    @property
    def instant(self) -> datetime:
        """The newest snapshot's instant, aware."""
        return datetime.fromtimestamp(self.at, UTC)


def new_version() -> int:
    """Version of a run that begins to write now: unix milliseconds, which fit the 42 bits that ranks keep for it."""
    return time.time_ns() // 1_000_000


def complete(store: Store, runs: list[Run]) -> None:
    """Make the runs' data visible. Called last, when all their rows are written."""
    columns = {name: [getattr(run, name) for run in runs] for name in _SCHEMA}
    store.insert("snapshot", pl.DataFrame(columns, schema=_SCHEMA))


def completed(store: Store, family: str, start: int, end: int) -> set[int]:
    """Instants in [start, end] whose snapshot a job or a backfill has completed."""
    return set(store.frame("snapshots_between", family=family, start=start, end=end)["at"].to_list())


def completed_before(store: Store, family: str, before: int) -> int | None:
    """The last instant before another whose snapshot a job or a backfill has completed, if there is one."""
    rows = store.frame("snapshot_before", family=family, before=before)
    return int(rows["at"][0]) if rows.height else None


def read_heads(store: Store) -> dict[str, Head]:
    """The newest state of each family, by family."""
    return {row["family"]: Head(**row) for row in store.frame("snapshot_heads").iter_rows(named=True)}


class Heads:
    """Heads of all families as readers see them: read from the store at most once a second.

    While the store is away the last heads hold on for five minutes, so that what is rendered can still be served.
    """

    def __init__(self, store: Store, clock: Callable[[], float] = time.monotonic) -> None:
        self._store = store
        self._clock = clock
        self._lock = threading.Lock()
        self._heads: dict[str, Head] = {}
        self._read_at = self._tried_at = float("-inf")

    def get(self, family: str) -> Head:
        """The family's head; NoSnapshot before its first completed run."""
        return self.of(self.all(), family)

    def all(self) -> Mapping[str, Head]:
        """The heads of all families that have one. StoreUnavailable when nothing recent enough is known.

        One thread reads while others go on with what is known; only before anything is known do they wait.
        """
        if self._clock() - self._tried_at >= _MAX_AGE and self._lock.acquire(blocking=self._unknown):
            try:
                self._refresh()
            finally:
                self._lock.release()
        if self._unknown:
            raise StoreUnavailable("The ledger could not be read for too long.")
        return self._heads

    @property
    def _unknown(self) -> bool:
        return self._clock() - self._read_at >= _MAX_AGE_WITHOUT_STORE

    def _refresh(self) -> None:
        if self._clock() - self._tried_at < _MAX_AGE:
            return
        try:
            self._heads = read_heads(self._store)
            self._read_at = self._clock()
        except StoreUnavailable as error:
            log.warning("The ledger cannot be read: %s", error)
        finally:
            self._tried_at = self._clock()

    @staticmethod
    def of(heads: Mapping[str, Head], family: str) -> Head:
        """The family's among heads; NoSnapshot when it is not there."""
        if family not in heads:
            raise NoSnapshot(f"No snapshot of {family} has been completed yet; the first one may be on its way.")
        return heads[family]
