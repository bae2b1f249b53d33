"""All events, and the loans and liquidations since the protocol began.

Events are stored up to the family's newest snapshot, so an older snapshot needs no events from the source. Loans
originated are the events of action borrow; liquidations are the debt repaid in events of action liquidate (rule 2.20).
Their sums, and those of flash loans, have an observation at the second of each event. At a snapshot there is one only
of what the source states as the sum over all events, which takes the place of the sum of events, and of an asset that
can be borrowed and has none yet. Where values were imported, sums go on from the last one of each series.
"""

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal

import polars as pl

from analytics_service.market.events import Event, Totals
from analytics_service.market.instants import instant, unix_second
from analytics_service.market.markets import Market
from analytics_service.market.sums import TOTAL, Series, Sums
from analytics_service.market.values import LIMIT, quantized_below_limit
from analytics_service.store.columns import UNFIT
from analytics_service.store.events import ACCOUNT_EVENTS, account_event_frame
from analytics_service.store.histories import FLASH_LOANS, LIQUIDATIONS, LOANS
from analytics_service.store.loans import is_lending, lending_frame
from analytics_service.store.sums import (
    TOTALS,
    SumChanges,
    changed_sums,
    past_sums,
    series_of,
    settled_before,
    summed,
)
from jobs.snapshot import Batch, Snapshot

log = logging.getLogger(__name__)

HISTORY = True
# The limit of an event's value. It exceeds all real values, but sums of events below it can be stored.
_MAX_USD = Decimal(10) ** 16
_NONE: Mapping[str, pl.DataFrame] = {}


def collect(batch: Batch) -> list[Snapshot]:
    """The snapshots at the instants. The last one has the new events, and what changes in the sums."""
    ends = [unix_second(at) for at in batch.instants]
    stated = _all_stated(batch)
    newest, dated = batch.head.at if batch.head else 0, _NONE
    listed = _listed(batch, stated[ends[-1]])
    if ends[-1] <= newest:
        changes = past_sums(batch.store, ends[0], stated, listed)
    else:
        events, histories = _new_events(batch, newest, ends[-1])
        lending = lending_frame(event for event in events if is_lending(event))
        dated = {"event": lending, ACCOUNT_EVENTS: histories}
        since = min(newest, ends[0] - 1)
        changes = changed_sums(batch.store, since, summed(events), stated=stated, ticks={ends[0]: listed})
    return _snapshots(batch, stated, changes, dated)


def collect_again(batch: Batch) -> list[Snapshot]:
    """The snapshots at instants that are complete: what the source states now, and the sums of stored events since."""
    stated = _all_stated(batch)
    return _snapshots(batch, stated, changed_sums(batch.store, settled_before(batch.store, min(stated)), stated=stated))


def _all_stated(batch: Batch) -> Mapping[int, Sums]:
    """What the source states, by the unix second of the instant."""
    return {unix_second(at): _stated(batch.source.totals(at)) for at in batch.instants}


def _snapshots(
    batch: Batch, stated: Mapping[int, Sums], changes: SumChanges, dated: Mapping[str, pl.DataFrame] = _NONE
) -> list[Snapshot]:
    """The snapshots of a batch, the last of which has all rows."""
    names = (sorted({name for name, _ in sums}) for sums in stated.values())
    snapshots = [Snapshot(at, stated=of) for at, of in zip(batch.instants, names, strict=True)]
    return [
        *snapshots[:-1],
        replace(snapshots[-1], observations=changes.added, removed=changes.removed, dated=dated),
    ]


def _listed(batch: Batch, stated: Sums) -> Sequence[Series]:
    """The series that begin with a snapshot: an asset that can be borrowed has a history even before its first loan or
    liquidation."""
    ids: Iterable[str] = [asset_id for name, asset_id in stated if name == LOANS.name and asset_id]
    if not any(name == LOANS.name for name, _ in stated):
        markets = batch.left_out.fit("markets", batch.source.markets(batch.instants[-1]), Market)
        ids = [market.asset_id for market in markets if market.debt]
    return list(dict.fromkeys([*TOTALS, *series_of(LOANS, ids), *series_of(LIQUIDATIONS, ids)]))


def _new_events(batch: Batch, since: int, until: int) -> tuple[list[Event], pl.DataFrame]:
    """The source's events in (since, until], unix seconds: each once, at a whole second, oldest first; and their rows.
    Those that cannot be stored are left out."""
    events = batch.source.events(instant(since), instant(until))
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
    return stored is not None and 0 <= stored < limit


def _stated(totals: Totals) -> Sums:
    """The sums that the source states, as far as it does."""
    stated: dict[Series, Decimal] = {}
    for history, stated_sum in ((LOANS, totals.loans), (LIQUIDATIONS, totals.liquidations)):
        if stated_sum:
            by_asset: Mapping[str, Decimal] = {TOTAL: stated_sum.total, **stated_sum.by_asset}
            stated |= {(history.name, asset_id): usd for asset_id, usd in by_asset.items()}
    if totals.flash_loans is not None:
        stated[FLASH_LOANS.name, TOTAL] = totals.flash_loans
    return stated
