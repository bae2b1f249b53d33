"""The events of an address, by pages of upstream's list of them."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from decimal import Decimal

from analytics_service.market.events import Action, Event, Leg
from analytics_service.market.values import ZERO
from analytics_service.sources.upstream.client import Client

# Events of a page.
_PAGE = 200
# Members that are not called as the record's field.
_MEMBERS = {
    "id": ("event_uuid",),
    "at": ("event_time",),
    "usd": ("historic_value",),
    "price": ("historic_price",),
    "destination": ("destination_address",),
}


def read_events(client: Client, address: str, start: datetime, end: datetime) -> list[Event]:
    """The events of an address in [start, end), oldest first.

    The list is read backwards from its end, which new events do not disturb. SourceError for a page that does not go on
    where the one before it ended, or if the whole list is not as long as upstream says.
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
    return [event for event in _with_legs([*reversed(read.values())]) if start <= event.at < end]


def _worth(event: Event) -> Decimal:
    return event.usd if event.usd is not None and event.usd.is_finite() else ZERO


def _with_legs(events: Sequence[Event]) -> Iterator[Event]:
    """The events, those of liquidations with their legs, which not every deployment tells.

    The liquidator gets a discount, so of two events of a transaction the one that is worth more is the collateral.
    """
    pairs: dict[tuple[str, int | None], list[Event]] = {}
    for event in events:
        if event.action is Action.LIQUIDATE:
            pairs.setdefault((event.tx_hash, event.account_index), []).append(event)
    debts = {min(pair, key=_worth).id for pair in pairs.values()}
    for event in events:
        guess = Leg.DEBT if event.id in debts else Leg.COLLATERAL
        yield replace(event, leg=event.leg or guess) if event.action is Action.LIQUIDATE else event
