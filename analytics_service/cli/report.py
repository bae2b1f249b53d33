"""Finds out how the service is, for `status`."""

import http.client
import shlex
import threading
import time
from contextlib import closing
from dataclasses import replace
from datetime import datetime
from functools import partial
from queue import Empty, SimpleQueue

from analytics_service.config.settings import Settings
from analytics_service.embedded.clickhouse import attached
from analytics_service.embedded.folder import DataFolder, Holder
from analytics_service.errors import AnalyticsError
from analytics_service.server.address import connected
from analytics_service.server.welcome import sql_addresses
from analytics_service.state.heads import Heads
from analytics_service.state.health import Http, Monitor, Status
from analytics_service.state.operations import read_store
from analytics_service.store.connection import Store
from analytics_service.store.server import address_of
from jobs.registry import intervals

# Seconds to wait for ClickHouse's first answer, for all its other answers, and for each answer of the HTTP service.
_FIRST_ANSWER = 5.0
_OTHER_ANSWERS = 20.0
_HTTP_ANSWER = 1.0


def collect_status(settings: Settings, now: datetime, bind: str | None = None) -> Status:
    """The state of every part except the workers. `bind` is the HTTP service's address, if the operator named it."""
    status = Status(now, database=settings.clickhouse_database, http=_http(settings, bind), reported=())
    reached = attached(_with_source_of_service(settings))
    if reached is None:
        fault = (
            f"ClickHouse is not running in {settings.data_dir}; start it with `analytics-service up`, or set "
            "ANALYTICS_CLICKHOUSE_URL"
        )
        status = replace(status, reported=[fault])
    else:
        status = _with_store(replace(status, url=address_of(reached)), reached)
    if status.http and status.http.expected and not status.http.ready:
        state = "is not ready" if status.http.alive else "does not answer"
        fault = f"the HTTP service {state} on {status.http.bind}"
        status = replace(status, reported=[*status.faults, fault])
    return status


def _with_store(status: Status, settings: Settings) -> Status:
    """The status with what ClickHouse tells in time, and why that is not all."""
    # A thread reads ClickHouse, because that may hang; then it is abandoned.
    parts: SimpleQueue[Status | BaseException | None] = SimpleQueue()
    threading.Thread(target=_read, args=(status, settings, parts), daemon=True).start()
    allowed, deadline = _FIRST_ANSWER, time.monotonic() + _FIRST_ANSWER
    try:
        status = replace(status, sql=sql_addresses(settings))
        while (part := parts.get(timeout=max(deadline - time.monotonic(), 0))) is not None:
            if isinstance(part, BaseException):
                raise part
            if allowed == _FIRST_ANSWER:
                allowed, deadline = _FIRST_ANSWER + _OTHER_ANSWERS, time.monotonic() + _OTHER_ANSWERS
            status = replace(part, sql=status.sql)
    except Empty:
        fault = f"ClickHouse hangs: it has not answered within {allowed:.0f} s."
    except AnalyticsError as error:
        fault = str(error)
    else:
        return status
    return replace(status, reported=[*status.faults, fault])


def _read(status: Status, settings: Settings, parts: "SimpleQueue[Status | BaseException | None]") -> None:
    """Queue the statuses of reading ClickHouse, and at the end None or the error."""
    try:
        with closing(Store(settings)) as store:
            heads = Heads(store, interval=None)
            current_intervals = partial(heads.intervals, intervals(settings))
            is_configured = settings.source is not None
            monitor = Monitor(heads, current_intervals, lambda: status.at, is_configured=is_configured)
            for part in read_store(status, store, monitor):
                parts.put(part)
        parts.put(None)
    except BaseException as error:
        # The waiting thread raises it again.
        parts.put(error)


def _http(settings: Settings, bind: str | None) -> Http:
    address, expected = expected_address(settings, bind)
    alive = _status(address, "/healthz") == http.client.OK
    return Http(address, alive, alive and _status(address, "/readyz") == http.client.OK, expected)


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
