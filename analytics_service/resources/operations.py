"""/operations: how every part of the service is, for operators and for their page (rule 1.6)."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime

from analytics_service.config.settings import Settings
from analytics_service.errors import AnalyticsError, StoreFailure
from analytics_service.present.operations import OPERATIONS
from analytics_service.resources.health import Operational
from analytics_service.state.health import Monitor
from analytics_service.state.latest import Latest
from analytics_service.state.operations import read_store
from analytics_service.state.report import FamilyReport, HttpPart, Report, WorkerReport
from analytics_service.store.connection import Store
from analytics_service.store.server import address_of

# Seconds that a request waits for the store, and within which it is asked once, however many requests there are.
_PATIENCE = 2.0
_HOLDS = 4.0
# On a busy machine, data from the store that is younger than this, in seconds, is no sign of a fault; the page asks
# every ten seconds.
_YOUNG = 30.0


class Operations(Operational):
    """The state of every part of the service. While ClickHouse does not answer, it says so, with the last data."""

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
        self._read = Latest(self._read_store, _PATIENCE, _HOLDS)

    def record(self) -> Report:
        """The report of this moment, never an error."""
        told = self._read.get()
        found = told.value or self._unread()
        now = self._clock()
        ready = self._monitor.check().healthy
        report = replace(
            found,
            at=now,
            http=HttpPart(self._settings.bind, alive=True, ready=ready, expected=True),
            workers=self._workers(),
            families=[_aged(one, now) for one in found.families],
        )
        if told.error is not None:
            return replace(report, alive=False, faults=[self._in_words(told.error)])
        if told.late and (slow := _slowness(report)):
            return replace(report, alive=False, faults=[slow])
        return report

    def _unread(self) -> Report:
        return Report(self._clock(), self._settings.clickhouse_database)

    def _read_store(self) -> Report:
        found = self._unread()
        found.url = address_of(self._settings)
        read_store(found, self._store, self._monitor)
        return found

    def _in_words(self, error: AnalyticsError) -> str:
        """What is wrong, without details meant for logs and without paths of this machine."""
        if type(error) is StoreFailure:
            return "ClickHouse refuses a query of the service; its log says which."
        return str(error).replace(str(self._settings.data_dir.absolute()), "the data folder")


def _slowness(report: Report) -> str | None:
    """The fault to report when the store is slow; None while its last data is recent enough."""
    if report.read_at is None:
        return f"ClickHouse has not answered within {_PATIENCE:g} s."
    old = (report.at - report.read_at).total_seconds()
    return None if old < _YOUNG else f"ClickHouse does not answer. Its data here is {old:.0f} s old."


def _aged(family: FamilyReport, now: datetime) -> FamilyReport:
    """The family with the age that its newest snapshot has now."""
    if family.newest is None:
        return family
    return replace(family, age_seconds=int((now - family.newest).total_seconds()))
