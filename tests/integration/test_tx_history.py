"""Events of an address, and of all, page by page, up to the newest complete snapshot."""

import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from typing import Any
from urllib.parse import urlencode, urljoin
from uuid import UUID

import falcon.testing
import polars as pl
import pytest

from analytics_service.app import create_app
from analytics_service.clickhouse.columns import with_version
from analytics_service.clickhouse.connection import Store
from analytics_service.config.settings import Settings
from analytics_service.errors import StoreUnavailable
from analytics_service.market.events import Action, Event, Leg
from analytics_service.store.datasets.events import event_frame
from analytics_service.store.ledger import new_version
from jobs.registry import JOBS
from jobs.runner import take_snapshot
from tests.doubles import FreshHeads, dying
from tests.integration.databases import copied, database
from tests.integration.handmade import HUGE, NOON, HandMade

ALICE, BOB, CONTRACT = "0x" + "a" * 40, "0x" + "b" * 40, "0x" + "c" * 40
MINUTE = timedelta(minutes=1)
LEND = "token;lend"
EVENTS = "/api/v1/analytics/market/events"
Client = falcon.testing.TestClient


def event(id_: str, minutes: float, action: Action = Action.LEND, address: str = ALICE, **more: Any) -> Event:
    """An event some minutes after noon, of one LEND at two dollars unless told otherwise."""
    known = {"amount": 10**6, "usd": Decimal(2), "price": Decimal(2), "contract": CONTRACT, "tx_hash": f"TX{id_}"}
    return Event(id_, action, LEND, address, NOON + minutes * MINUTE, **{**known, **more})


def run(source: HandMade, store: Store, minutes: int) -> None:
    """Take the snapshot of loans some minutes after noon."""
    take_snapshot(JOBS["loans"], source, store, NOON + minutes * MINUTE)


@pytest.fixture(scope="module")
def filled(server: Settings) -> Iterator[Store]:
    """A store with prices and markets of noon; LEND costs two dollars. Tests add to copies."""
    with database(replace(server, clickhouse_database="test_tx_history")) as store:
        for name in ("prices", "markets"):
            take_snapshot(JOBS[name], HandMade(), store, NOON)
        yield store


@pytest.fixture
def store(settings: Settings, filled: Store) -> Iterator[Store]:
    """A copy of it."""
    with copied(settings, filled) as store:
        yield store


@pytest.fixture
def client(store: Store) -> Client:
    """The service over that copy."""
    return service(store)


@pytest.fixture(scope="module")
def told(filled: Store) -> Iterator[Client]:
    """The service over a copy with the events of `TOLD`, which no test changes."""
    with copied(replace(filled._settings, clickhouse_database="test_tx_told"), filled) as store:
        run(HandMade(events_=TOLD), store, 0)
        yield service(store)


def service(store: Store) -> Client:
    # No test here asks for prices or rates of the past.
    settings = replace(store._settings, history_memory=0)
    return falcon.testing.TestClient(create_app(settings, store, lambda: NOON + 10 * MINUTE, FreshHeads(store)))


def ask(client: Client, address: str = ALICE, status: int = 200, **query: str) -> dict[str, Any]:
    answer = client.simulate_get(f"/api/v1/users/{address}/tx-history", params=query)
    assert answer.status_code == status, answer.text
    body: dict[str, Any] = answer.json
    return body


def pages(client: Client, path: str, **query: str) -> Iterator[dict[str, Any]]:
    """A list, page by page, as its Link goes on."""
    following: str | None = f"{path}?{urlencode(query)}"
    while following:
        answer = client.simulate_get(following)
        assert answer.status_code == 200, answer.text
        yield answer.json
        link = answer.headers.get("link")
        following = link and urljoin(path, link.removeprefix("<").removesuffix('>; rel="next"'))


def of_all(client: Client, **query: str) -> list[str]:
    """The uuids of all events of all addresses that match."""
    bodies = list(pages(client, EVENTS, **query))
    listed = [uuid for body in bodies for uuid in uuids(body)]
    assert {body["count"] for body in bodies} == {len(listed)}
    return listed


def uuids(body: dict[str, Any]) -> list[str]:
    return [one["event_uuid"] for one in body["data"]]


def newest_first(events: Sequence[Event]) -> list[str]:
    """Their uuids, by time and then uuid, descending."""
    return [one.uuid for one in sorted(events, key=lambda one: (one.at, one.uuid), reverse=True)]


# The events of one snapshot. Each test has an address of its own.
FULL, BARE, LEGS, LARGE, NEW, SEVERAL = (f"0x{number:040x}" for number in range(1, 7))
OLD = event("old", -5, Action.BORROW, FULL, amount=10**7, usd=Decimal(10), price=Decimal(1), account_index=3)
# Five at one second each.
MANY = [event(f"{n}", -1 - n // 5) for n in range(25)]
ACTIONS = [event(f"{n} of several", -n, Action.BORROW if n % 2 else Action.RETURN, SEVERAL) for n in range(9)]
OTHER, LATER = event("bob", 0, address=BOB), event("later", 1)
TOLD = [
    OLD,
    event("bare", 0, Action.CASCADE, BARE, amount=None, usd=None, price=None),
    *(event(leg, 0, Action.LIQUIDATE, LEGS, tx_hash="TX", leg=leg, account_index=0) for leg in Leg),
    event("large", 0, Action.SEND, LARGE, amount=HUGE, destination=BOB),
    replace(event("new", 0, address=NEW), asset_id="native;unew"),
    *MANY,
    *ACTIONS,
    OTHER,
    LATER,
]


def test_an_event_shows_all_that_it_carries(told: Client) -> None:
    """Ten LEND were worth a dollar each; they are worth two now."""
    body = ask(told, FULL, with_text="true", with_value="true")
    [shown] = body["data"]
    assert body["count"] == 1
    assert shown.pop("asset")["asset"] == {"id": LEND, "group": "token", "group_key": "lend"}
    assert UUID(shown["event_uuid"]).version == 5
    assert shown == {
        "event_uuid": OLD.uuid,
        "event_time": "2025-03-01T11:55:00Z",
        "action": "borrow",
        "amount": "10000000",
        "account_address": FULL,
        "account_index": 3,
        "contract_address": CONTRACT,
        "destination_address": None,
        "tx_hash": "TXold",
        "leg": None,
        "historic_price": "1",
        "historic_value": "10",
        "extra": {
            "text": {
                "event_time": "2025-03-01 11:55:00 UTC",
                "action": "Borrow",
                "amount": "10.00 LEND",
                "historic_price": "$1.00",
                "historic_value": "$10.00",
            },
            "value": {
                "amount": "20",
                "price": "2",
                "extra": {"text": {"amount": "$20.00", "price": "$2.00"}},
            },
        },
    }


def test_what_an_event_lacks_is_null(told: Client) -> None:
    [plain], [shown] = ask(told, BARE)["data"], ask(told, BARE, with_text="true", with_value="true")["data"]
    assert plain["extra"] == {"text": None, "value": None}
    nulls = ("amount", "account_index", "destination_address", "historic_price", "historic_value")
    assert [plain[name] for name in nulls] == [None] * 5
    texts = shown["extra"]["text"]
    assert [texts[name] for name in ("amount", "historic_price", "historic_value")] == ["N/A"] * 3
    assert shown["extra"]["value"] == {
        "amount": None,
        "price": "2",
        "extra": {"text": {"amount": "N/A", "price": "$2.00"}},
    }


def test_both_legs_of_a_liquidation_are_shown_with_one_hash(told: Client) -> None:
    shown = ask(told, LEGS)["data"]
    assert [(one["action"], one["tx_hash"]) for one in shown] == [("liquidate", "TX")] * 2
    assert {one["leg"] for one in shown} == {"debt", "collateral"}


def test_amounts_beyond_128_bits_come_back_exactly(told: Client) -> None:
    [shown] = ask(told, LARGE)["data"]
    assert (shown["amount"], shown["destination_address"]) == (str(HUGE), BOB)


def test_an_asset_that_is_not_registered_is_shown_by_its_id(told: Client) -> None:
    [shown] = ask(told, NEW, with_text="true")["data"]
    assert shown["asset"]["metadata"]["symbol"] == "unew"
    assert shown["extra"]["text"]["amount"] == "1,000,000 unew"


def test_events_are_in_the_order_of_time_and_uuid(told: Client) -> None:
    own, everyones = newest_first(MANY), newest_first(TOLD[:-1])
    assert uuids(ask(told)) == own[:20]
    assert uuids(ask(told, limit="1000")) == own
    assert uuids(ask(told, limit="7", sort_order="asc")) == own[::-1][:7]
    assert [ask(told, limit="7")["count"], ask(told, BOB)["count"]] == [25, 1]
    # Pages end within a second.
    assert of_all(told, limit="13") == everyones
    assert of_all(told, limit="13", sort_order="asc") == everyones[::-1]


def test_a_page_of_one_action_counts_that_and_begins_after_any_event(told: Client) -> None:
    body = ask(told, SEVERAL, action="borrow", prev_event_uuid=ACTIONS[2].uuid, limit="2")
    assert uuids(body) == [ACTIONS[3].uuid, ACTIONS[5].uuid]
    assert body["count"] == 4
    assert uuids(ask(told, SEVERAL, action="send")) == []


def test_an_uuid_that_names_no_event_of_the_address_is_an_error(told: Client) -> None:
    mine = MANY[0]
    for uuid in (OTHER.uuid, LATER.uuid, "00000000-0000-5000-8000-000000000000"):
        error = ask(told, status=404, prev_event_uuid=uuid)["error"]
        assert (error["kind"], uuid in error["message"]) == ("entity_not_found", True)
    for wrong in ("", "17", mine.uuid[:-1], mine.uuid.replace("-", "")):
        error = ask(told, status=400, prev_event_uuid=wrong)["error"]
        assert (error["kind"], "prev_event_uuid" in error["message"]) == ("query_parameter_invalid", True)
    last = newest_first(MANY)[-1]
    assert uuids(ask(told, prev_event_uuid=last.upper())) == []


def test_an_unknown_asset_is_refused(told: Client) -> None:
    for query, why in (
        ("asset_ids=native;nothing", "asset_ids: 'native;nothing' names no asset."),
        ("symbols=NOTHING", "symbols: 'NOTHING' is the symbol of no asset."),
    ):
        for own in (EVENTS, f"/api/v1/users/{ALICE}/tx-history"):
            answer = told.simulate_get(own, query_string=query)
            assert (answer.status_code, answer.json["error"]["message"].startswith(why)) == (404, True), answer.text


def test_events_of_a_run_that_died_are_not_shown(settings: Settings, store: Store, client: Client) -> None:
    source = HandMade(events_=[event("1", 0), event("2", 1)])
    run(source, store, 0)
    with closing(dying(settings, "snapshot")) as broken, pytest.raises(StoreUnavailable):
        run(source, broken, 1)
    assert (ask(client)["count"], uuids(ask(client))) == (1, [source.events_[0].uuid])
    run(source, store, 2)
    assert (ask(client)["count"], uuids(ask(client))) == (2, newest_first(source.events_))


def test_pages_neither_skip_nor_repeat_while_events_arrive(store: Store, client: Client, draw: random.Random) -> None:
    """Random events of two addresses, many at one second, in random snapshots, read a page at a time in between."""
    events = [event(f"{n}", draw.randrange(0, 40) / 4, address=draw.choice([ALICE, BOB])) for n in range(60)]
    events.append(event("first", 0))
    source, minute = HandMade(events_=sorted(events, key=lambda one: one.at)), 0
    seen: dict[str, list[str]] = {"asc": [], "desc": []}
    run(source, store, minute)
    mine = [one for one in events if one.address == ALICE]
    is_read = False
    while not is_read:
        is_read = minute == 10
        for order, read in seen.items():
            query = {"prev_event_uuid": read[-1]} if read else {}
            body = ask(client, sort_order=order, limit=str(draw.randint(3, 12)), **query)
            read += uuids(body)
            assert body["count"] == len([one for one in mine if one.at <= NOON + minute * MINUTE])
            is_read &= not body["data"]
        if minute < 10:
            minute = min(minute + draw.randint(1, 4), 10)
            run(source, store, minute)
    # A descending reading shows what was there when it began; an ascending one meets what arrives, too.
    assert seen == {"asc": newest_first(mine)[::-1], "desc": newest_first([one for one in mine if one.at <= NOON])}


def test_events_of_all_addresses_are_listed_and_filtered_alike(
    store: Store, client: Client, draw: random.Random
) -> None:
    """Random events, many at one second; a page goes on where the page before says."""
    actions, addresses, assets = [Action.BORROW, Action.LIQUIDATE, Action.SEND], [ALICE, BOB], [LEND, "native;unew"]
    events = [
        replace(event(f"{n}", draw.randrange(0, 40) / 4, draw.choice(actions), draw.choice(addresses)), asset_id=asset)
        for n, asset in enumerate(draw.choices(assets, k=40))
    ]
    run(HandMade(events_=sorted(events, key=lambda one: one.at)), store, 10)
    assert of_all(client, limit="15") == newest_first(events)
    chosen: list[tuple[dict[str, str], Callable[[Event], bool]]] = [
        ({"action": "borrow,liquidate"}, lambda one: one.action is not Action.SEND),
        ({"symbols": "lend"}, lambda one: one.asset_id == LEND),
        ({"asset_ids": "native;unew", "action": "borrow"}, lambda one: one.asset_id != LEND and one.action == "borrow"),
        # Both ends count; the client's clock is at ten minutes past noon.
        ({"start": "now-5min", "end": "2025-03-01T12:08Z"}, lambda one: 5 * MINUTE <= one.at - NOON <= 8 * MINUTE),
    ]
    for query, matches in chosen:
        matching = [one for one in events if matches(one)]
        assert of_all(client, limit="10", **query) == newest_first(matching)
        own = [one for one in matching if one.address == BOB]
        bodies = list(pages(client, f"/api/v1/users/{BOB}/tx-history", limit="10", **query))
        assert [uuid for body in bodies for uuid in uuids(body)] == newest_first(own)
        assert {body["count"] for body in bodies} == {len(own)}
    assert of_all(client, limit="15", address=BOB) == newest_first([one for one in events if one.address == BOB])


def test_events_that_changed_or_went_are_not_found_as_they_were(store: Store, client: Client) -> None:
    """Rows that others replace are still there until ClickHouse merges them."""
    events = [event(f"{n}", n / 10, Action.BORROW) for n in range(40)]
    run(HandMade(events_=events), store, 5)
    version = new_version(store)
    frames = [event_frame(events[10:]), event_frame([replace(events[9], action=Action.RETURN)])]
    for frame, gone in zip(frames, (True, False), strict=True):
        store.insert("event_version", with_version(frame.with_columns(removed=pl.lit(gone)), version))
    assert of_all(client, limit="5", action="borrow") == newest_first(events[:9])
    assert of_all(client, limit="5") == newest_first(events[:10])
