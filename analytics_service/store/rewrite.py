"""Rewrites of history that readers already see: staged apart, announced, put in place, completed (rules 8.1 to 8.6).

A run writes all of its rows into staging tables first, the rows of the ledger included. From its announcement on,
readers accept nothing that they read of the family until the rewrite has finished. The writer sends a heartbeat every
second. A writer that stays silent may be dead or only paused: whoever notices rolls the rewrite forward from what is
staged, which takes the same steps again. Tables absorb repeated rows, so it does no harm when the writer goes on.
"""

import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Protocol, TypeVar

import polars as pl

from analytics_service.errors import AnalyticsError, SchemaError, StoreUnavailable
from analytics_service.store.assets import ASSETS, SHOWN_WITH
from analytics_service.store.connection import Store
from analytics_service.store.ledger import LEDGER, Head, Run, ledger_frame, new_version, read_ledger

log = logging.getLogger(__name__)

_HEARTBEAT_SECONDS = 1.0
# No run takes this long, so what it left in staging is abandoned.
_ABANDONED_HOURS = 24
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


class Staging:
    """Tables like those that readers see, and fed by the same views, for the rows of one run.

    Putting them in place moves no data. Every method may be called again after a failure.
    """

    def __init__(self, store: Store, tables: Sequence[str], version: int) -> None:
        self.version = version
        self._store = store
        self._tables = [*tables, LEDGER]
        self._suffix = _suffix(version)

    def insert(self, table: str, rows: pl.DataFrame) -> None:
        """Write rows of a table into its staging table."""
        self._store.insert(table + self._suffix, rows)

    def create(self) -> None:
        """Make the staging tables, and those of rollups with the views that feed them."""
        views = {row["view"]: row["query"] for row in self._views()}
        for table in self._tables:
            self._like(table)
            if (query := views.get(_view(table))) is not None:
                self._like(_rollup(table))
                self._store.execute(
                    f"CREATE MATERIALIZED VIEW IF NOT EXISTS {_view(table)}{self._suffix} "
                    f"TO {_rollup(table)}{self._suffix} AS {self._from_staging(query, table)}"
                )

    def drop(self) -> None:
        """Remove them."""
        for table in self._tables:
            for name in (_view(table), table, _rollup(table)):
                self._store.execute(f"DROP TABLE IF EXISTS {name}{self._suffix} SYNC")

    def _like(self, table: str) -> None:
        self._store.execute(f"CREATE TABLE IF NOT EXISTS {table}{self._suffix} AS {table}")

    def _views(self) -> list[dict[str, str]]:
        return self._store.frame("rollups", views=[_view(table) for table in self._tables]).to_dicts()

    def _from_staging(self, query: str, table: str) -> str:
        """The view's query over the staging table; so the rule itself stands in the schema only."""
        before, found, after = query.partition(f"FROM {self._store.database}.{table} ")
        if not found:
            raise SchemaError(f"{_view(table)} was changed; `analytics-service migrate` restores it.")
        return f"{before}FROM {table}{self._suffix} {after}"


@contextmanager
def staging(store: Store, tables: Sequence[str], version: int, retry: Retry = once) -> Iterator[Staging]:
    """Staging tables for the duration of the block. They stay when a rewrite was announced and has not finished."""
    staged = Staging(store, tables, version)
    try:
        retry(lambda: recover(store))
        retry(lambda: drop_abandoned(store))
        retry(staged.create)
        yield staged
    finally:
        try:
            if not _is_open(store, version):
                staged.drop()
        except AnalyticsError as error:
            log.warning("Staging tables are left for a later run to drop: %s", error)


def publish(store: Store, family: str, staged: Staging, runs: Sequence[Run], retry: Retry = once) -> None:
    """Make everything that is staged visible at once, as completed runs.

    StoreUnavailable when ClickHouse stays away. An announced rewrite is then rolled forward by others, or by the next
    run.
    """
    retry(lambda: staged.insert(LEDGER, ledger_frame(runs)))
    _rewrite(store, family, staged.version, retry)


def recover(store: Store) -> None:
    """Roll forward the rewrites whose writers have gone silent."""
    for family, version in read_ledger(store).silent:
        roll_forward(store, family, version)


def roll_forward(store: Store, family: str, version: int) -> None:
    """Complete a rewrite from what is staged. Others may do so at the same time, its writer too."""
    log.warning("A rewrite of %s was interrupted; it is completed now.", family)
    _rewrite(store, family, version, once)
    tables = [name.removesuffix(_suffix(version)) for name in _staged(store, version)]
    for name in (*map(_view, tables), *tables):
        store.execute(f"DROP TABLE IF EXISTS {name}{_suffix(version)} SYNC")


@contextmanager
def announced(store: Store, family: str, version: int, retry: Retry = once) -> Iterator[None]:
    """Announce a rewrite, send heartbeats during the block, and finish it; after an error it stays open."""
    stop = threading.Event()

    def send_heartbeats() -> None:
        while not stop.wait(_HEARTBEAT_SECONDS):
            try:
                _tell(store, family, version, finished=0)
            except AnalyticsError as error:
                log.warning("A heartbeat was not sent: %s", error)

    retry(lambda: _tell(store, family, version, finished=0))
    heart = threading.Thread(target=send_heartbeats, name="heartbeat", daemon=True)
    heart.start()
    try:
        yield
        retry(lambda: _tell(store, family, version, finished=1))
    finally:
        stop.set()
        heart.join()


def _rewrite(store: Store, family: str, version: int, retry: Retry) -> None:
    with announced(store, family, version, retry):
        try:
            retry(lambda: _put_in_place(store, family, version))
        except StoreUnavailable:
            raise
        except AnalyticsError:
            # Tables are gone when somebody else has rolled the rewrite forward meanwhile.
            if _is_open(store, version):
                raise


def _put_in_place(store: Store, family: str, version: int) -> None:
    """Attach all staged rows, and write the ledger's last: its view must see them as an insert."""
    suffix = _suffix(version)
    names = _staged(store, version)
    for name in names:
        table = name.removesuffix(suffix)
        if table == ASSETS and family != SHOWN_WITH:
            # Definitions newer than any version of prices that a reader has seen change no answer that was given.
            store.execute(f"INSERT INTO {table} SELECT * REPLACE ({new_version()} AS version) FROM {name}")
        elif table != LEDGER:
            store.execute(f"ALTER TABLE {table} ATTACH PARTITION ALL FROM {name}")
    # Nothing is staged any more where everything is in place already.
    if names:
        store.execute(f"INSERT INTO {LEDGER} SELECT * FROM {LEDGER}{suffix} FINAL")


def _staged(store: Store, version: int) -> list[str]:
    names: list[str] = store.frame("staged_tables", suffix=_suffix(version))["name"].to_list()
    return names


def _is_open(store: Store, version: int) -> bool:
    announced, finished = store.frame("rewrite_state", version=version).row(0)
    return bool(announced and not finished)


def drop_abandoned(store: Store, hours: int = _ABANDONED_HOURS) -> None:
    """Drop the staging tables that runs left behind so many hours ago."""
    for name in store.frame("abandoned_staging", hours=hours)["name"]:
        store.execute(f"DROP TABLE IF EXISTS {name} SYNC")


def _tell(store: Store, family: str, version: int, finished: int) -> None:
    row = {"family": family, "version": version, "finished": finished}
    store.insert("publication", pl.DataFrame([row], schema=_SCHEMA))


def _suffix(version: int) -> str:
    return f"_staging_{version}"


def _rollup(table: str) -> str:
    return f"{table}_rollup"


def _view(table: str) -> str:
    return f"{table}_rollup_view"
