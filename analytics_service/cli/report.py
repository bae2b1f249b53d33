"""Collects the report of `status`: the parts of the service, its data, and what is wrong."""

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
from analytics_service.run.address import local_address
from analytics_service.state.heads import Heads
from analytics_service.state.health import Monitor
from analytics_service.state.operations import read_store
from analytics_service.state.report import HttpPart, Report
from analytics_service.store.connection import Store
from analytics_service.store.server import address_of
from jobs.registry import intervals

# Seconds to wait for ClickHouse's first answer, for all others, and for each of the HTTP service.
_FIRST_ANSWER = 5.0
_OTHER_ANSWERS = 20.0
_HTTP_ANSWER = 1.0


def report(settings: Settings, now: datetime, bind: str | None = None) -> Report:
    """The state of everything but the workers. `bind` is where the HTTP service should run, if the operator has said
    so."""
    found = Report(now, settings.clickhouse_database)
    found.http = _http(settings, bind)
    reached = attached(_as_told(settings))
    if reached is None:
        found.faults.append(
            f"ClickHouse is not running in {settings.data_dir}; start it with `analytics-service up`, or set "
            "ANALYTICS_CLICKHOUSE_URL"
        )
    else:
        found.url = address_of(reached)
        try:
            _ask_in_time(found, reached)
        except AnalyticsError as error:
            found.faults.append(str(error))
    if found.http.expected and not found.http.ready:
        state = "is not ready" if found.http.alive else "does not answer"
        found.faults.append(f"the HTTP service {state} on {found.http.bind}")
    return found


def _ask(found: Report, settings: Settings) -> None:
    """Add what ClickHouse reports. The connection is closed here, because the caller may have stopped waiting."""
    with closing(Store(settings)) as store:
        heads = Heads(store, every=None)
        every = partial(heads.intervals, intervals(settings))
        is_told = settings.source is not None
        read_store(found, store, Monitor(heads, every, lambda: found.at, is_told=is_told))


def _ask_in_time(found: Report, settings: Settings) -> None:
    """Query ClickHouse in a thread of its own. StoreUnavailable when that takes too long; the thread is then left."""
    errors: list[BaseException] = []

    def ask() -> None:
        try:
            _ask(found, settings)
        except BaseException as error:
            # Whatever it is, the thread that waits raises it again.
            errors.append(error)

    thread = threading.Thread(target=ask, daemon=True)
    thread.start()
    thread.join(_FIRST_ANSWER)
    if thread.is_alive() and found.alive:
        thread.join(_OTHER_ANSWERS)
    if thread.is_alive():
        seconds = _FIRST_ANSWER + _OTHER_ANSWERS if found.alive else _FIRST_ANSWER
        raise StoreUnavailable(f"ClickHouse hangs: it has not answered within {seconds:.0f} s.")
    if errors:
        raise errors[0]


def _http(settings: Settings, bind: str | None) -> HttpPart:
    address, expected = expected_address(settings, bind)
    alive = _status(address, "/healthz") == http.client.OK
    return HttpPart(address, alive, alive and _status(address, "/readyz") == http.client.OK, expected)


def expected_address(settings: Settings, bind: str | None) -> tuple[str, bool]:
    """Where to look for the HTTP service, and whether it should be there: where the operator has said so, or where the
    command that holds the data folder serves."""
    if bind is not None:
        return bind, True
    holder = _service(settings)
    # The lock file of an earlier version does not say where it serves.
    return (holder.bind or settings.bind, True) if holder else (settings.bind, False)


def _as_told(settings: Settings) -> Settings:
    """The settings with the source that the service was told to use, unless they name one: its own report says whether
    snapshots are due, and this one must not differ."""
    holder = _service(settings)
    return replace(settings, source=holder.source) if holder and settings.source is None else settings


def _service(settings: Settings) -> Holder | None:
    """The `up` or `serve` that holds the data folder."""
    folder = DataFolder(settings.data_dir)
    holder = folder.holder() if settings.clickhouse_url is None and folder.locked() else None
    return holder if holder and {"up", "serve"} & set(shlex.split(holder.command)[1:2]) else None


def _status(bind: str, path: str) -> int:
    """The status of the HTTP service's answer; 0 without one."""
    connection = http.client.HTTPConnection(*local_address(bind), timeout=_HTTP_ANSWER)
    try:
        connection.request("GET", path)
        return connection.getresponse().status
    except (OSError, http.client.HTTPException):
        return 0
    finally:
        connection.close()
