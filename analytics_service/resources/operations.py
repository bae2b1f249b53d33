"""/operations: the state of every part of the service, for operators and their page (rule 1.6)."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from math import inf

from cachetools import TTLCache

from analytics_service.config.settings import Settings
from analytics_service.errors import AnalyticsError, Busy, StoreFailure
from analytics_service.market.share import Share
from analytics_service.state.health import Http, Monitor, Status, Worker
from analytics_service.state.operations import read_store
from analytics_service.store.connection import Store
from analytics_service.store.server import address_of

# Seconds for which the store's answer is cached, however many requests there are.
_CACHE_SECONDS = 4.0
# Seconds. While data from the store is younger, a busy store is no fault. The page asks every ten seconds.
_YOUNG = 30.0


class Operations:
    """The state of every part of the service. While ClickHouse does not answer, it says so and shows the last data, but
    not which servers of its cluster answered."""

    def __init__(
        self,
        settings: Settings,
        store: Store,
        monitor: Monitor,
        workers: Callable[[], Sequence[Worker]],
        clock: Callable[[], datetime],
    ) -> None:
        self._settings = settings
        self._store = store
        self._monitor = monitor
        self._workers = workers
        self._clock = clock
        self._reading: Share[Status] = Share(TTLCache(1, _CACHE_SECONDS))
        self._stored = self._unread = Status(clock(), database=settings.clickhouse_database)

    def record(self) -> Status:
        """The status of this moment, never an error."""
        error: AnalyticsError | None = None
        try:
            self._stored = self._reading.get(None, self._read_store)
        except AnalyticsError as caught:
            error = caught
        now, stored = self._clock(), self._stored
        ready = not self._monitor.obstacles()
        status = replace(
            stored,
            at=now,
            http=Http(self._settings.bind, alive=True, ready=ready, expected=True),
            workers=self._workers(),
            families=[
                replace(family, age_seconds=int(_age(family.newest, now))) if family.newest else family
                for family in stored.families
            ],
            prices=[price.at(now) for price in stored.prices],
        )
        if error is None or (isinstance(error, Busy) and _age(stored.read_at, now) < _YOUNG):
            return status
        known = self._monitor.check()
        # A store that is busy answers pings.
        reachable = isinstance(error, Busy) and known.reachable
        replicas = known.replicas if reachable else ()
        return replace(status, reachable=reachable, replicas=replicas, reported=[self._message(error)])

    def _read_store(self) -> Status:
        status = replace(self._unread, at=self._clock(), url=address_of(self._settings))
        *_, status = read_store(status, self._store, self._monitor)
        return status

    def _message(self, error: AnalyticsError) -> str:
        """The error in words, without details meant for logs and without paths of this machine."""
        if type(error) is StoreFailure:
            return "ClickHouse refuses a query of the service; its log says which."
        return str(error).replace(str(self._settings.data_dir.absolute()), "the data folder")


def _age(at: datetime | None, now: datetime) -> float:
    return inf if at is None else (now - at).total_seconds()
