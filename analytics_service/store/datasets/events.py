"""Events in the store, by address, time and uuid."""

from collections.abc import Iterator, Mapping, Sequence
from operator import attrgetter
from typing import Any

import polars as pl

from analytics_service.clickhouse.columns import Columns, decode_rows, encode_tuples, select_list
from analytics_service.clickhouse.connection import Store
from analytics_service.clickhouse.queries import MAX_ADDRESSES
from analytics_service.errors import EntityNotFound
from analytics_service.market.event_changes import EventChanges, EventOrigin, StoredEvent
from analytics_service.market.events import Event, EventFilter, EventQuery
from analytics_service.market.instants import unix_second
from analytics_service.market.kinds import Text, columns_of

EVENTS = "event_version"
_EVENT = columns_of(Event)
COLUMNS: Columns = {**_EVENT, "uuid": Text("Version 5 UUID of the identity of the event")}
_KEY = ["address", "at", "uuid"]
_WHOSE = "address = {address:String}"
# Events of one query for their last versions. Their addresses are a parameter, which may be 128 KiB long.
_AT_ONCE = MAX_ADDRESSES
# Conditions on the events after an event. The first comparison lets ClickHouse skip rows by the sort key.
_AFTER = "at >= toDateTime({at:UInt32}, 'UTC') AND (at, uuid) > (toDateTime({at:UInt32}, 'UTC'), {uuid:String})"
_BEFORE = "at <= toDateTime({at:UInt32}, 'UTC') AND (at, uuid) < (toDateTime({at:UInt32}, 'UTC'), {uuid:String})"
# Conditions on stored events: a range of time, or a possible match of a listed event.
_WITHIN = "at >= toDateTime({start:UInt32}, 'UTC') AND at < toDateTime({end:UInt32}, 'UTC')"
_MAYBE = """address IN {addresses:Array(String)} AND (
    uuid IN {uuids:Array(String)} OR id IN {ids:Array(String)} OR toUnixTimestamp(at) IN {seconds:Array(UInt32)}
    OR replaceRegexpOne(lower(tx_hash), '^0x', '') IN {hashes:Array(String)}
)"""
# Listed events of one query. Their ids are a parameter, which may be 128 KiB long.
_LISTED_AT_ONCE = 300


def event_frame(events: Sequence[Event]) -> pl.DataFrame:
    """Events as a batch to insert, without `version`."""
    return encode_tuples(map(attrgetter(*COLUMNS), events), COLUMNS)


def changes_frame(changes: EventChanges) -> pl.DataFrame:
    """Changes as a batch to insert, without `version`: changed events, and removals of the keys that disappear."""
    after = changes.after
    keys = {each.key for each in after}
    left = [each for each in changes.before if each.key not in keys]
    events = [*after, *left]
    return event_frame([each.event for each in events]).with_columns(
        origin=pl.Series([str(each.origin.name).lower() for each in events], dtype=pl.String),
        removed=pl.Series([False] * len(after) + [True] * len(left), dtype=pl.Boolean),
    )


def read_stored_events(store: Store, listed: Sequence[Event], start: int = 0, end: int = 0) -> list[StoredEvent]:
    """The stored events in [start, end) (unix seconds), and any others that may match a listed event."""
    stored = {each.key: each for each in _stored(store, _WITHIN, start=start, end=end)} if start < end else {}
    known = {(each.event.address, each.event.uuid) for each in stored.values()}
    # A range from 0 on has all stored events.
    others = () if end and not start else (each for each in listed if (each.address, each.uuid) not in known)
    elsewhere = sorted(others, key=attrgetter("address"))
    for first in range(0, len(elsewhere), _LISTED_AT_ONCE):
        batch = elsewhere[first : first + _LISTED_AT_ONCE]
        names = {
            "addresses": sorted({event.address for event in batch}),
            "uuids": [event.uuid for event in batch],
            "ids": [event.id for event in batch],
            "hashes": sorted({event.tx_hash.lower().removeprefix("0x") for event in batch} - {""}),
            "seconds": sorted({unix_second(event.at) for event in batch if not event.tx_hash}),
        }
        stored |= {each.key: each for each in _stored(store, _MAYBE, **names)}
    return [*stored.values()]


def _stored(store: Store, which: str, **bound: object) -> Iterator[StoredEvent]:
    rows = store.query("find_stored_events", {"columns": select_list(_EVENT), "which": which}, **bound)
    for row in rows.iter_rows(named=True):
        yield StoredEvent(Event(**decode_rows(row, _EVENT)), EventOrigin[row["origin"].upper()])


def read_events(store: Store, end: int, query: EventQuery) -> list[Event]:
    """The events of a page before a unix second, the end of a head of dataset loans (rule 6.7, event pages).

    EntityNotFound if the filter's address has no previous event of this uuid. Reads a few bytes of every event if the
    filter names no address; otherwise the cost is proportional to the page if most of the address's events match.
    """
    bound, key = _bound(end, query.filter), dict[str, object]()
    if query.previous:
        key = _key_of(store, end, query.filter, query.previous)
    after = _AFTER if query.ascending else _BEFORE
    placeholders = {"order": "ASC" if query.ascending else "DESC", "after": after if key else "true"}
    if query.filter.address is None:
        rows = _page_of_all(store, query, placeholders, {**bound, **key})
    else:
        placeholders |= {"columns": select_list(_EVENT), "whose": _WHOSE}
        rows = store.query("list_address_events", placeholders, limit=query.limit, **bound, **key)
    return [Event(**decode_rows(row, _EVENT)) for row in rows.select(list(_EVENT)).iter_rows(named=True)]


def count_events(store: Store, end: int, of: EventFilter) -> int:
    """The number of events before a unix second that match a filter. Without an address, counting ten million events
    takes a second."""
    rows = store.query("count_events", {"whose": _whose(of)}, **_bound(end, of))
    return sum(rows["count"])


def _page_of_all(
    store: Store, query: EventQuery, placeholders: Mapping[str, str], bound: Mapping[str, Any]
) -> pl.DataFrame:
    """The rows of a page of all addresses. Replaced rows and removed events remain until ClickHouse merges them; if too
    few others are left, the page is read again with a larger limit."""
    # If no event is later than the previous event, its own second is the last.
    latest = "greatest(max(at), toDateTime({start:UInt32}, 'UTC'))"
    edge = {"within": "<=", "furthest": latest} if query.ascending else {"within": ">=", "furthest": "min(at)"}
    filled = {**placeholders, **edge, "columns": select_list(COLUMNS)}
    is_filtered = bool(query.filter.actions or query.filter.asset_ids)
    limit, bound = query.limit, {**bound, **_seconds(query, bound)}
    while True:
        rows = store.query("list_events", filled, limit=limit, **bound)
        newest = rows.unique(_KEY, keep="first", maintain_order=True)
        if is_filtered:
            newest = _not_replaced(store, newest)
        events = newest.filter(~pl.col("removed"))
        if events.height >= query.limit or rows.height < limit:
            return events.head(query.limit)
        limit *= 4


def _seconds(query: EventQuery, bound: Mapping[str, Any]) -> dict[str, int]:
    """The range from the second of the previous event on, and the range after that second. Without a previous event
    both are the filter's range."""
    start, end = bound["start"], bound["end"]
    if "at" not in bound:
        return {"after_start": start, "after_end": end}
    if query.ascending:
        start = max(start, bound["at"])
        return {"start": start, "after_start": max(start, bound["at"] + 1), "after_end": end}
    return {"end": min(end, bound["at"] + 1), "after_start": start, "after_end": min(end, bound["at"])}


def _not_replaced(store: Store, rows: pl.DataFrame) -> pl.DataFrame:
    """The last rows of their events: rows that do not match the filter may have replaced the others."""
    kept = [rows.clear()]
    for batch in rows.iter_slices(_AT_ONCE):
        addresses, seconds = (batch[name].unique().to_list() for name in ("address", "at"))
        last = store.query("read_event_versions", addresses=addresses, seconds=seconds)
        kept.append(batch.join(last, on=[*_KEY, "version"], how="semi", maintain_order="left"))
    return pl.concat(kept)


def _bound(end: int, of: EventFilter) -> dict[str, object]:
    return {
        "address": of.address or "",
        "start": of.start,
        "end": min(end, of.end),
        "actions": list(of.actions),
        "assets": list(of.asset_ids),
    }


def _whose(of: EventFilter) -> str:
    return "true" if of.address is None else _WHOSE


def _key_of(store: Store, end: int, of: EventFilter, uuid: str) -> dict[str, object]:
    """Parameters for the events after an event. EntityNotFound if there is no such event, or not of the address."""
    rows = store.query("find_event", {"whose": _whose(of)}, address=of.address or "", end=end, uuid=uuid)
    if not rows.height:
        whose = "of this address" if of.address else "here"
        raise EntityNotFound(f"prev_event_uuid: {uuid} names no event {whose}.")
    return {"at": rows["at"].item(), "uuid": uuid}
