"""Histories of addresses in the store: every event by address, time and uuid."""

from collections.abc import Sequence

import polars as pl

from analytics_service.errors import EntityNotFound
from analytics_service.market.events import Event, EventList, EventQuery
from analytics_service.market.fields import columns_of
from analytics_service.market.kinds import Text
from analytics_service.store.columns import Columns, decoded, encoded_records, select_list
from analytics_service.store.connection import Store

ACCOUNT_EVENTS = "account_event"
_EVENT = columns_of(Event)
COLUMNS: Columns = {**_EVENT, "uuid": Text("Version 5 UUID of the identity of the event")}
# Conditions on the events after an event. The first comparison lets ClickHouse skip rows by the sort key.
_AFTER = "at >= toDateTime({at:UInt32}, 'UTC') AND (at, uuid) > (toDateTime({at:UInt32}, 'UTC'), {uuid:String})"
_BEFORE = "at <= toDateTime({at:UInt32}, 'UTC') AND (at, uuid) < (toDateTime({at:UInt32}, 'UTC'), {uuid:String})"


def account_event_frame(events: Sequence[Event]) -> pl.DataFrame:
    """Events as a batch to insert, without `version`."""
    return encoded_records(events, COLUMNS)


def read_account_events(store: Store, address: str, until: int, query: EventQuery) -> EventList:
    """A list of events of a (lower-case) address up to a unix second, that of a head of family loans (rule 6.7).

    EntityNotFound if the previous event is not an event of the address. The cost is proportional to the list.
    """
    key = _key_of(store, address, until, query.previous) if query.previous else {}
    after = _AFTER if query.ascending else _BEFORE
    placeholders = {
        "columns": select_list(_EVENT),
        "order": "ASC" if query.ascending else "DESC",
        "after": after if key else "true",
    }
    rows = store.frame(
        "account_event_page",
        placeholders,
        address=address,
        until=until,
        action=query.action or "",
        limit=query.limit,
        **key,
    )
    events = [Event(**decoded(row, _EVENT)) for row in rows.iter_rows(named=True)]
    count = store.frame("account_event_count", address=address, until=until)["count"]
    return EventList(events, sum(count))


def _key_of(store: Store, address: str, until: int, uuid: str) -> dict[str, object]:
    """The sort key of an event among the events of its address."""
    rows = store.frame("account_event_place", address=address, until=until, uuid=uuid)
    if not rows.height:
        raise EntityNotFound(f"prev_event_uuid: {uuid} names no event of this address.")
    return {"at": rows["at"].item(), "uuid": uuid}
