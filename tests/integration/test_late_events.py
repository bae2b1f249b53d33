"""Events that come late, move, go and come back leave what a store shows that had each at once."""

import random
from collections.abc import Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from analytics_service.clickhouse.connection import Store
from analytics_service.config.settings import Settings
from analytics_service.errors import StoreUnavailable
from analytics_service.market.events import Action, Event, Leg
from analytics_service.market.instants import format_instant as shown_at
from analytics_service.market.instants import from_unix, multiples_between
from jobs.recompute import plan, replace_snapshots
from jobs.registry import JOBS
from jobs.runner import backfill, take_snapshot
from tests.doubles import dying
from tests.integration.databases import database
from tests.integration.handmade import NOON, HandMade, market
from tests.integration.imports import query
from tests.integration.routes import client_of

JOB = JOBS["loans"]
A, B = "token;lend", "token;b"
MARKETS = [market(A, apr="0.1"), market(B, apr="0.1")]
ALICE, BOB = "0x" + "a" * 40, "0x" + "b" * 40
SECOND, MINUTE, HOUR = timedelta(seconds=1), timedelta(minutes=1), timedelta(hours=1)
SHOWN = (
    "SELECT * EXCEPT version FROM observation FINAL ORDER BY ALL",
    "SELECT * EXCEPT version FROM event_version FINAL WHERE NOT removed ORDER BY ALL",
)


def event(id_: str, seconds: float, action: Action = Action.BORROW, **more: Any) -> Event:
    """An event some seconds after noon, of Alice and ten dollars unless told otherwise."""
    known = {"asset_id": A, "address": ALICE, "amount": 10**6, "usd": Decimal(10), "tx_hash": f"tx{id_}"}
    return Event(id_, action, at=NOON + seconds * SECOND, **{**known, **more})


@dataclass
class Chain(HandMade):
    """A source that tells of an event as it has it by then: `told` has, by id, from when on it says what; None is that
    there is no such event."""

    markets_: Any = field(default_factory=lambda: MARKETS)
    told: Mapping[str, Sequence[tuple[datetime, Event | None]]] = field(default_factory=dict)
    complete: datetime | None = None

    def events(self, start: datetime, end: datetime) -> Sequence[Event]:
        self.asked.append((start, end))
        now = ([each for since, each in versions if since <= end] for versions in self.told.values())
        events = [versions[-1] for versions in now if versions]
        return sorted((each for each in events if each and start <= each.at < end), key=lambda each: each.at)

    def complete_until(self, at: datetime) -> datetime | None:
        return self.complete


def prompt(events: Sequence[Event]) -> Chain:
    """A source that has each event at once."""
    return Chain(told={each.id: [(each.at, each)] for each in events})


def require_same(settings: Settings, other: Settings) -> None:
    """Check that two stores have the same sums and events."""
    for sql in SHOWN:
        found, expected = (query(each, sql) for each in (settings, other))
        assert found == expected


def drawn(draw: random.Random, number: int) -> Event:
    """An event of the first ten minutes, some within a second. Even moved, it is later than the first snapshot, with
    which series begin at zero."""
    action = draw.choice([Action.BORROW, Action.RETURN, Action.LIQUIDATE, Action.BORROW_FLASH_LOAN, Action.SEND])
    leg = draw.choice([*Leg]) if action is Action.LIQUIDATE else None
    seconds = draw.randrange(1_000, 6_000) / 10
    usd = draw.choice([None, Decimal(draw.randrange(10**6)) / 1000])
    whose = {"asset_id": draw.choice([A, B]), "address": draw.choice([ALICE, BOB])}
    return event(f"e{number}", seconds, action, leg=leg, usd=usd, **whose)


def late(draw: random.Random, each: Event) -> Sequence[tuple[datetime, Event | None]]:
    """What an indexer 10 to 20 s behind tells of an event: at a whole second, some at another one first, some gone for
    a while, after an event that never was."""
    first = each.at + draw.uniform(10, 20) * SECOND
    now = replace(each, at=each.at.replace(microsecond=0))
    kind = draw.randrange(4)
    if kind == 0:
        moved = replace(now, at=now.at - draw.randrange(1, 90) * SECOND, usd=Decimal(5))
        return [(first, moved), (first + draw.randrange(20, 300) * SECOND, now)]
    if kind == 1:
        return [(first, now), (first + 40 * SECOND, None), (first + 300 * SECOND, now)]
    return [(first, now)]


@pytest.mark.usefixtures("store")
def test_a_late_source_leaves_what_a_prompt_one_does(settings: Settings, draw: random.Random) -> None:
    """Some runs die at one of their inserts; the last ones ask for all that came late."""
    events = [drawn(draw, number) for number in range(60)]
    told = {each.id: late(draw, each) for each in events}
    never = event("never", 300)
    told["never"] = [(never.at + 12 * SECOND, never), (never.at + 200 * SECOND, None)]
    instants = multiples_between(NOON, NOON + 21 * MINUTE, 4 * MINUTE)
    other = replace(settings, clickhouse_database=f"{settings.clickhouse_database}_prompt")
    with database(other) as truthful, closing(Store(settings)) as store:
        for at in (instants[0], instants[-1]):
            take_snapshot(JOB, prompt(events), truthful, at)
        for at in instants:
            if at > NOON and draw.randrange(4) == 0:
                table = draw.choice(["event_version", "observation", "snapshot"])
                with closing(dying(settings, table)) as broken, suppress(StoreUnavailable):
                    take_snapshot(JOB, Chain(told=told), broken, at)
                if draw.randrange(2):
                    continue
            take_snapshot(JOB, Chain(told=told), store, at)
        require_same(settings, other)


@pytest.mark.parametrize(("left", "later"), [("observations", 0), ("events of a shard", 1), ("events", 0)])
@pytest.mark.usefixtures("store")
def test_the_next_run_completes_what_one_that_died_has_left(settings: Settings, left: str, later: int) -> None:
    """It had events that came late, one of another value than before, a new one, and two that never were. The rows of
    Bob are on another shard."""
    first = [event("other", 20), event("bob", 20, address=BOB), event("returned", 30, Action.RETURN)]
    late = [event("late", 10), event("late return", 15, Action.RETURN, address=BOB)]
    own = [*late, replace(first[0], usd=Decimal(7)), *first[1:], event("new", 330, address=BOB)]
    never = [event("never", 40, address=BOB), event("never new", 340)]
    other = replace(settings, clickhouse_database=f"{settings.clickhouse_database}_prompt")
    with database(other) as truthful, closing(Store(settings)) as store:
        for each in (store, truthful):
            take_snapshot(JOB, prompt(first if each is store else own), each, NOON + 4 * MINUTE)
        table = "event_version" if left == "observations" else "snapshot"
        with closing(dying(settings, table)) as broken, pytest.raises(StoreUnavailable):
            take_snapshot(JOB, prompt([*own, *never]), broken, NOON + 6 * MINUTE)
        if left == "events of a shard":
            died = f"address = '{BOB}' AND version > (SELECT max(version) FROM snapshot)"
            store.execute(f"ALTER TABLE event_version DELETE WHERE {died} SETTINGS mutations_sync = 1")
        for each in (store, truthful):
            take_snapshot(JOB, prompt(own), each, NOON + (6 + later) * MINUTE)
        require_same(settings, other)


def test_late_events_are_asked_for_every_five_minutes(store: Store, settings: Settings) -> None:
    """While they may come, no page of loans may be cached for a day."""
    source = prompt([])
    for minute in (0, 4, 5, 6):
        take_snapshot(JOB, source, store, NOON + minute * MINUTE)
    since = [round((after - NOON) / MINUTE) for after, _ in source.asked[1:]]
    assert since == [0, 4 - 60, 5]
    noon, found = int(NOON.timestamp()), []
    for ago in (4_200, 4_201):
        page = client_of(settings, store, now=noon + ago).simulate_get(
            "/api/v1/analytics/market/history/loans-originated",
            params={"start": str(noon - 60), "end": str(noon), "period": "min"},
        )
        found.append(page.headers["cache-control"])
    assert found == ["public, max-age=1", "public, max-age=86400"]


def test_what_an_indexer_was_away_for_comes_when_it_is_back(store: Store, settings: Settings) -> None:
    """It said up to when it was complete, four hours before; so does the service."""
    events = [event(f"{hour}", hour * 3600 + 30) for hour in range(4)]
    source = Chain(told={each.id: [(NOON + 4 * HOUR, each)] for each in events}, complete=NOON)
    for minute in (0, 1, 200):
        take_snapshot(JOB, source, store, NOON + minute * MINUTE)
    health = client_of(settings, store).simulate_get("/api/v1/status/health").json["data"]
    complete = {dataset["dataset"]: dataset["complete_until"] for dataset in health["snapshots"]}
    assert complete.pop("loans") == shown_at(NOON)
    assert {*complete.values()} == {None}
    source.complete = NOON + 4 * HOUR
    take_snapshot(JOB, source, store, NOON + 4 * HOUR)
    rows = query(settings, "SELECT observed_at, usd FROM totals WHERE history = 'loans_originated' ORDER BY ALL")
    assert [usd for _, usd in rows] == [0, 10, 20, 30, 40]
    assert [at for at, _ in rows[1:]] == [each.at for each in events]


def test_what_is_later_than_a_source_is_complete_does_not_leave(store: Store, settings: Settings) -> None:
    told = [(NOON + MINUTE, event("1", 30)), (NOON + 5 * MINUTE, None)]
    source = Chain(told={"1": told}, complete=NOON)
    for minute in (1, 5):
        take_snapshot(JOB, source, store, NOON + minute * MINUTE)
    count = "SELECT count() FROM event_version FINAL WHERE NOT removed"
    assert query(settings, count) == [(1,)]
    source.complete = NOON + 6 * MINUTE
    take_snapshot(JOB, source, store, NOON + 6 * MINUTE)
    assert query(settings, count) == [(0,)]


def test_an_event_belongs_to_its_whole_second(store: Store, settings: Settings) -> None:
    """Whichever run or range that second ends, and whatever fraction of it a source is complete up to."""
    edges = event("edge", 59.7), event("late", 60.3)
    source = Chain(told={"edge": [(NOON, edges[0])], "late": [(NOON + 62 * SECOND, edges[1])]})
    for minute in (0, 1, 2):
        take_snapshot(JOB, source, store, NOON + minute * MINUTE)
    listed = "SELECT id, toUnixTimestamp(at) FROM event_version FINAL WHERE NOT removed ORDER BY at"
    noon = int(NOON.timestamp())
    both: list[tuple[object, ...]] = [("edge", noon + 59), ("late", noon + 60)]
    assert query(settings, listed) == both
    for second in (59, 60, 61):
        for portion in plan(store, "loans", NOON, NOON + second * SECOND):
            replace_snapshots(JOB, prompt(edges), store, portion)
    source.told, source.complete = {"edge": [(NOON, edges[0])]}, NOON + 60.2 * SECOND
    take_snapshot(JOB, source, store, NOON + 5 * MINUTE)
    assert query(settings, listed) == both
    source.complete = NOON + 61 * SECOND
    take_snapshot(JOB, source, store, NOON + 181 * MINUTE)
    assert query(settings, listed) == both[:1]


def test_a_backfill_repairs_any_range_of_events(store: Store, settings: Settings) -> None:
    """Days after all could be asked for as late: one came, one moved, one went, one is of another value."""
    before = [event("late", 0), event("moved", 7200), event("gone", 9000), event("other", 9600)]
    after = [event("late", 0), event("moved", 100_000), event("other", 9600, usd=Decimal(7)), event("last", 180_000)]
    after.insert(2, event("sent", 150_000, Action.SEND))
    at = from_unix(int(NOON.timestamp()) + 3 * 86_400)
    source = prompt([*before[1:], after[-1]])
    backfill(JOB, source, store, [NOON - HOUR, at])
    other = replace(settings, clickhouse_database=f"{settings.clickhouse_database}_prompt")
    with database(other) as truthful:
        backfill(JOB, prompt(after), truthful, [NOON - HOUR, at])
        for portion in plan(store, "loans", NOON, at + SECOND):
            replace_snapshots(JOB, prompt(after), store, portion)
        require_same(settings, other)
