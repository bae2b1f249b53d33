"""How the service is, as a table for people, and as JSON for programs."""

import json
from collections.abc import Iterator
from datetime import datetime
from operator import attrgetter

import click

from analytics_service.market.instants import DAY, HOUR, MINUTE, shown
from analytics_service.present.shapes import Scope
from analytics_service.present.status import MOST_DOUBTS, OPERATIONS
from analytics_service.state.health import FRESH_INTERVALS, Family, Status

_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")
# Limit of late prices that are listed.
_MOST_PRICES = 20
_HEADINGS = ("family", "newest snapshot", "age", "rows", "gaps, 24 h", "next run", "last error")


def as_json(status: Status) -> str:
    """A JSON document, whose names stay the same from version to version."""
    return json.dumps(OPERATIONS.render(status, Scope()), indent=2)


def as_text(status: Status) -> str:
    """Lines for a terminal. click drops the colours if the output is no terminal."""
    return "\n".join(_lines(status))


def _lines(status: Status) -> Iterator[str]:
    if status.reachable:
        memory = f", {size(status.memory)} of memory" if status.memory else ""
        yield f"ClickHouse  {status.clickhouse} at {status.url}, database {status.database}{memory}"
    elif status.url:
        yield f"ClickHouse  {_bad('does not answer')} at {status.url}"
    if status.reachable and status.replicas:
        shards = len({replica.shard for replica in status.replicas})
        answering = sum(replica.up for replica in status.replicas)
        named = "1 shard" if shards == 1 else f"{shards} shards"
        yield f"Cluster     {named}; {answering} of {len(status.replicas)} servers answer"
    if status.reachable and status.sql:
        yield "SQL         " + "\n            ".join(status.sql)
    if status.schema_current:
        yield "Schema      up to date"
    if status.http is not None:
        state = "ready" if status.http.ready else _bad("not ready") if status.http.alive else "does not answer"
        yield f"HTTP        {state} on {status.http.bind}"
    for scheduler in status.schedulers:
        if scheduler.alive:
            yield f"Scheduler   {scheduler.name}, last heard from {scheduler.heard_seconds_ago} s ago"
    for origin in status.origins:
        yield f"Source      {origin}{', which is simulated' if origin.simulated else ''}"
    for each in status.corrections:
        progress = f"{each.rows:,}{f' of {each.expected:,}' if each.expected else ''} rows"
        yield f"Correction  {each.what} of {each.family} since {shown(each.began)}: {each.stage}, {progress}"
        yield f"            {each.command}"
    if status.service:
        yield f"Version     {status.service}"
    if status.families:
        yield ""
        yield from aligned([_HEADINGS, *map(_row, status.families)], right={2, 3, 4})
    elif status.reachable and not status.faults:
        yield "Data        no snapshot yet"
    for family in status.families:
        if family.complete_until:
            yield f"Events of {family.family} are complete until {shown(family.complete_until)}, as their source says"
    yield from _prices(status)
    yield from _doubts(status)
    if status.tables:
        yield ""
        rows = [(table.table, f"{table.rows:,}", size(table.bytes)) for table in status.tables]
        rows.append(("all", "", size(status.stored_bytes)))
        rows += [("left", "", size(status.disk.free))] if status.disk else []
        yield from aligned([("table", "rows", "disk"), *rows], right={1, 2})
    if status.faults:
        yield ""
    for fault in status.faults:
        yield _bad(f"Problem     {fault}")


def _prices(status: Status) -> Iterator[str]:
    """The oldest price, and all that are older than they should be, the oldest first."""
    oldest = sorted(status.prices, key=attrgetter("newest"))
    every = next((family.interval for family in status.families if family.family == "prices"), None)
    late = [price for price in oldest if every and price.age_seconds > FRESH_INTERVALS * every]
    if not oldest:
        return
    yield ""
    rows = [
        (
            price.symbol,
            shown(price.newest),
            _age(price.age_seconds),
            "" if price.known else _bad("unknown: too old"),
        )
        for price in late[:_MOST_PRICES] or oldest[:1]
    ]
    yield from aligned([("oldest prices", "newest", "age", ""), *rows], right={2})
    if len(late) > _MOST_PRICES:
        yield f"and {len(late) - _MOST_PRICES} more that are late"


def _doubts(status: Status) -> Iterator[str]:
    if not status.doubts:
        return
    yield ""
    yield f"In doubt    {len(status.doubts):,} of the last day; `SELECT * FROM anomalies` shows all"
    for doubt in status.doubts[:MOST_DOUBTS]:
        yield f"            {doubt.words}"


def _row(family: Family) -> tuple[str, ...]:
    error = f"{shown(family.failed_at)}: {family.error}" if family.failed_at else "-"
    age = "-" if family.age_seconds is None else _age(family.age_seconds)
    gaps = "-" if family.gaps is None else str(family.gaps)
    return (
        family.family,
        _instant(family.newest),
        age if family.fresh else f"{age} !",
        f"{family.rows:,}",
        gaps,
        _instant(family.next_run),
        error,
    )


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
