"""All events, and the sums of loans and liquidations since the protocol began.

Indexers lag and chains reorganize, so the job also asks for earlier events: every five minutes for the last
ANALYTICS_EVENTS_LATENESS, and always for those after the instant up to which the source reported to be complete.

Loans originated are the events of action borrow; liquidations are the debt repaid in events of action liquidate (rule
2.20, cumulative liquidations). Sums of loans, liquidations and flash loans have an observation at the second of each
event. A snapshot adds observations only for totals that the source reports, and for borrowable assets without any.

A job that dies may leave observations, and events on some shards. The next commit compares the source's list with the
stored events, and recomputes sums from the first orphaned observation on.
"""

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

import polars as pl

from analytics_service.clickhouse.columns import UNFIT
from analytics_service.market.event_changes import EventChanges, EventOrigin, compare_events, with_ids
from analytics_service.market.events import Event, storable_events
from analytics_service.market.instants import from_unix, unix_second
from analytics_service.market.markets import Market
from analytics_service.market.sums import Series, Sums
from analytics_service.market.validation import ValidationError
from analytics_service.store.commits import Appended, Commit, Replaced
from analytics_service.store.datasets import sums
from analytics_service.store.datasets.events import EVENTS, changes_frame, event_frame, read_stored_events
from analytics_service.store.datasets.histories import LIQUIDATIONS, LOANS
from analytics_service.store.ledger import Covered, last_covered_loans
from jobs.snapshot import JobContext

log = logging.getLogger(__name__)

# Seconds between requests for late events.
_LATE_EVERY = 300
_NONE: Mapping[str, pl.DataFrame] = {}


def collect(context: JobContext) -> Commit:
    """The snapshots at the instants. The last snapshot has all changes of events and sums."""
    reported = _source_sums(context)
    first, last = min(reported), max(reported)
    listed = _new_series(context, reported[last])
    covered = last_covered_loans(context.store, context.head.at + 1) if context.head else None
    covered_at = covered.at if covered else 0
    if last <= covered_at:
        return _snapshots(context, reported, sums.past_sums(context.store, first, reported, listed))
    complete, changes = compare(context, _start(context, covered, last), last + 1, covered_at)
    left = first if context.left is None else context.left
    changed_from = min(first, left, covered_at + 1, *sums.summed_seconds(changes))
    start = covered_at + 1 if changed_from > covered_at else sums.unsettled_from(context.store, changed_from)
    changed = sums.changed_sums(context.store, start, changes, stated=reported, ticks={first: listed})
    return _snapshots(context, reported, changed, {EVENTS: changes_frame(changes)}, complete)


def recompute(context: JobContext) -> Commit:
    """Complete snapshots, with the totals that the source reports now; none if it reports no totals."""
    reported = _source_sums(context)
    if not any(reported.values()):
        return Commit([])
    start = sums.unsettled_from(context.store, min(reported))
    return _snapshots(context, reported, sums.changed_sums(context.store, start, stated=reported))


def _start(context: JobContext, covered: Covered | None, last: int) -> int:
    """The first unix second of the events that a snapshot at the second `last` asks for."""
    if covered is None:
        return 0
    start = covered.at + 1
    if covered.at // _LATE_EVERY != last // _LATE_EVERY:
        start -= context.store.events_lateness
    if covered.complete_until:
        # The source may have been complete only up to a fraction of this second.
        start = min(start, covered.complete_until)
    return max(start if context.left is None else min(start, context.left), 0)


def compare(context: JobContext, start: int, end: int, covered: int) -> tuple[int, EventChanges]:
    """The unix second up to which the source has all events (0 if it does not say), and the changes by its events in
    [start, end). Events after `covered` are not stored yet."""
    # Asked before the list, which may then have more events.
    reported = context.source.complete_until(from_unix(end - 1))
    complete = unix_second(reported) if reported else 0
    listed = _events(context, start, end)
    stored = read_stored_events(context.store, listed, start, end if start <= covered else start)
    # The second in which the source's completeness ends may get more events.
    changes = compare_events(listed, stored, EventOrigin.SOURCE, start, min(end, complete) if reported else end)
    if late := sum(unix_second(each.event.at) <= covered for each in changes.new):
        log.info("%d events arrived late.", late)
    if changes.altered or changes.gone:
        words = "%s has changed %d stored events, and no longer lists %d."
        log.warning(words, context.source.spec, changes.altered, len(changes.gone))
    return complete, changes


def _events(context: JobContext, start: int, end: int) -> list[Event]:
    """The source's events in [start, end) in unix seconds, each once, at whole seconds, oldest first. Rejects events
    that cannot be stored.

    Also asks for the second before `start`: events in its last fraction may have arrived after it was asked for.
    """
    after, until = from_unix(max(start - 1, 0)), from_unix(end)
    events = context.source.events(after, until)
    try:
        listed = _inside(events, after, until)
        event_frame(listed)
    except UNFIT:
        # Only now, because validating all events takes longer than storing them.
        listed = _inside(context.rejections.valid_records("events", events, Event), after, until)
    for event in listed:
        if event.lacks_amount:
            context.rejections.add(
                "events", event, ValidationError("amount", None, " is missing in an event of lending.")
            )
    return [event for event in listed if not event.lacks_amount]


def _inside(events: Iterable[Event], after: datetime, until: datetime) -> list[Event]:
    inside = [event for event in events if after < event.at < until]
    stored = [*map(storable_events, inside)]
    for event, now in zip(inside, stored, strict=True):
        if now.price is not event.price or now.usd is not event.usd:
            log.warning("The value of event %s is unknown: %s USD at a price of %s.", event.id, event.usd, event.price)
    return sorted({event.id: event for event in with_ids(stored)}.values(), key=lambda event: event.at)


def _source_sums(context: JobContext) -> Mapping[int, Sums]:
    """The totals reported by the source, by unix second."""
    return {unix_second(at): sums.source_sums(context.source.totals(at)) for at in context.instants}


def _new_series(context: JobContext, reported: Sums) -> Sequence[Series]:
    """The series that a snapshot begins: a borrowable asset has a history even before its first loan or liquidation."""
    ids = [asset_id for name, asset_id in reported if name == LOANS.name and asset_id]
    if not any(name == LOANS.name for name, _ in reported):
        markets = context.rejections.valid_records("markets", context.source.markets(context.instants[-1]), Market)
        ids = [market.asset_id for market in markets if market.debt]
    return list(dict.fromkeys([*sums.TOTALS, *sums.series_of(LOANS, ids), *sums.series_of(LIQUIDATIONS, ids)]))


def _snapshots(
    context: JobContext,
    reported: Mapping[int, Sums],
    changed: sums.SumChanges,
    dated: Mapping[str, pl.DataFrame] = _NONE,
    complete: int = 0,
) -> Commit:
    """The snapshots of a batch. The last snapshot has all sums."""
    names = (sorted({name for name, _ in values}) for values in reported.values())
    snapshots = [
        Appended(at, ledger={"reported_histories": of, "complete_until": complete})
        for at, of in zip(context.instants, names, strict=True)
    ]
    last = replace(snapshots[-1], observations=changed.added)
    return Commit([*snapshots[:-1], last], Replaced(dated, changed.removed))
