"""Events that a source or files list, compared with those that are stored.

An event is its id. A row of a file without one is its transaction, or else its second, with action, address, asset and
amount, and its number among equals: it is the same event as one of a source that has this content. The id and the hash
under which an event is stored first stay, and so does its uuid.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

import polars as pl

from analytics_service.clickhouse.columns import decoded, select_list
from analytics_service.clickhouse.connection import Store
from analytics_service.clickhouse.queries import MAX_ADDRESSES
from analytics_service.market.events import Event
from analytics_service.market.fields import columns_of
from analytics_service.market.instants import unix_second
from analytics_service.market.kinds import Usd
from analytics_service.store.datasets.events import event_frame
from analytics_service.store.datasets.sums import SummedEvent, summed_event

_EVENT = columns_of(Event)
# Events that are looked up together: their ids are parameters, which may be 128 KiB long.
_AT_ONCE = 500
_HEX = re.compile(r"(0x)?[0-9a-f]+", re.IGNORECASE)
_BETWEEN = "at > toDateTime({since:UInt32}, 'UTC') AND at <= toDateTime({until:UInt32}, 'UTC')"
_NAMED = """address IN {addresses:Array(String)} AND (
    uuid IN {uuids:Array(String)} OR replaceRegexpOne(lower(tx_hash), '^0x', '') IN {hashes:Array(String)}
)"""
_OF = "address IN {addresses:Array(String)}"


class Bringer(StrEnum):
    """Who has brought an event. One that a file has brought stays when the source lists it no more."""

    SOURCE = "source"
    FILE = "file"
    BOTH = "both"


@dataclass(frozen=True, slots=True)
class KnownEvent:
    """An event as it is stored, or will be."""

    event: Event
    brought_by: Bringer = Bringer.SOURCE

    @property
    def key(self) -> tuple[str, int, str]:
        """By which a row replaces another."""
        return self.event.address, unix_second(self.event.at), self.event.uuid


@dataclass(frozen=True, slots=True)
class EventChanges:
    """What differs from what is stored: events that are new, that are otherwise, before and after, and that go."""

    new: Sequence[KnownEvent] = ()
    changed: Sequence[tuple[KnownEvent, KnownEvent]] = ()
    gone: Sequence[KnownEvent] = ()

    @property
    def now(self) -> list[KnownEvent]:
        """The events to write."""
        return [*self.new, *(after for _, after in self.changed)]

    @property
    def before(self) -> list[KnownEvent]:
        """The stored events that they replace, or that go."""
        return [*(before for before, _ in self.changed), *self.gone]

    @property
    def summed(self) -> list[SummedEvent]:
        """The events to write that are summed."""
        return _summed(self.now)

    @property
    def unsummed(self) -> set[tuple[int, str]]:
        """Second and id of the events that are not summed as they were."""
        return {(event.second, event.id) for event in _summed(self.before)}

    @property
    def seconds(self) -> set[int]:
        """The seconds at which sums change."""
        return {event.second for event in self.summed} | {second for second, _ in self.unsummed}

    def frame(self) -> pl.DataFrame:
        """The rows to write, without `version`."""
        now, keys = self.now, {known.key for known in self.now}
        left = [known for known in self.before if known.key not in keys]
        known = [*now, *left]
        return event_frame([each.event for each in known]).with_columns(
            brought_by=pl.Series([each.brought_by for each in known], dtype=pl.String),
            gone=pl.Series([False] * len(now) + [True] * len(left), dtype=pl.Boolean),
        )


def _summed(events: Iterable[KnownEvent]) -> list[SummedEvent]:
    every = (summed_event(known.event, of_file=known.brought_by is not Bringer.SOURCE) for known in events)
    return [event for event in every if event]


def as_stored(event: Event) -> Event:
    """The event as it comes back from the store."""
    usd = None if event.usd is None else Usd.encode(event.usd)
    price = None if event.price is None else Usd.encode(event.price)
    return replace(event, usd=usd, price=price)


def content_id(event: Event) -> str:
    """The id of an event without one. Those that are alike have numbers after it."""
    return f"{_prefix(event)};{event.asset_id};{event.amount}"


def _prefix(event: Event) -> str:
    return f"{event.tx_hash or unix_second(event.at)};{event.address};{event.action}"


def _hash(event: Event) -> str:
    """The hash of its transaction, the same for all spellings of a hexadecimal one."""
    return _bare(event.tx_hash) if _HEX.fullmatch(event.tx_hash) else event.tx_hash


def _bare(tx_hash: str) -> str:
    return tx_hash.lower().removeprefix("0x")


def respelled(event: Event, like: Event) -> Event:
    """The event with the hash of another one, if that is the same in another spelling."""
    return replace(event, tx_hash=like.tx_hash) if _hash(event) == _hash(like) else event


def _has_made_id(event: Event) -> bool:
    """Whether an event has its id from `content_id`. That names the asset as it was called then."""
    return event.id.startswith(f"{_prefix(event)};")


def read_between(store: Store, since: int, until: int) -> list[KnownEvent]:
    """The stored events in (since, until], unix seconds."""
    return _read(store, _BETWEEN, since=since, until=until)


def read_named(store: Store, events: Sequence[Event]) -> Iterator[KnownEvent]:
    """The stored events with the address, and the uuid or the transaction, of some."""
    for start in range(0, len(events), _AT_ONCE):
        part = events[start : start + _AT_ONCE]
        yield from _read(
            store,
            _NAMED,
            addresses=sorted({event.address for event in part}),
            uuids=sorted({event.uuid for event in part}),
            hashes=sorted({_bare(event.tx_hash) for event in part} - {""}),
        )


def read_of(store: Store, events: Iterable[Event]) -> list[KnownEvent]:
    """All stored events of the addresses of some."""
    addresses = sorted({event.address for event in events})
    chunks = [addresses[start : start + MAX_ADDRESSES] for start in range(0, len(addresses), MAX_ADDRESSES)]
    return [known for chunk in chunks for known in _read(store, _OF, addresses=chunk)]


def _read(store: Store, which: str, **bound: object) -> list[KnownEvent]:
    rows = store.frame("known_events", {"columns": select_list(_EVENT), "which": which}, **bound)
    return [KnownEvent(Event(**decoded(row, _EVENT)), Bringer(row["brought_by"])) for row in rows.iter_rows(named=True)]


def paired(listed: Iterable[Event], stored: Iterable[KnownEvent]) -> list[tuple[Event, KnownEvent | None]]:
    """Each listed event with the stored one that it is, if there is one: that of its uuid, in any spelling of its hash,
    or the oldest of its content if one of the two has its id from `content_id`."""
    events, left = list(listed), {known.key: known for known in stored}
    pairs: dict[int, KnownEvent] = {}
    for name in (_own, _identity):
        keys = {name(known.event): key for key, known in left.items()}
        for number, event in enumerate(events):
            if number not in pairs and (key := keys.pop(name(event), None)):
                pairs[number] = left.pop(key)
    alike = _by_content(sorted(left.values(), key=lambda known: known.event.at))
    return [
        (event, pairs.get(number) or _taken(event, alike.get(_content(event), [])))
        for number, event in enumerate(events)
    ]


def _own(event: Event) -> tuple[str, str]:
    """Its identity in the spelling that it has."""
    return event.address, event.uuid


def _by_content(events: Iterable[KnownEvent]) -> dict[object, list[KnownEvent]]:
    alike: dict[object, list[KnownEvent]] = defaultdict(list)
    for known in events:
        alike[_content(known.event)].append(known)
    return alike


def _taken(event: Event, left: list[KnownEvent]) -> KnownEvent | None:
    """The first of what is left that the event may be, which is taken from there."""
    is_made = _has_made_id(event)
    place = next((n for n, known in enumerate(left) if is_made or _has_made_id(known.event)), None)
    return None if place is None else left.pop(place)


def _identity(event: Event) -> tuple[str, str]:
    return event.address, replace(event, tx_hash=_hash(event)).uuid


def _content(event: Event) -> object:
    return _hash(event) or unix_second(event.at), event.action, event.address, event.asset_id, event.amount


def _updated(known: KnownEvent, event: Event) -> Event:
    """A stored event as it is listed now, under its names of before."""
    return replace(respelled(as_stored(event), known.event), id=known.event.id)


def compare_listed(
    store: Store, listed: Sequence[Event], since: int, until: int, leaving_until: int, *, is_window: bool
) -> EventChanges:
    """What a source's list of all events in (since, until], unix seconds, changes; `listed` are as they are stored.

    Those that only the source has brought leave if it lists them no more and they happened up to `leaving_until`.
    Without `is_window` nothing of the range is expected to be stored.
    """
    there = read_between(store, since, until) if is_window else []
    keys = {_own(known.event) for known in there}
    elsewhere = [event for event in listed if _own(event) not in keys] if since else []
    there += [known for known in read_named(store, elsewhere) if _own(known.event) not in keys]
    if not there:
        return EventChanges([KnownEvent(event) for event in listed])
    new, changed, matched = list[KnownEvent](), list[tuple[KnownEvent, KnownEvent]](), set[tuple[str, int, str]]()
    for event, known in paired(listed, there):
        if known is None:
            new.append(KnownEvent(event))
            continue
        matched.add(known.key)
        by = Bringer.SOURCE if known.brought_by is Bringer.SOURCE else Bringer.BOTH
        after = KnownEvent(_updated(known, event), by)
        changed += [(known, after)] if after != known else []
    gone, unknown = list[KnownEvent](), _by_content(new)
    for known in there:
        is_there = known.key in matched or not since < unix_second(known.event.at) <= leaving_until
        if not is_there and known.brought_by is Bringer.SOURCE:
            gone.append(known)
        elif not is_there and known.brought_by is Bringer.BOTH:
            # A file and the source know it. Listed under another id, as after a reorganization, it is the same.
            if same := unknown.get(_content(known.event)):
                changed.append((known, KnownEvent(_updated(known, same.pop(0).event), Bringer.BOTH)))
            else:
                changed.append((known, replace(known, brought_by=Bringer.FILE)))
    new = [known for alike in unknown.values() for known in alike]
    return EventChanges(new, changed, gone)


def compare_filed(stored: Sequence[KnownEvent], events: Sequence[Event]) -> EventChanges:
    """What events of files change, given all stored events of their addresses. What a source has listed stays as it
    says."""
    new, changed = list[KnownEvent](), list[tuple[KnownEvent, KnownEvent]]()
    for event, known in paired(events, stored):
        if known is None:
            new.append(KnownEvent(event, Bringer.FILE))
        elif known.brought_by is Bringer.SOURCE:
            changed.append((known, replace(known, brought_by=Bringer.BOTH)))
        elif known.brought_by is Bringer.FILE:
            after = KnownEvent(_updated(known, event), Bringer.FILE)
            changed += [(known, after)] if after != known else []
    return EventChanges(new, changed)
