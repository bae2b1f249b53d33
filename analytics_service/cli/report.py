"""Collects the report of `status`: the parts of the service, its data, and its faults."""

import http.client
import shlex
import threading
from contextlib import closing
from dataclasses import replace
from datetime import datetime
from functools import partial

from analytics_service.config.settings import Settings
from analytics_service.embedded.clickhouse import attached
from analytics_service.embedded.folder import DataFolder, Holder
from analytics_service.errors import AnalyticsError, StoreUnavailable
from analytics_service.run.address import connected
from analytics_service.run.sql_addresses import sql_addresses
from analytics_service.state.heads import Heads
from analytics_service.state.health import Monitor
from analytics_service.state.operations import read_store
from analytics_service.state.report import HttpPart, Report
from analytics_service.store.connection import Store
from analytics_service.store.server import address_of
from jobs.registry import intervals

# Seconds to wait for ClickHouse's first answer, for all its other answers, and for each answer of the HTTP service.
_FIRST_ANSWER = 5.0
_OTHER_ANSWERS = 20.0
_HTTP_ANSWER = 1.0


def collect_report(settings: Settings, now: datetime, bind: str | None = None) -> Report:
    """The state of every part except the workers. `bind` is the HTTP service's address, if the operator named it."""
    report = Report(now, settings.clickhouse_database)
    report.http = _http(settings, bind)
    reached = attached(_with_source_of_service(settings))
    if reached is None:
        report.faults.append(
            f"ClickHouse is not running in {settings.data_dir}; start it with `analytics-service up`, or set "
            "ANALYTICS_CLICKHOUSE_URL"
        )
    else:
        report.url = address_of(reached)
        try:
            report.sql = sql_addresses(reached)
            _query_in_time(report, reached)
        except AnalyticsError as error:
            report.faults.append(str(error))
    if report.http.expected and not report.http.ready:
        state = "is not ready" if report.http.alive else "does not answer"
        report.faults.append(f"the HTTP service {state} on {report.http.bind}")
    return report


def _query(report: Report, settings: Settings) -> None:
    """Add the data of ClickHouse. The connection is closed here, because the caller may have stopped waiting."""
    with closing(Store(settings)) as store:
        heads = Heads(store, interval=None)
        current_intervals = partial(heads.intervals, intervals(settings))
        is_configured = settings.source is not None
        read_store(report, store, Monitor(heads, current_intervals, lambda: report.at, is_configured=is_configured))


def _query_in_time(report: Report, settings: Settings) -> None:
    """Query ClickHouse in a separate thread. StoreUnavailable if that takes too long; the thread is then abandoned."""
    errors: list[BaseException] = []

    def query() -> None:
        try:
            _query(report, settings)
        except BaseException as error:
            # The waiting thread raises it again.
            errors.append(error)

    thread = threading.Thread(target=query, daemon=True)
    thread.start()
    thread.join(_FIRST_ANSWER)
    if thread.is_alive() and report.alive:
        thread.join(_OTHER_ANSWERS)
    if thread.is_alive():
        seconds = _FIRST_ANSWER + _OTHER_ANSWERS if report.alive else _FIRST_ANSWER
        raise StoreUnavailable(f"ClickHouse hangs: it has not answered within {seconds:.0f} s.")
    if errors:
        raise errors[0]


def _http(settings: Settings, bind: str | None) -> HttpPart:
    address, expected = expected_address(settings, bind)
    alive = _status(address, "/healthz") == http.client.OK
    return HttpPart(address, alive, alive and _status(address, "/readyz") == http.client.OK, expected)


def expected_address(settings: Settings, bind: str | None) -> tuple[str, bool]:
    """The address of the HTTP service, and whether it should run there: if the operator named the address, or if a
    command that holds the data folder serves there."""
    if bind is not None:
        return bind, True
    holder = _service(settings)
    # The lock file of an earlier version does not say where it serves.
    return (holder.bind or settings.bind, True) if holder else (settings.bind, False)


def _with_source_of_service(settings: Settings) -> Settings:
    """The settings with the source of the running service, unless they name a source. It decides whether snapshots are
    due, and this report must agree with the service's."""
    holder = _service(settings)
    return replace(settings, source=holder.source) if holder and settings.source is None else settings


def _service(settings: Settings) -> Holder | None:
    """The `up` or `serve` that holds the data folder."""
    folder = DataFolder(settings.data_dir)
    holder = folder.holder() if settings.clickhouse_url is None and folder.locked() else None
    return holder if holder and {"up", "serve"} & set(shlex.split(holder.command)[1:2]) else None


def _status(bind: str, path: str) -> int:
    """The status of the HTTP service's answer; 0 without an answer."""
    connection = http.client.HTTPConnection("localhost")
    try:
        connection.sock = connected(bind, _HTTP_ANSWER)
        connection.request("GET", path)
        return connection.getresponse().status
    except (OSError, http.client.HTTPException):
        return 0
    finally:
        connection.close()
