"""Compares lists of events: which events are new, which have changed or moved, and which are gone.

Address, transaction and id identify an event. If one of two events has no id, they match by transaction, action, asset,
address, amount, and their number among equal events; time matters only without a transaction. A stored event keeps its
id and the spelling of its hash, and so its uuid.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from enum import Flag

from analytics_service.market.events import Event
from analytics_service.market.instants import unix_second
from analytics_service.market.kinds import Usd

_HEX = re.compile(r"(0x)?[0-9a-f]+", re.IGNORECASE)


class EventOrigin(Flag):
    """Where an event comes from. An event of a file stays when the source no longer lists it."""

    SOURCE = 1
    FILE = 2
    BOTH = SOURCE | FILE


@dataclass(frozen=True, slots=True)
class StoredEvent:
    """An event as it is stored, or will be."""

    event: Event
    origin: EventOrigin = EventOrigin.SOURCE

    @property
    def key(self) -> tuple[str, int, str]:
        """Primary key: a row replaces an older one with the same key."""
        return self.event.address, unix_second(self.event.at), self.event.uuid


@dataclass(frozen=True, slots=True)
class EventChanges:
    """The differences from the stored events; changed events as pairs of before and after."""

    new: list[StoredEvent] = field(default_factory=list)
    changed: list[tuple[StoredEvent, StoredEvent]] = field(default_factory=list)
    gone: list[StoredEvent] = field(default_factory=list)

    @property
    def before(self) -> list[StoredEvent]:
        """The stored events that are replaced or removed."""
        return [*(before for before, _ in self.changed), *self.gone]

    @property
    def after(self) -> list[StoredEvent]:
        return [*self.new, *(after for _, after in self.changed)]

    @property
    def altered(self) -> int:
        """The number of stored events whose fields change, not only their origin."""
        return sum(before.event != after.event for before, after in self.changed)


def _bare_hash(tx_hash: str) -> str:
    """The hash of a transaction; if hexadecimal, in lower case without `0x`."""
    return tx_hash.lower().removeprefix("0x") if _HEX.fullmatch(tx_hash) else tx_hash


def with_ids(events: Iterable[Event]) -> Iterator[Event]:
    """The events of one list. An event without an id gets one from its content and its number among equal events."""
    seen: Counter[str] = Counter()
    for event in events:
        if not event.id:
            transaction = event.tx_hash or unix_second(event.at)
            made = f"{transaction};{event.address};{event.action};{event.asset_id};{event.amount}"
            seen[made] += 1
            event = replace(event, id=made if seen[made] == 1 else f"{made};{seen[made]}")
        yield event


def is_alike(event: Event, other: Event) -> bool:
    """Whether two events have the same content at any times."""
    return _content(event) == _content(replace(other, at=event.at))


def has_id_of(event: Event, stored: Event) -> bool:
    """Whether an event matches a stored event by id. Files without transactions may use row numbers as ids, so there
    time must match, too."""
    same_id = not set(_names(event)).isdisjoint(_names(stored))
    return same_id and bool(event.tx_hash or event.at == stored.at)


def with_renamed_ids(event: Event, stored: Event) -> Event:
    """The event with the id and the hash of the stored event that it matches."""
    tx_hash = stored.tx_hash if _bare_hash(event.tx_hash) == _bare_hash(stored.tx_hash) else event.tx_hash
    return replace(event, id=stored.id, tx_hash=tx_hash)


def compare_events(
    listed: Sequence[Event], stored: Iterable[StoredEvent], origin: EventOrigin, start: int = 0, end: int = 0
) -> EventChanges:
    """The changes that a list from a source or from files makes to stored events. All listed events have ids.

    In [start, end) (unix seconds) the list is complete: an event of this origin only is gone if it is not listed. The
    source's version of an event wins over a file's.
    """
    left = dict(enumerate(sorted(stored, key=lambda each: each.event.at)))
    changes = EventChanges()
    for event, before in zip(listed, _matches(listed, left, range(start, end)), strict=True):
        if before is None:
            changes.new.append(StoredEvent(event, origin))
            continue
        is_taken = origin is EventOrigin.SOURCE or before.origin is EventOrigin.FILE
        now = _updated(event, before) if is_taken else before.event
        if (after := StoredEvent(now, before.origin | origin)) != before:
            changes.changed.append((before, after))
    for before in left.values():
        if unix_second(before.event.at) in range(start, end) and origin in before.origin:
            if others := before.origin & ~origin:
                changes.changed.append((before, replace(before, origin=others)))
            else:
                changes.gone.append(before)
    return changes


def _matches(listed: Sequence[Event], left: dict[int, StoredEvent], complete: range) -> list[StoredEvent | None]:
    """The stored event that matches each listed event, removed from `left`, oldest first: by id, then by content.

    Where the list is complete, an event of both origins needs no equal id: its file may have none, and after a
    reorganization a source lists it with another.
    """
    if not left:
        return [None] * len(listed)
    numbers = {name: number for number, each in left.items() for name in _names(each.event)}
    found = ([numbers[name] for name in _names(event) if name in numbers] for event in listed)
    matches = [next((left.pop(number) for number in same if number in left), None) for same in found]
    alike = defaultdict[object, list[int]](list)
    for number, each in left.items():
        alike[_content(each.event)].append(number)
    for place, event in enumerate(listed):
        same = alike.get(_content(event), ()) if matches[place] is None else ()
        if free := [number for number in same if number in left and _may_be(left[number], event, complete)]:
            # Of equal events, prefer one with equal values: else they would swap places each time.
            matches[place] = left.pop(max(free, key=lambda number: _updated(event, left[number]) == left[number].event))
    return matches


def _may_be(stored: StoredEvent, event: Event, complete: range) -> bool:
    """Whether a stored event may match a listed event with its content but another id."""
    is_of_both = stored.origin is EventOrigin.BOTH and unix_second(stored.event.at) in complete
    return is_of_both or _has_made_id(event) or _has_made_id(stored.event)


def _updated(event: Event, stored: StoredEvent) -> Event:
    """A listed event as it would replace a stored event."""
    usd, price = (None if value is None else Usd.encode(value) for value in (event.usd, event.price))
    return with_renamed_ids(replace(event, usd=usd, price=price), stored.event)


def _names(event: Event) -> tuple[object, ...]:
    """An event's identities by id: its uuid, which exported files have, and its id, with any spelling of the hash."""
    return (event.address, event.uuid), (event.address, _bare_hash(event.tx_hash), event.id)


def _has_made_id(event: Event) -> bool:
    """Whether `with_ids` made its id, maybe from other spellings of transaction and asset."""
    return f";{event.address};{event.action};" in event.id


def _content(event: Event) -> object:
    transaction = _bare_hash(event.tx_hash) or unix_second(event.at)
    return transaction, event.action, event.address, event.asset_id, event.amount
