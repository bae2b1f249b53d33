"""The events of an address, by pages of upstream's list of them."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from uuid import UUID

from analytics_service.market.events import Action, Event, Leg
from analytics_service.market.values import ZERO
from analytics_service.sources.upstream.client import Client
from analytics_service.sources.upstream.fields import AnswerField

# Events of a page: few at first, because a tick needs few; then as many as may be asked for.
_FIRST, _MOST = 50, 1000
# Members that are not called as the record's field.
_MEMBERS = {
    "at": ("event_time",),
    "usd": ("historic_value",),
    "price": ("historic_price",),
    "destination": ("destination_address",),
}


def read_events(client: Client, address: str, start: datetime, end: datetime) -> list[Event]:
    """The events of an address in [start, end), oldest first.

    The list is read backwards from its end, which new events do not disturb. SourceError for a page that repeats an
    event, is out of order, or if the whole list was read and is not as long as upstream says.
    """
    path = f"/users/{address}/tx-history"
    read: dict[str, Event] = {}
    previous: dict[str, str | int] = {}
    limit, before = _FIRST, datetime.max.replace(tzinfo=UTC)
    length: int | None = None
    while True:
        answer = client.get(path, limit=limit, sort_order="desc", **previous)
        if length is None and answer.count:
            length = answer.count.whole()
        page = answer.data.items()
        for item in page:
            event = _event(address, item)
            if event.id in read:
                raise item["event_uuid"].error("occurs twice")
            if event.at > before:
                raise item["event_time"].error("is later than that of the event before it")
            read[event.id], before = event, event.at
        is_whole = len(read) == length or (len(page) < limit if length is None else not page)
        if is_whole and length not in (None, len(read)):
            raise answer.data.error(f"ends after {len(read)} of {length} events")
        if is_whole or before < start:
            return [event for event in _with_legs([*reversed(read.values())]) if start <= event.at < end]
        previous, limit = {"prev_event_uuid": page[-1]["event_uuid"].text()}, _MOST


def _event(address: str, item: AnswerField) -> Event:
    return item.record(
        Event,
        names=_MEMBERS,
        id=_uuid(item["event_uuid"]),
        address=address,
        contract=contract.text() if (contract := item.get("contract_address")) else "",
    )


def _uuid(field: AnswerField) -> str:
    try:
        return str(UUID(field.text()))
    except ValueError:
        raise field.error("is not a UUID") from None


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
    legs: dict[str, Leg] = {}
    for pair in pairs.values():
        debt, *collaterals = sorted(pair, key=_worth)
        legs |= {debt.id: Leg.DEBT, **{event.id: Leg.COLLATERAL for event in collaterals}}
    for event in events:
        yield replace(event, leg=event.leg or legs.get(event.id))
