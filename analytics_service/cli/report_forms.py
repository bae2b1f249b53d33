"""How the service is, as a table for people, and as JSON for programs."""

import json
from collections.abc import Iterator
from datetime import datetime

import click

from analytics_service.cli.report import Report
from analytics_service.market.instants import DAY, HOUR, MINUTE, shown
from analytics_service.present.shapes import Scope
from analytics_service.present.status import OPERATIONS
from analytics_service.state.health import Family, Status

_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")
# Limit of prices that are listed.
_MOST_PRICES = 20
_HEADINGS = ("family", "newest snapshot", "age", "gaps, 24 h", "last error")


def as_json(status: Status) -> str:
    """A JSON document, that of /operations."""
    return json.dumps(OPERATIONS.render(status, Scope()), indent=2)


def as_text(report: Report) -> str:
    """Lines for a terminal. click drops the colours if the output is no terminal."""
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
        yield f"Disk        {size(disk.free)} of {size(disk.total)} are left"
    if report.http:
        yield f"HTTP        {report.http if report.http.startswith('ready') else _bad(report.http)}"
    for scheduler in status.facts.schedulers or ():
        if scheduler.alive:
            yield f"Scheduler   {scheduler.name}, last heard from {scheduler.heard_seconds_ago} s ago"
    for origin in status.origins:
        yield f"Source      {origin}{', which is simulated' if origin.simulated else ''}"
    for each in status.facts.corrections:
        yield f"Correction  {each.what} of {each.family} since {shown(each.began)}"
        yield f"            {each.command}"
    if status.version:
        yield f"Version     {status.version}"
    if status.families:
        yield ""
        yield from aligned([_HEADINGS, *map(_row, status.families)], right={2, 3})
    for family in status.families:
        if family.complete_until:
            yield f"Events of {family.family} are complete until {shown(family.complete_until)}, as their source says"
    if lost := status.lost_prices:
        yield ""
        rows = [(price.symbol, shown(price.newest), _age(price.age_seconds)) for price in lost[:_MOST_PRICES]]
        yield from aligned([("lost prices", "newest", "age"), *rows], right={2})
        yield from [f"and {len(lost) - _MOST_PRICES} more"] if len(lost) > _MOST_PRICES else []
    if count := status.facts.anomalies:
        yield ""
        yield f"Anomalies   {count:,} of the last day; the view `anomalies` has them"
    if status.faults:
        yield ""
    for fault in status.faults:
        yield _bad(f"Problem     {fault}")


def _row(family: Family) -> tuple[str, ...]:
    error = f"{shown(family.failed_at)}: {family.error}" if family.failed_at else "-"
    age = "-" if family.age_seconds is None else _age(family.age_seconds)
    gaps = "-" if family.gaps is None else str(family.gaps)
    return (family.family, _instant(family.newest), age if family.fresh else f"{age} !", gaps, error)


def aligned(rows: list[tuple[str, ...]], right: set[int]) -> list[str]:
    """Rows as lines with columns of equal width. The first row is the heading."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return [
        "  ".join(
            cell.rjust(width) if column in right else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def size(count: int) -> str:
    """Bytes in a unit that leaves at most four digits before the point."""
    value, unit = float(count), 0
    while value >= 1024 and unit < len(_UNITS) - 1:
        value, unit = value / 1024, unit + 1
    return f"{value:.1f} {_UNITS[unit]}" if unit else f"{count} B"


def _age(seconds: int) -> str:
    """The two greatest units of an age. It is negative if a clock was ahead when the snapshot was taken."""
    if seconds < 0:
        return f"{_age(-seconds)} in the future"
    days, rest = divmod(seconds, DAY)
    hours, rest = divmod(rest, HOUR)
    minutes, rest = divmod(rest, MINUTE)
    return f"{days} d {hours} h" if days else f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"


def _instant(at: datetime | None) -> str:
    return "-" if at is None else shown(at)


def _bad(text: str) -> str:
    return click.style(text, fg="red")
