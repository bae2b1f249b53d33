"""Finds out how the service is, for `status`."""

import http.client
import shlex
from collections.abc import Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial

from analytics_service.clickhouse.connection import Store
from analytics_service.clickhouse.running import address_of
from analytics_service.concurrency import within
from analytics_service.config.settings import Settings
from analytics_service.embedded.clickhouse import attached
from analytics_service.embedded.folder import DataFolder, Holder
from analytics_service.errors import AnalyticsError
from analytics_service.server.address import connected
from analytics_service.server.welcome import sql_addresses
from analytics_service.state.heads import Heads
from analytics_service.state.health import Monitor, Status
from jobs.registry import intervals

# Seconds to wait for ClickHouse's first answer, for all its answers, and for each answer of the HTTP service.
_FIRST_ANSWER = 5.0
_ALL_ANSWERS = 20.0
_HTTP_ANSWER = 1.0
_OK = http.client.OK


@dataclass(frozen=True, slots=True)
class Report:
    """The status, and where ClickHouse, SQL and the HTTP service are."""

    status: Status
    clickhouse: str = ""
    sql: Sequence[str] = ()
    http: str = ""


def collect_report(settings: Settings, now: datetime, bind: str | None = None) -> Report:
    """The state of every part. `bind` is the HTTP service's address, if the operator named it."""
    reached = attached(_with_source_of_service(settings))
    if reached is None:
        where = f"ClickHouse is not running in {settings.data_dir}"
        error = f"{where}; start it with `analytics-service up`, or set ANALYTICS_CLICKHOUSE_URL"
        report = Report(Status(now, error=error, answers=False))
    else:
        report = Report(_status(reached, now), address_of(reached), _sql_addresses(reached))
    address, expected = expected_address(settings, bind)
    alive = _answers(address, "/healthz") == _OK
    ready = alive and _answers(address, "/readyz") == _OK
    state = "ready" if ready else "not ready" if alive else "does not answer"
    unserved = [] if ready or not expected else [f"the HTTP service {'is ' if alive else ''}{state} on {address}"]
    return replace(report, status=replace(report.status, unserved=unserved), http=f"{state} on {address}")


def _status(settings: Settings, now: datetime) -> Status:
    """The status by a look of this process. ClickHouse may hang, so it has limited time."""
    with closing(Store(settings)) as store, within(_ALL_ANSWERS, gate=None):
        # A look has little time, in which there is none to connect. It tells why ClickHouse does not answer.
        with suppress(AnalyticsError), within(_FIRST_ANSWER, gate=None):
            store.server_version()
        heads = Heads(store, interval=None)
        current_intervals = partial(heads.intervals, intervals(settings))
        return Monitor(heads, current_intervals, lambda: now, is_configured=settings.source is not None).check()


def _sql_addresses(settings: Settings) -> Sequence[str]:
    with suppress(AnalyticsError):
        return sql_addresses(settings)
    return ()


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


def _answers(bind: str, path: str) -> int:
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
