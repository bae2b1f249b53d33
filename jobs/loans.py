"""All events, and the loans and liquidations since the protocol began.

Events are stored up to the family's newest snapshot, so an older snapshot needs no events from the source. Each
snapshot is the previous complete snapshot plus the events in between. So it is exact in whatever order snapshots are
taken, and its cost does not grow with the number of events. Loans originated are the events of action borrow;
liquidations are the debt repaid in events of action liquidate (rule 2.20). Flash loans are summed separately. What the
source states as the sum over all events takes the place of the sum of events. Where values were imported, sums go on
from them: of each asset and of all assets the last imported value, plus the events after its second.
"""

import logging
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from decimal import Decimal

import polars as pl

from analytics_service.errors import SnapshotRefused
from analytics_service.market.events import Action, Event, Totals
from analytics_service.market.instants import instant, shown, unix_second
from analytics_service.market.kinds import TIME_LIMIT, Usd
from analytics_service.market.markets import Market
from analytics_service.market.values import LIMIT, ZERO, less, quantized_below_limit, rounded
from analytics_service.store.columns import UNFIT
from analytics_service.store.events import ACCOUNT_EVENTS, account_event_frame, numbered
from analytics_service.store.loans import (
    SUMMED,
    SUMMED_BY_ASSET,
    EventSum,
    ImportedSum,
    Sums,
    above_imported,
    flash_rows,
    is_lending,
    lending_frame,
    named_sum,
    plus,
    read_event_sums,
    read_imported_sums,
    read_sums,
    sums_by_asset,
)
from analytics_service.store.observations import TOTAL, observations_of
from jobs.snapshot import Batch, Snapshot

log = logging.getLogger(__name__)

HISTORY = True
# The limit of an event's value. It exceeds all real values, but sums of events below it can be stored.
_MAX_USD = Decimal(10) ** 16


def collect(batch: Batch) -> list[Snapshot]:
    """The cumulative values of all loans and liquidations at the instants, and the new events."""
    source, store, instants = batch.source, batch.store, batch.instants
    ends = [unix_second(at) for at in instants]
    previous = batch.completed_before() or 0
    newest = batch.head.at if batch.head else 0
    begins = [previous, *ends[:-1]]
    events, rows_of_events = _new_events(batch, newest, max(newest, ends[-1]))
    imported = read_imported_sums(store, [*begins, ends[-1]], TIME_LIMIT - 1)
    bounds = sorted({*begins, *(value.second for value in imported if value.second < ends[-1])})
    stored = read_event_sums(store, bounds, min(newest, ends[-1])) if previous < newest else []
    stated = [_stated(source.totals(at)) for at in instants]
    # An asset that can be borrowed has a history even before its first loan or liquidation.
    listed = stated[-1].get(Action.BORROW) or [
        market.asset_id for market in batch.left_out.fit("markets", source.markets(instants[-1]), Market) if market.debt
    ]
    sums = plus(read_sums(store, previous) if previous else {}, (), listed=listed)
    histories = numbered(store, rows_of_events, newest)
    lending = [event for event in events if is_lending(event) and unix_second(event.at) > newest]
    rows = lending_frame(lending)
    written, snapshots = 0, []
    for at, begin, end, totals in zip(instants, begins, ends, stated, strict=True):
        first, last = _count_until(lending, begin), _count_until(lending, end)
        added = [event_sum for event_sum in stored if begin <= event_sum.since < end]
        base = [value for value in imported if value.since == begin]
        _require_no_less(sums, base)
        _require_stated_no_less(plus(sums, (), base), totals, at)
        sums = {**plus(sums, [*added, *_event_sums(lending[first:last])], base), **totals}
        until = _count_until(events, max(end, newest))
        dated = {"event": rows[first:last], ACCOUNT_EVENTS: histories[written:until]}
        snapshots.append(Snapshot(at, observations_of(sums_by_asset(sums), at), flash_rows(sums), dated))
        written = until
    _require_no_less(sums, [value for value in imported if value.since == ends[-1]])
    return snapshots


def _new_events(batch: Batch, since: int, until: int) -> tuple[list[Event], pl.DataFrame]:
    """The source's events in (since, until], unix seconds: each once, at a whole second, oldest first; and their rows.
    Those that cannot be stored are left out."""
    events = batch.source.events(instant(since), instant(until)) if since < until else ()
    try:
        new = _inside(events, since, until)
        return new, account_event_frame(new)
    except UNFIT:
        # Only now, because to look at all fields of all events takes longer than to store them.
        new = _inside(batch.left_out.fit("events", events, Event), since, until)
        return new, account_event_frame(new)


def _inside(events: Iterable[Event], since: int, until: int) -> list[Event]:
    storable = {event.id: _storable(event) for event in events}
    inside = [event for event in storable.values() if since < unix_second(event.at) <= until]
    return sorted(inside, key=lambda event: event.at)


def _storable(event: Event) -> Event:
    """The event at a whole second. Its value becomes unknown if its price or value is absurd: a single event must not
    keep all others from being stored."""
    # Rounded up, so that an event does not count in a snapshot that was taken before it.
    if part := event.at.microsecond:
        event = replace(event, at=event.at + timedelta(seconds=1, microseconds=-part))
    if not (_fits(event.price, LIMIT) and _fits(event.usd, _MAX_USD)):
        log.warning("The value of event %s is unknown: %s USD at a price of %s.", event.id, event.usd, event.price)
        event = replace(event, price=None, usd=None)
    return event


def _fits(value: Decimal | None, limit: Decimal) -> bool:
    if not isinstance(value, Decimal):
        return value is None
    stored = quantized_below_limit(value)
    return stored is not None and stored.copy_abs() < limit


def _count_until(events: Sequence[Event], second: int) -> int:
    """How many of the events, oldest first, happened up to a unix second."""
    return bisect_left(events, second + 1, key=lambda event: unix_second(event.at))


def _event_sums(events: Iterable[Event]) -> list[EventSum]:
    """The values of summed events, as they are stored. Events of unknown value do not count."""
    return [
        EventSum(event.action, event.asset_id, unix_second(event.at) - 1, Usd.encode(event.usd))
        for event in events
        if event.action in SUMMED and event.usd is not None
    ]


def _stated(totals: Totals) -> Sums:
    """The sums that the source states, as far as it does."""
    stated: dict[Action, Mapping[str, Decimal]] = {
        action: {TOTAL: stated_sum.total, **stated_sum.by_asset}
        for action, stated_sum in ((Action.BORROW, totals.loans), (Action.LIQUIDATE, totals.liquidations))
        if stated_sum
    }
    if totals.flash_loans is not None:
        stated[Action.BORROW_FLASH_LOAN] = {TOTAL: totals.flash_loans}
    return stated


def _require_no_less(sums: Sums, imported: Iterable[ImportedSum]) -> None:
    """SnapshotRefused if values imported for later than a snapshot are less than its sums."""
    for value in imported:
        usd = sums.get(value.action, {}).get(value.asset_id, ZERO)
        if usd > value.least:
            raise SnapshotRefused(above_imported(value.action, value.asset_id, usd, value.least, value.second))


def _require_stated_no_less(before: Sums, stated: Sums, at: datetime) -> None:
    """SnapshotRefused if the source states less than the store has from before."""
    for action in SUMMED_BY_ASSET:
        for asset_id, usd in stated.get(action, {}).items():
            least = before[action].get(asset_id, ZERO)
            if usd < least:
                name = SUMMED_BY_ASSET[action].slug
                raise SnapshotRefused(
                    f"{named_sum(action, asset_id)} never falls: {rounded(usd):f} USD, as the source states for "
                    f"{shown(at)}, is {less(least, usd)} less than the store's {rounded(least):f} before. Import the "
                    f"earlier values again, less that offset, or take them out with `analytics-service remove {name}`."
                )
