"""/operations: the state of every part of the service, for operators and their page (rule 1.6)."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime

from cachetools import TTLCache

from analytics_service.config.settings import Settings
from analytics_service.errors import AnalyticsError, Busy, StoreFailure
from analytics_service.market.share import Share
from analytics_service.present.operations import OPERATIONS
from analytics_service.resources.health import Operational
from analytics_service.state.health import Monitor
from analytics_service.state.operations import read_store
from analytics_service.state.report import FamilyReport, HttpPart, Report, WorkerReport
from analytics_service.store.connection import Store
from analytics_service.store.server import address_of

# Seconds for which the store's answer is cached, however many requests there are.
_CACHE_SECONDS = 4.0
# Seconds. While data from the store is younger, a busy store is no fault. The page asks every ten seconds.
_YOUNG = 30.0


class Operations(Operational):
    """The state of every part of the service. While ClickHouse does not answer, it says so and shows the last data."""

    shape = OPERATIONS

    def __init__(
        self,
        settings: Settings,
        store: Store,
        monitor: Monitor,
        workers: Callable[[], Sequence[WorkerReport]],
        clock: Callable[[], datetime],
    ) -> None:
        self._settings = settings
        self._store = store
        self._monitor = monitor
        self._workers = workers
        self._clock = clock
        self._reading: Share[Report] = Share(TTLCache(1, _CACHE_SECONDS))
        self._stored = Report(clock(), settings.clickhouse_database)

    def record(self) -> Report:
        """The report of this moment, never an error."""
        error: AnalyticsError | None = None
        try:
            self._stored = self._reading.get(None, self._read_store)
        except AnalyticsError as caught:
            error = caught
        now, stored = self._clock(), self._stored
        ready = not self._monitor.obstacles()
        report = replace(
            stored,
            at=now,
            http=HttpPart(self._settings.bind, alive=True, ready=ready, expected=True),
            workers=self._workers(),
            families=[_with_age(family, now) for family in stored.families],
        )
        if error is None or (isinstance(error, Busy) and _is_young(report)):
            return report
        return replace(report, alive=False, faults=[self._message(error)])

    def _read_store(self) -> Report:
        report = Report(self._clock(), self._settings.clickhouse_database, url=address_of(self._settings))
        read_store(report, self._store, self._monitor)
        return report

    def _message(self, error: AnalyticsError) -> str:
        """The error in words, without details meant for logs and without paths of this machine."""
        if type(error) is StoreFailure:
            return "ClickHouse refuses a query of the service; its log says which."
        return str(error).replace(str(self._settings.data_dir.absolute()), "the data folder")


def _is_young(report: Report) -> bool:
    """Whether the store's data in a report is recent."""
    return report.read_at is not None and (report.at - report.read_at).total_seconds() < _YOUNG


def _with_age(family: FamilyReport, now: datetime) -> FamilyReport:
    """The family with the present age of its newest snapshot."""
    if family.newest is None:
        return family
    return replace(family, age_seconds=int((now - family.newest).total_seconds()))
