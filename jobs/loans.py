"""All events, and the loans and liquidations since the protocol began.

Indexers lag and chains reorganize, so a run also asks for events of before: for those since the last snapshot, and at
the first run after each multiple of five minutes for those of ANALYTICS_EVENTS_LATENESS before; if the source said at
the last snapshot up to when it was complete, from then on. What the source lists there and the store does not have
enters at its own second, what has another second or content is put right, and what the source had brought and lists no
more leaves, unless that is later than the source is complete. Snapshots of before the last one need no events.

Loans originated are the events of action borrow; liquidations are the debt repaid in events of action liquidate (rule
2.20). Their sums, and those of flash loans, have an observation at the second of each event. At a snapshot there is one
only of what the source states as the sum over all events, which takes the place of the sum of events, and of an asset
that can be borrowed and has none yet. Where values were imported, sums go on from the last one of each series.

A run that dies may have written observations, and then events, on shards those of some only. The source's list is
compared with the events that are stored, and sums are made of these and of what the list changes in them: so whatever
the run has left, the next one that asks for these events completes it. It computes sums anew from the first observation
that such a run has left.
"""

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from decimal import Decimal

import polars as pl

from analytics_service.clickhouse.columns import UNFIT
from analytics_service.market.events import Event, Totals
from analytics_service.market.instants import instant, unix_second
from analytics_service.market.markets import Market
from analytics_service.market.misfits import Misfit
from analytics_service.market.sums import TOTAL, Series, Sums
from analytics_service.market.values import LIMIT, quantized_below_limit
from analytics_service.store.commits import Appended, Commit, Replaced
from analytics_service.store.datasets.events import EVENTS, event_frame
from analytics_service.store.datasets.histories import FLASH_LOANS, LIQUIDATIONS, LOANS
from analytics_service.store.datasets.known_events import Bringer, EventChanges, compare_listed
from analytics_service.store.datasets.sums import (
    TOTALS,
    SumChanges,
    changed_sums,
    past_sums,
    series_of,
    settled_before,
)
from analytics_service.store.ledger import Covered, last_covered
from jobs.snapshot import Batch

log = logging.getLogger(__name__)

# Seconds between the multiples after which a run asks for late events.
_WINDOW = 300
# The limit of an event's value. It exceeds all real values, but sums of events below it can be stored.
_MAX_USD = Decimal(10) ** 16
_NONE: Mapping[str, pl.DataFrame] = {}


def collect(batch: Batch) -> Commit:
    """The snapshots at the instants. The last one has what changes of events and sums."""
    ends = [unix_second(at) for at in batch.instants]
    stated = _all_stated(batch)
    listed = _listed(batch, stated[ends[-1]])
    covered = last_covered(batch.store, batch.head.at) if batch.head else None
    if covered and ends[-1] <= covered.at:
        return _snapshots(batch, stated, past_sums(batch.store, ends[0], stated, listed))
    since = _since(batch, covered, ends[-1])
    complete, changes = _compared(batch, since, ends[-1], is_window=covered is None or since < covered.at)
    until = covered.at if covered else 0
    _tell(batch, changes, until)
    first = min(until + 1, ends[0], *changes.seconds, *([] if batch.left is None else [batch.left]))
    before = until if first > until else settled_before(batch.store, first)
    sums = changed_sums(
        batch.store, before, changes.summed, without=changes.unsummed, stated=stated, ticks={ends[0]: listed}
    )
    return _snapshots(batch, stated, sums, {EVENTS: changes.frame()}, complete)


def _since(batch: Batch, covered: Covered | None, until: int) -> int:
    """The unix second after which the source is asked for events."""
    if covered is None:
        return 0
    since = covered.at
    if covered.at // _WINDOW != until // _WINDOW:
        since -= batch.store.events_lateness
    if covered.complete_until:
        # The source may have been complete up to within this second.
        since = min(since, covered.complete_until - 1)
    return max(since if batch.left is None else min(since, batch.left - 1), 0)


def _compared(batch: Batch, since: int, until: int, *, is_window: bool) -> tuple[int, EventChanges]:
    """Up to when the source says that it has all events, 0 if it does not, and what its events in (since, until], unix
    seconds, change."""
    # Asked first: what comes meanwhile may be in the list.
    complete = batch.source.complete_until(instant(until))
    stated = 0 if complete is None else unix_second(complete)
    # More events may come of the second within which it is complete.
    leaving_until = until if complete is None else stated - 1
    listed = _events(batch, since, until)
    return stated, compare_listed(batch.store, listed, since, until, leaving_until, is_window=is_window)


def _tell(batch: Batch, changes: EventChanges, until: int) -> None:
    """Log what has changed of events up to a unix second."""
    if late := sum(unix_second(known.event.at) <= until for known in changes.new):
        log.info("%d events came late.", late)
    is_own = (before.brought_by is not Bringer.FILE and before.event != now.event for before, now in changes.changed)
    if (moved := sum(is_own)) or changes.gone:
        log.warning(
            "%s lists %d events otherwise than before, and %d no more.", batch.source.spec, moved, len(changes.gone)
        )


def collect_again(batch: Batch) -> Commit:
    """The snapshots at instants that are complete, with what the source states now; none if it states nothing."""
    stated = _all_stated(batch)
    if not any(stated.values()):
        return Commit([])
    sums = changed_sums(batch.store, settled_before(batch.store, min(stated)), stated=stated)
    return _snapshots(batch, stated, sums)


def compare_again(batch: Batch, since: int, until: int) -> EventChanges:
    """What the source's events in (since, until], unix seconds, change of those that are stored."""
    _, changes = _compared(batch, since, until, is_window=True)
    _tell(batch, changes, until)
    return changes


def _all_stated(batch: Batch) -> Mapping[int, Sums]:
    """What the source states, by the unix second of the instant."""
    return {unix_second(at): _stated(batch.source.totals(at)) for at in batch.instants}


def _snapshots(
    batch: Batch,
    stated: Mapping[int, Sums],
    sums: SumChanges,
    dated: Mapping[str, pl.DataFrame] = _NONE,
    complete_until: int = 0,
) -> Commit:
    """The snapshots of a batch, the last of which has all observations."""
    names = (sorted({name for name, _ in values}) for values in stated.values())
    snapshots = [
        Appended(at, ledger={"stated": of, "complete_until": complete_until})
        for at, of in zip(batch.instants, names, strict=True)
    ]
    return Commit([*snapshots[:-1], replace(snapshots[-1], observations=sums.added)], Replaced(dated, sums.removed))


def _listed(batch: Batch, stated: Sums) -> Sequence[Series]:
    """The series that begin with a snapshot: an asset that can be borrowed has a history even before its first loan or
    liquidation."""
    ids: Iterable[str] = [asset_id for name, asset_id in stated if name == LOANS.name and asset_id]
    if not any(name == LOANS.name for name, _ in stated):
        markets = batch.left_out.fit("markets", batch.source.markets(batch.instants[-1]), Market)
        ids = [market.asset_id for market in markets if market.debt]
    return list(dict.fromkeys([*TOTALS, *series_of(LOANS, ids), *series_of(LIQUIDATIONS, ids)]))


def _events(batch: Batch, since: int, until: int) -> list[Event]:
    """The source's events later than the unix second `since` and up to the end of the second `until`: each once, at a
    whole second, oldest first. Those that cannot be stored are left out.

    An event belongs to its whole second. Those of fractions of `since` may have come after that was asked for.
    """
    after, end = instant(since), instant(until + 1)
    events = batch.source.events(after, end)
    try:
        listed = _inside(events, after, end)
        event_frame(listed)
    except UNFIT:
        # Only now, because to look at all fields of all events takes longer than to store them.
        listed = _inside(batch.left_out.fit("events", events, Event), after, end)
    return [event for event in listed if not _lacks_amount(batch, event)]


def _inside(events: Iterable[Event], after: datetime, end: datetime) -> list[Event]:
    inside = {event.id: _storable(event) for event in events if after < event.at < end}
    return sorted(inside.values(), key=lambda event: event.at)


def _lacks_amount(batch: Batch, event: Event) -> bool:
    """Whether an event of lending has no amount, which is noted."""
    if event.amount is not None or not event.is_lending:
        return False
    batch.left_out.note("events", event, Misfit("amount", None, " is missing, although it is an event of lending."))
    return True


def _storable(event: Event) -> Event:
    """The event at a whole second. Its value becomes unknown if its price or value is absurd: a single event must not
    keep all others from being stored."""
    if event.at.microsecond or not event.address.islower():
        event = replace(event, at=event.at.replace(microsecond=0), address=event.address.lower())
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
