"""Events in the store, by address, time and uuid."""

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from analytics_service.clickhouse.columns import Columns, decoded, encoded_records, select_list
from analytics_service.clickhouse.connection import Store
from analytics_service.clickhouse.queries import MAX_ADDRESSES
from analytics_service.errors import EntityNotFound
from analytics_service.market.events import Event, EventFilter, EventQuery
from analytics_service.market.fields import columns_of
from analytics_service.market.kinds import Text

EVENTS = "account_event"
_EVENT = columns_of(Event)
COLUMNS: Columns = {**_EVENT, "uuid": Text("Version 5 UUID of the identity of the event")}
_KEY = ["address", "at", "uuid"]
_WHOSE = "address = {address:String}"
# Events whose last versions are looked up in one query: their addresses are a parameter, which may be 128 KiB long.
_AT_ONCE = MAX_ADDRESSES
# Conditions on the events after an event. The first comparison lets ClickHouse skip rows by the sort key.
_AFTER = "at >= toDateTime({at:UInt32}, 'UTC') AND (at, uuid) > (toDateTime({at:UInt32}, 'UTC'), {uuid:String})"
_BEFORE = "at <= toDateTime({at:UInt32}, 'UTC') AND (at, uuid) < (toDateTime({at:UInt32}, 'UTC'), {uuid:String})"


def event_frame(events: Sequence[Event]) -> pl.DataFrame:
    """Events as a batch to insert, without `version`."""
    return encoded_records(events, COLUMNS)


def read_events(store: Store, until: int, query: EventQuery) -> list[Event]:
    """The events of a page up to a unix second, that of a head of family loans (rule 6.7).

    EntityNotFound if the previous event is not one of the address, or of any. The cost for an address is proportional
    to the page if most of its events match; for all, a few bytes of each event are read, too.
    """
    bound, key = _bound(until, query.filter), dict[str, object]()
    if query.previous:
        key = _key_of(store, until, query.filter, query.previous)
    after = _AFTER if query.ascending else _BEFORE
    placeholders = {"order": "ASC" if query.ascending else "DESC", "after": after if key else "true"}
    if query.filter.address is None:
        rows = _page_of_all(store, query, placeholders, {**bound, **key})
    else:
        placeholders |= {"columns": select_list(_EVENT), "whose": _WHOSE}
        rows = store.frame("account_event_page", placeholders, limit=query.limit, **bound, **key)
    return [Event(**decoded(row, _EVENT)) for row in rows.select(list(_EVENT)).iter_rows(named=True)]


def count_events(store: Store, until: int, of: EventFilter) -> int:
    """How many events a filter selects up to a unix second. Without an address every event is counted, in a second for
    ten million."""
    rows = store.frame("account_event_count", {"whose": _whose(of)}, **_bound(until, of))
    return sum(rows["count"])


def _page_of_all(
    store: Store, query: EventQuery, placeholders: Mapping[str, str], bound: Mapping[str, Any]
) -> pl.DataFrame:
    """The rows of a page of all addresses. Rows that others replace, and events that have gone, are still there until
    ClickHouse merges them; if they leave too few, more are read."""
    # Where no event is later than the previous one, its own second is the last.
    latest = "greatest(max(at), toDateTime({start:UInt32}, 'UTC'))"
    edge = {"within": "<=", "furthest": latest} if query.ascending else {"within": ">=", "furthest": "min(at)"}
    filled = {**placeholders, **edge, "columns": select_list(COLUMNS)}
    is_filtered = bool(query.filter.actions or query.filter.asset_ids)
    limit, bound = query.limit, {**bound, **_seconds(query, bound)}
    while True:
        rows = store.frame("event_page", filled, limit=limit, **bound)
        newest = rows.unique(_KEY, keep="first", maintain_order=True)
        if is_filtered:
            newest = _not_replaced(store, newest)
        events = newest.filter(~pl.col("gone"))
        if events.height >= query.limit or rows.height < limit:
            return events.head(query.limit)
        limit *= 4


def _seconds(query: EventQuery, bound: Mapping[str, Any]) -> dict[str, int]:
    """The range from the second of the previous event on, and the range of those after it; without one both are that of
    the filter."""
    start, until = bound["start"], bound["until"]
    if "at" not in bound:
        return {"after_start": start, "after_until": until}
    if query.ascending:
        start = max(start, bound["at"])
        return {"start": start, "after_start": max(start, bound["at"] + 1), "after_until": until}
    until = min(until, bound["at"])
    return {"until": until, "after_start": start, "after_until": min(until, bound["at"] - 1)}


def _not_replaced(store: Store, rows: pl.DataFrame) -> pl.DataFrame:
    """The rows that are the last of their events: others that no longer match a filter may have replaced them."""
    kept = [rows.clear()]
    for batch in rows.iter_slices(_AT_ONCE):
        addresses, seconds = (batch[name].unique().to_list() for name in ("address", "at"))
        last = store.frame("event_versions", addresses=addresses, seconds=seconds)
        kept.append(batch.join(last, on=[*_KEY, "version"], how="semi", maintain_order="left"))
    return pl.concat(kept)


def _bound(until: int, of: EventFilter) -> dict[str, object]:
    return {
        "address": of.address or "",
        "start": of.start,
        "until": min(until, of.end),
        "actions": list(of.actions),
        "assets": list(of.asset_ids),
    }


def _whose(of: EventFilter) -> str:
    return "true" if of.address is None else _WHOSE


def _key_of(store: Store, until: int, of: EventFilter, uuid: str) -> dict[str, object]:
    """The sort key of an event among those of its address, or of all."""
    rows = store.frame("account_event_place", {"whose": _whose(of)}, address=of.address or "", until=until, uuid=uuid)
    if not rows.height:
        whose = "of this address" if of.address else "here"
        raise EntityNotFound(f"prev_event_uuid: {uuid} names no event {whose}.")
    return {"at": rows["at"].item(), "uuid": uuid}
