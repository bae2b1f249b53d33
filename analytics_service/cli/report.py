"""Collects and prints the status of the service."""

import http.client
import json
import shlex
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial

import click

from analytics_service.clickhouse.connection import Store
from analytics_service.clickhouse.running import address_of
from analytics_service.concurrency import deadline
from analytics_service.config.settings import Settings
from analytics_service.embedded.clickhouse import attach
from analytics_service.embedded.folder import DataFolder, FolderHolder
from analytics_service.errors import AnalyticsError
from analytics_service.market.instants import DAY, HOUR, MINUTE, format_instant
from analytics_service.present.shapes import Scope
from analytics_service.present.status import OPERATIONS
from analytics_service.server.address import connect_to
from analytics_service.server.up import sql_addresses
from analytics_service.state.health import Dataset, Monitor, Status
from analytics_service.state.watcher import HeadWatcher
from jobs.registry import intervals

# Seconds to wait for ClickHouse's first answer, for all its answers, and for each answer of the HTTP service.
_FIRST_ANSWER = 5.0
_ALL_ANSWERS = 20.0
_HTTP_ANSWER = 1.0
_OK = http.client.OK
_GIB = 2**30
_HEADINGS = ("dataset", "newest snapshot", "age", "gaps, 24 h", "last error")


@dataclass(frozen=True, slots=True)
class Report:
    """The status, with the addresses of ClickHouse, SQL and the HTTP service."""

    status: Status
    clickhouse: str = ""
    sql: Sequence[str] = ()
    http: str = ""


def collect_report(settings: Settings, now: datetime, bind: str | None = None) -> Report:
    """Check every part. `bind` is the HTTP service's address, if the operator named it."""
    service = _service(settings)
    if service and settings.source is None:
        # The source decides which snapshots are due.
        settings = replace(settings, source=service.source)
    reached = attach(settings)
    if reached is None:
        where = f"ClickHouse is not running in {settings.data_dir}"
        error = f"{where}; start it with `analytics-service up`, or set ANALYTICS_CLICKHOUSE_URL"
        report = Report(Status(now, error=error, answers=False))
    else:
        status = _status(reached, now)
        if status.facts.corrections:
            # A service that runs shows what was before the correction.
            status = replace(status, withheld=())
        report = Report(status, address_of(reached), _sql_addresses(reached))
    address = http_address(settings, bind)
    alive = _answers(address, "/healthz") == _OK
    state = "ready" if alive and _answers(address, "/readyz") == _OK else "not ready" if alive else "does not answer"
    unserved = []
    if state != "ready" and (bind or service):
        unserved = [f"the HTTP service {'is ' if alive else ''}{state} on {address}"]
    return replace(report, status=replace(report.status, unserved=unserved), http=f"{state} on {address}")


def _status(settings: Settings, now: datetime) -> Status:
    """Check the store within a deadline, because ClickHouse may hang."""
    with closing(Store(settings)) as store, deadline(_ALL_ANSWERS):
        # Connect first: the watcher's deadline is too short for that. The watcher also reports a failure.
        with suppress(AnalyticsError), deadline(_FIRST_ANSWER):
            store.server_version()
        heads = HeadWatcher(store, interval=None)
        current_intervals = partial(heads.intervals, intervals(settings))
        return Monitor(heads, current_intervals, lambda: now, is_configured=settings.source is not None).check()


def _sql_addresses(settings: Settings) -> Sequence[str]:
    with suppress(AnalyticsError):
        return sql_addresses(settings)
    return ()


def http_address(settings: Settings, bind: str | None) -> str:
    """The address of the HTTP service: as the operator named it, or where the holder of the data folder serves it."""
    service = _service(settings)
    return bind or (service.bind if service else "") or settings.bind


def _service(settings: Settings) -> FolderHolder | None:
    """The `up` or `serve` that holds the data folder."""
    folder = DataFolder(settings.data_dir)
    holder = folder.holder() if settings.clickhouse_url is None and folder.locked() else None
    return holder if holder and {"up", "serve"} & set(shlex.split(holder.command)[1:2]) else None


def _answers(bind: str, path: str) -> int:
    """The status code of the HTTP service's answer; 0 without an answer."""
    connection = http.client.HTTPConnection("localhost")
    try:
        connection.sock = connect_to(bind, _HTTP_ANSWER)
        connection.request("GET", path)
        return connection.getresponse().status
    except (OSError, http.client.HTTPException):
        return 0
    finally:
        connection.close()


def as_json(status: Status) -> str:
    return json.dumps(OPERATIONS.render(status, Scope()), indent=2)


def as_text(report: Report) -> str:
    """Lines for a terminal. click drops the colours if the output is not a terminal."""
    return "\n".join(_lines(report))


def _lines(report: Report) -> Iterator[str]:
    status = report.status
    if report.clickhouse:
        yield f"ClickHouse  {'answers' if status.reachable else _bad('does not answer')} at {report.clickhouse}"
    if status.error:
        yield f"            {status.error}"
    if status.reachable and report.sql:
        yield "SQL         " + "\n            ".join(report.sql)
    if disk := status.facts.disk:
        yield f"Disk        {disk.free / _GIB:,.1f} GiB of {disk.total / _GIB:,.1f} GiB are left"
    if report.http:
        yield f"HTTP        {report.http if report.http.startswith('ready') else _bad(report.http)}"
    for scheduler in status.facts.schedulers or ():
        if scheduler.alive:
            yield f"Scheduler   {scheduler.name}, last heard from {scheduler.heard_seconds_ago} s ago"
    for origin in status.origins:
        yield f"Source      {origin}{', which is simulated' if origin.simulated else ''}"
    for each in status.facts.corrections:
        yield f"Correction  {each.operation} of {each.dataset} since {format_instant(each.began)}"
        yield f"            {each.command}"
    if status.version:
        yield f"Version     {status.version}"
    if status.datasets:
        yield ""
        yield from _align([_HEADINGS, *map(_row, status.datasets)])
    if count := status.facts.anomalies:
        yield ""
        yield f"Anomalies   {count:,} in the last day; the view `anomalies` lists them"
    if status.faults:
        yield ""
    for fault in status.faults:
        yield _bad(f"Problem     {fault}")


def _row(dataset: Dataset) -> tuple[str, ...]:
    error = f"{format_instant(dataset.failed_at)}: {dataset.error}" if dataset.failed_at else "-"
    age = "-" if dataset.age_seconds is None else _age(dataset.age_seconds)
    gaps = "-" if dataset.gaps is None else str(dataset.gaps)
    return (dataset.dataset, _instant(dataset.newest), age if dataset.fresh else f"{age} !", gaps, error)


def _align(rows: list[tuple[str, ...]]) -> list[str]:
    """Rows as lines of aligned columns."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]


def _age(seconds: int) -> str:
    """An age in its two greatest units; 0 if a clock was ahead when the snapshot was taken."""
    days, rest = divmod(max(seconds, 0), DAY)
    hours, rest = divmod(rest, HOUR)
    minutes, rest = divmod(rest, MINUTE)
    return f"{days} d {hours} h" if days else f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"


def _instant(at: datetime | None) -> str:
    return "-" if at is None else format_instant(at)


def _bad(text: str) -> str:
    return click.style(text, fg="red")
