"""All events, and the loans and liquidations since the protocol's first ones.

Events are stored up to the family's newest snapshot, so an older snapshot needs none from the source. Each snapshot is
the complete one before it plus the events in between. So it is exact in whatever order snapshots are taken, and its
cost does not grow with the number of events. Loans originated are the events of action borrow, liquidations the debt
that was repaid in those of action liquidate (rule 2.20); flash loans are summed separately.
"""

import logging
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal

from analytics_service.market.events import Event
from analytics_service.market.instants import instant, unix_second
from analytics_service.market.values import EXACT, LIMIT, ZERO, quantized_below_limit
from analytics_service.sources.base import Source
from analytics_service.store.columns import quantize_ratio
from analytics_service.store.events import ACCOUNT_EVENTS, account_event_frame, numbered
from analytics_service.store.loans import (
    SUMMED,
    SUMMED_BY_ASSET,
    EventSum,
    Sums,
    flash_rows,
    is_lending,
    lending_frame,
    read_event_sums,
    read_sums,
    sums_by_asset,
)
from analytics_service.store.observations import TOTAL, observations_of
from jobs.snapshot import Batch, Snapshot

log = logging.getLogger(__name__)

HISTORY = True
# The limit of an event's value: more than all the money in the world, but small enough for sums of events to be stored.
_MOST_USD = Decimal(10) ** 16


def collect(batch: Batch) -> list[Snapshot]:
    """The cumulative values of all loans and liquidations at the instants, and the events that are new."""
    source, store, instants = batch.source, batch.store, batch.instants
    ends = [unix_second(at) for at in instants]
    previous = batch.completed_before() or 0
    known = batch.head.at if batch.head else 0
    begins = [previous, *ends[:-1]]
    events = _new_events(source, known, max(known, ends[-1]))
    stored = read_event_sums(store, begins, min(known, ends[-1])) if previous < known else []
    # An asset that can be borrowed has a history even before its first loan, or liquidation.
    listed = [market.asset_id for market in source.markets(instants[-1]) if market.debt]
    sums = _plus(read_sums(store, previous) if previous else {}, (), listed)
    histories = numbered(store, account_event_frame(events), known)
    lending = [event for event in events if is_lending(event) and unix_second(event.at) > known]
    rows = lending_frame(lending)
    written, snapshots = 0, []
    for at, begin, end in zip(instants, begins, ends, strict=True):
        first, last = _count_until(lending, begin), _count_until(lending, end)
        sums = _plus(sums, [*(one for one in stored if one.since == begin), *_event_sums(lending[first:last], begin)])
        until = _count_until(events, max(end, known))
        dated = {"event": rows[first:last], ACCOUNT_EVENTS: histories[written:until]}
        snapshots.append(Snapshot(at, observations_of(sums_by_asset(sums), at), flash_rows(sums), dated))
        written = until
    return snapshots


def _new_events(source: Source, since: int, until: int) -> list[Event]:
    """The source's events after a unix second up to another, each once, by whole second."""
    if since >= until:
        return []
    events = {event.id: _storable(event) for event in source.events(instant(since), instant(until))}
    inside = [event for event in events.values() if since < unix_second(event.at) <= until]
    return sorted(inside, key=lambda event: event.at)


def _storable(event: Event) -> Event:
    """The event at a whole second, and of unknown value if its price or value is beyond all reason: one event must not
    keep all others from being stored."""
    # Rounded up, so that an event does not count in a snapshot that was taken before it.
    if part := event.at.microsecond:
        event = replace(event, at=event.at + timedelta(seconds=1, microseconds=-part))
    if not (_fits(event.price, LIMIT) and _fits(event.usd, _MOST_USD)):
        log.warning("The value of event %s is unknown: %s USD at a price of %s.", event.id, event.usd, event.price)
        event = replace(event, price=None, usd=None)
    return event


def _fits(value: Decimal | None, limit: Decimal) -> bool:
    if value is None:
        return True
    stored = quantized_below_limit(value)
    return stored is not None and stored.copy_abs() < limit


def _count_until(events: Sequence[Event], second: int) -> int:
    """How many of the events, oldest first, are not after a second."""
    return bisect_left(events, second + 1, key=lambda event: unix_second(event.at))


def _event_sums(events: Iterable[Event], since: int) -> list[EventSum]:
    """The summed ones among events after a unix second, as they are stored; one of unknown value counts as nothing."""
    return [
        EventSum(one.action, one.asset_id, since, quantize_ratio(one.usd))
        for one in events
        if one.action in SUMMED and one.usd is not None
    ]


def _plus(sums: Sums, added: Iterable[EventSum], listed: Iterable[str] = ()) -> Sums:
    """Sums with those added, and with the listed assets even where they have none."""
    none = {action: {TOTAL: ZERO} for action in SUMMED}
    none |= {action: dict.fromkeys((TOTAL, *listed), ZERO) for action in SUMMED_BY_ASSET}
    totals = {action: {**none[action], **sums.get(action, {})} for action in SUMMED}
    for one in added:
        grown = totals[one.action]
        for asset_id in (TOTAL, one.asset_id) if one.action in SUMMED_BY_ASSET else (TOTAL,):
            grown[asset_id] = EXACT.add(grown.get(asset_id, ZERO), one.usd)
    return totals
