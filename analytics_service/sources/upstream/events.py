"""The events of an address, by pages of upstream's list."""

from datetime import datetime

from analytics_service.market.events import Event
from analytics_service.sources.upstream.client import Client

# Events of a page.
_PAGE = 200
# Members whose name differs from the record's field.
_MEMBERS = {
    "id": ("event_uuid",),
    "at": ("event_time",),
    "usd": ("historic_value",),
    "price": ("historic_price",),
    "destination": ("destination_address",),
}


def read_events(client: Client, address: str, start: datetime, end: datetime) -> list[Event]:
    """The events of an address in [start, end), oldest first.

    The list is read backwards from its end, so that new events do not disturb it. SourceError for a page that does not
    continue the page before, or if the list is not as long as upstream says.
    """
    read: dict[str, Event] = {}
    last: Event | None = None
    length: int | None = None
    while last is None or last.at >= start:
        previous = {"prev_event_uuid": last.id} if last else {}
        answer = client.get(f"/users/{address}/tx-history", limit=_PAGE, sort_order="desc", **previous)
        if length is None and answer.count:
            length = answer.count.whole()
        page = answer.data.items()
        for item in page:
            contract = item.get("contract_address")
            event = item.record(Event, names=_MEMBERS, address=address, contract=contract.text() if contract else "")
            if event.id in read or (last and event.at > last.at):
                raise item.error("must follow the event before it")
            read[event.id] = last = event
        if len(read) == length or not page:
            if length not in (None, len(read)):
                raise answer.data.error(f"the list ends after {len(read)} of {length} events")
            break
    return [event for event in reversed(read.values()) if start <= event.at < end]
