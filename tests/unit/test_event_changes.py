"""Two lists of events compared: random ones, and what follows from a hand-made one."""

from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal

from hypothesis import given, settings
from hypothesis import strategies as st

from analytics_service.market.event_changes import EventOrigin, StoredEvent, compare_events, with_ids
from analytics_service.market.events import Action, Event

NOON = datetime(2025, 3, 1, 12, tzinfo=UTC)
LENGTH = 60
START = int(NOON.timestamp())
WINDOW = (START, START + LENGTH)
LOAN = Event("1", Action.BORROW, "token;a", "0xa", NOON, 5, Decimal(5), tx_hash="0xAB")

events = st.builds(
    Event,
    id=st.sampled_from(["", "", "", "1", "2", "3", "4"]),
    action=st.sampled_from([Action.BORROW, Action.SEND]),
    asset_id=st.sampled_from(["token;a", "token;b"]),
    address=st.just("0xa"),
    at=st.integers(0, LENGTH - 1).map(lambda second: NOON + timedelta(seconds=second)),
    amount=st.sampled_from([None, 1, 2]),
    usd=st.sampled_from([None, Decimal(1), Decimal("0.5")]),
    tx_hash=st.sampled_from(["", "0xAB", "cd"]),
)


def has_other_id(event: Event, others: Iterable[Event]) -> bool:
    return not event.id or all(event.id != other.id for other in others)


lists = st.lists(events, max_size=12).map(
    lambda drawn: [event for number, event in enumerate(drawn) if has_other_id(event, drawn[:number])]
)


@st.composite
def followed(draw: st.DrawFn) -> tuple[list[Event], list[Event]]:
    """A list, and the next one: some events stay, some move, change, or lose their ids; others are gone, or new."""
    first = draw(lists)
    second: list[Event] = []
    for event in first:
        kind = draw(st.sampled_from(["stays", "stays", "moves", "changes", "loses its id", "twice", "goes"]))
        if kind == "moves":
            event = replace(event, at=NOON + timedelta(seconds=draw(st.integers(0, LENGTH - 1))))
        elif kind == "changes":
            event = replace(event, usd=draw(st.sampled_from([None, Decimal(7)])))
        elif kind == "loses its id":
            event = replace(event, id="")
        second += [] if kind == "goes" else [event, replace(event, id="")] if kind == "twice" else [event]
    second += [event for event in draw(lists) if has_other_id(event, second)]
    return first, draw(st.permutations(second))


def applied(stored: Iterable[StoredEvent], listed: list[Event]) -> list[StoredEvent]:
    changes = compare_events(listed, stored, EventOrigin.SOURCE, *WINDOW)
    before = {each.key for each in changes.before}
    for one, other in changes.changed:
        assert one.event.uuid == other.event.uuid
    return [*(each for each in stored if each.key not in before), *changes.after]


def contents(listed: Iterable[Event]) -> list[str]:
    """The events without ids; a value has as many decimals as it needs."""
    return sorted(repr(replace(event, id="", usd=event.usd and event.usd.normalize())) for event in listed)


def content(event: Event) -> tuple[object, ...]:
    return event.tx_hash or event.at, event.action, event.asset_id, event.amount


@given(followed())
@settings(max_examples=25, deadline=None)
def test_the_changes_applied_give_the_second_list(lists: tuple[list[Event], list[Event]]) -> None:
    """Events that both lists name keep their uuids, and to compare again finds nothing. No event goes while one of its
    content comes that has no id."""
    first, second = ([*with_ids(each)] for each in lists)
    before = applied([], first)
    after = applied(before, second)
    assert contents(each.event for each in after) == contents(second)
    named = {event.uuid for event in first} & {event.uuid for event in second}
    assert named <= {each.event.uuid for each in after}
    uuids = [{each.event.uuid for each in both} for both in (before, after)]
    gone = {content(each.event) for each in before if each.event.uuid not in uuids[1]}
    new = {content(each.event) for each in after if each.event.uuid not in uuids[0] and len(each.event.id) > 1}
    assert not gone & new
    again = compare_events(second, after, EventOrigin.SOURCE, *WINDOW)
    assert not (again.before or again.after)


def test_what_a_file_has_brought_stays_and_is_known_under_another_id() -> None:
    """A source lists it, then under another id a second later, then no more."""
    stored = compare_events([*with_ids([replace(LOAN, id="", tx_hash="ab")])], [], EventOrigin.FILE).after
    uuid = stored[0].event.uuid
    for event, origin in (
        (LOAN, "BOTH"),
        (replace(LOAN, id="2", at=NOON + timedelta(seconds=1)), "BOTH"),
        (None, "FILE"),
    ):
        stored = applied(stored, [event] if event else [])
        (only,) = stored
        assert (only.event.uuid, only.event.tx_hash, only.origin.name) == (uuid, "ab", origin)
    assert only.event.at == NOON + timedelta(seconds=1)


def test_an_event_under_another_id_is_another_one() -> None:
    stored = [StoredEvent(LOAN)]
    changes = compare_events([replace(LOAN, id="2")], stored, EventOrigin.SOURCE, *WINDOW)
    assert ([each.event.id for each in changes.new], changes.gone) == (["2"], stored)
    assert not compare_events([], stored, EventOrigin.SOURCE, START + 1, START + 9).gone


def test_a_file_changes_only_what_no_source_has_listed() -> None:
    for origin, usd in ((EventOrigin.SOURCE, 5), (EventOrigin.FILE, 7)):
        changes = compare_events([replace(LOAN, usd=Decimal(7))], [StoredEvent(LOAN, origin)], EventOrigin.FILE)
        ((_, after),) = changes.changed
        assert (after.event.usd, changes.altered) == (usd, usd == 7)


def test_equal_events_of_other_values_keep_their_places() -> None:
    """The older one is the second of the source's list."""
    stored = compare_events([*with_ids([replace(LOAN, id="")] * 2)], [], EventOrigin.FILE).after
    listed = [replace(LOAN, id="1", at=NOON + timedelta(seconds=1)), replace(LOAN, id="2")]
    assert not compare_events(listed, applied(stored, listed), EventOrigin.SOURCE, *WINDOW).before
