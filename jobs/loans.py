"""Events of lending, and the loans originated since the protocol's first one.

Events are stored up to the family's newest snapshot, so an older snapshot needs none from the source. Each snapshot is
the sum of the complete one before it and the events in between: exact in any order, and it costs no more as events
grow. Loans originated are the events of kind borrow; flash loans are summed apart.
"""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from analytics_service.market.instants import instant, unix_second
from analytics_service.market.loans import Event, EventKind
from analytics_service.market.values import EXACT, ZERO
from analytics_service.sources.base import Source
from analytics_service.store.columns import quantize_ratio
from analytics_service.store.loans import (
    Loans,
    Originated,
    event_frame,
    loan_frames,
    read_loans,
    read_originated,
)
from jobs.snapshot import Batch, Snapshot

HISTORY = True


def collect(batch: Batch) -> list[Snapshot]:
    """The cumulative value of all loans at the instants, and the events that are new."""
    source, store, instants = batch.source, batch.store, batch.instants
    ends = [unix_second(at) for at in instants]
    # Read in this order, so that a snapshot which another scheduler completes in between does not count twice.
    previous = batch.completed_before() or 0
    head = batch.head()
    known = head.at if head else 0
    begins = [previous, *ends[:-1]]
    events = _new_events(source, known, instants[-1]) if known < ends[-1] else []
    stored = read_originated(store, begins, min(known, ends[-1])) if previous < known else []
    # An asset that can be borrowed has a history even before its first loan.
    listed = [market.asset_id for market in source.markets(instants[-1]) if market.debt]
    loans = _plus(read_loans(store, previous), [], listed)
    rows, snapshots = event_frame(events), []
    for at, begin, end in zip(instants, begins, ends, strict=True):
        first, last = _count_until(events, begin), _count_until(events, end)
        added = [Originated(event.kind, event.asset_id, begin, event.usd) for event in events[first:last]]
        loans = _plus(loans, [*(one for one in stored if one.since == begin), *added], [])
        new = rows.slice(first, last - first)
        snapshots.append(Snapshot(at, loan_frames(loans), dated={"event": new}))
    return snapshots


def _new_events(source: Source, known: int, until: datetime) -> list[Event]:
    """The source's events after a unix second up to an instant, each once, by whole second."""
    events = {event.id: _at_whole_second(event) for event in source.events(instant(known), until)}
    inside = [event for event in events.values() if known < unix_second(event.at) <= unix_second(until)]
    return sorted(inside, key=lambda event: event.at)


def _at_whole_second(event: Event) -> Event:
    # Rounded up, so that an event does not count in a snapshot that was taken before it.
    part = timedelta(microseconds=event.at.microsecond)
    at = event.at - part + timedelta(seconds=1) if part else event.at
    return replace(event, at=at, usd=quantize_ratio(event.usd))


def _count_until(events: Sequence[Event], second: int) -> int:
    """How many of the events, oldest first, are not after a second."""
    return bisect_left(events, second + 1, key=lambda event: unix_second(event.at))


def _plus(loans: Loans, added: Iterable[Originated], listed: Iterable[str]) -> Loans:
    """Loans with those added, and with the listed assets even where they have none."""
    total, flash = loans.total, loans.flash
    by_asset = {**dict.fromkeys(listed, ZERO), **loans.by_asset}
    for one in added:
        if one.kind is EventKind.FLASH_LOAN:
            flash = EXACT.add(flash, one.usd)
        elif one.kind is EventKind.BORROW:
            total = EXACT.add(total, one.usd)
            by_asset[one.asset_id] = EXACT.add(by_asset.get(one.asset_id, ZERO), one.usd)
    return Loans(total, by_asset, flash)
