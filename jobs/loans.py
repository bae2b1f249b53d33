"""Loans: the events of lending, and the loans originated since the protocol's first one.

Events are stored up to the family's newest snapshot, so a snapshot before it needs none from the source. Each snapshot
is the sum of the complete one before it and of the events between: exact in any order, and no dearer as events grow.
Loans originated are the events of kind borrow; flash loans are summed apart.
"""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from analytics_service.market.loans import Event, EventKind
from analytics_service.market.values import EXACT, ZERO
from analytics_service.sources.base import Source
from analytics_service.store.columns import instant, quantize_ratio, whole_second
from analytics_service.store.connection import Store
from analytics_service.store.ledger import completed_before, read_heads
from analytics_service.store.loans import (
    Loans,
    Originated,
    event_frame,
    loan_frames,
    read_loans,
    read_originated,
)
from jobs.snapshot import Snapshot

FAMILY = "loans"


def collect(source: Source, store: Store, instants: Sequence[datetime], version: int) -> list[Snapshot]:
    """What all loans came to at the instants, and the events that are new."""
    ends = [whole_second(at) for at in instants]
    # In this order: a snapshot that another scheduler completes in between must not count twice.
    previous = completed_before(store, FAMILY, ends[0]) or 0
    head = read_heads(store).get(FAMILY)
    known = head.at if head else 0
    begins = [previous, *ends[:-1]]
    events = _new_events(source, known, instants[-1]) if known < ends[-1] else []
    stored = read_originated(store, begins, min(known, ends[-1])) if previous < known else []
    # An asset that can be borrowed has a history, also while nobody borrows it.
    listed = [market.asset_id for market in source.markets(instants[-1]) if market.debt]
    loans = _plus(read_loans(store, previous), [], listed)
    rows, snapshots = event_frame(events, version), []
    for at, begin, end in zip(instants, begins, ends, strict=True):
        first, last = _place(events, begin), _place(events, end)
        added = [Originated(event.kind, event.asset_id, begin, event.usd) for event in events[first:last]]
        loans = _plus(loans, [*(sum_ for sum_ in stored if sum_.since == begin), *added], [])
        fresh = rows.slice(first, last - first)
        snapshots.append(Snapshot(at, {"event": fresh, **loan_frames(loans, at, version)}))
    return snapshots


def _new_events(source: Source, known: int, until: datetime) -> list[Event]:
    """The source's events after a unix second, each once, by whole second."""
    events = {event.id: _in_whole_second(event) for event in source.events(instant(known), until)}
    inside = [event for event in events.values() if known < event.at.timestamp() <= until.timestamp()]
    return sorted(inside, key=lambda event: event.at)


def _in_whole_second(event: Event) -> Event:
    # Upwards: an event must not count in a snapshot that was taken before it.
    part = timedelta(microseconds=event.at.microsecond)
    at = event.at - part + timedelta(seconds=1) if part else event.at
    return replace(event, at=at, usd=quantize_ratio(event.usd))


def _place(events: Sequence[Event], second: int) -> int:
    """How many of the events, oldest first, are not after a second."""
    return bisect_left(events, second + 1, key=lambda event: whole_second(event.at))


def _plus(loans: Loans, added: Iterable[Originated], listed: Iterable[str]) -> Loans:
    total, flash = loans.total, loans.flash
    by_asset = {**dict.fromkeys(listed, ZERO), **loans.by_asset}
    for sum_ in added:
        if sum_.kind is EventKind.FLASH_LOAN:
            flash = EXACT.add(flash, sum_.usd)
        elif sum_.kind is EventKind.BORROW:
            total = EXACT.add(total, sum_.usd)
            by_asset[sum_.asset_id] = EXACT.add(by_asset.get(sum_.asset_id, ZERO), sum_.usd)
    return Loans(total, by_asset, flash)
