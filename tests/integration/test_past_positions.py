"""Positions are added at any instant: after the newest, between two snapshots, and before the first."""

import random
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path

import polars as pl
import pytest

from analytics_service.admin.remove import Removal, remove
from analytics_service.clickhouse.connection import Store
from analytics_service.config.settings import Settings
from analytics_service.errors import StoreUnavailable
from analytics_service.market.instants import from_unix, unix_second
from analytics_service.market.kinds import FOREVER
from analytics_service.market.positions import Account, Balance, Holding, LendPosition, Position
from analytics_service.store.datasets.positions import borrowing_of, read_borrowing, read_items, read_position
from analytics_service.store.ledger import read_heads
from jobs.registry import JOBS
from jobs.runner import backfill, take_snapshot
from tests.doubles import Silent, Statement, WatchedStore
from tests.integration.conftest import Run
from tests.integration.lending import ETH, ORB, USDC, Lending
from tests.integration.routes import NOON
from tests.stored import item_frame

JOB = JOBS["positions"]
MINUTE = timedelta(minutes=1)
START = from_unix(NOON)
ADDRESSES = [f"0x{number:040x}" for number in range(6)]


def at(minute: int) -> datetime:
    return START + minute * MINUTE


@dataclass(frozen=True)
class World(Lending):
    """A protocol with a known past: its positions by minute. The live job takes those from the minute `now` on."""

    live: int = NOON
    states: Mapping[int, list[Position]] = field(default_factory=dict)
    now: int = 0

    def positions(self, at: datetime) -> Iterable[Position]:
        return self.states[(unix_second(at) - NOON) // 60]


def random_position(draw: random.Random, address: str) -> Position:
    """A few items with small amounts, so that they often change back, or are dust."""

    def some(assets: tuple[str, ...]) -> list[str]:
        return [asset for asset in assets if draw.random() < 0.5]

    accounts = tuple(
        Account(
            index,
            tuple(Holding(asset, draw.randint(1, 2) * 10**19) for asset in some((ETH, ORB))),
            tuple(Holding(asset, draw.randint(0, 2)) for asset in some((USDC,))),
        )
        for index in range(draw.randint(0, 2))
    )
    lends = tuple(LendPosition(asset, draw.randint(0, 2), draw.randint(0, 1)) for asset in some((USDC, ORB)))
    return Position(address, accounts, lends, tuple(Balance(asset, draw.randint(0, 2)) for asset in some((ETH, USDC))))


def random_world(draw: random.Random, past: int, live: int) -> World:
    """Addresses come and go, most stay as they are from one minute to the next; in one minute there is nobody."""
    states: dict[int, list[Position]] = {}
    now: dict[str, Position] = {}
    for minute in range(past + live):
        for address in ADDRESSES:
            if draw.random() < 0.3:
                now.pop(address, None)
            if draw.random() < 0.4:
                now[address] = random_position(draw, address)
        states[minute] = list(now.values())
    return replace(World(), states={**states, draw.randrange(past): []}, now=past)


class Scrambled:
    """Fills a store with the snapshots of a world in random order; runs die, and others run beside them."""

    def __init__(self, store: Store, settings: Settings, world: World, draw: random.Random) -> None:
        self._store, self._settings, self._world, self._draw = store, settings, world, draw
        past, live = range(world.now), range(world.now, len(world.states))
        self._left = draw.sample(past, len(past))
        self._live = iter(live)

    def fill(self) -> None:
        self._tick()
        while self._left:
            draw = self._draw
            step: Callable[[], None] = draw.choice([self._backfill, self._backfill, self._die, self._beside])
            step()
        for minute in self._live:
            self._tick_at(minute)

    def _some(self) -> list[int]:
        return [self._left.pop() for _ in range(min(len(self._left), self._draw.randint(1, 3)))]

    def _take(self, store: Store, minutes: list[int]) -> None:
        backfill(JOB, self._world, store, [at(minute) for minute in sorted(minutes)])

    def _backfill(self) -> None:
        self._take(self._store, self._some())

    def _tick(self) -> None:
        for minute in self._live:
            self._tick_at(minute)
            break

    def _tick_at(self, minute: int) -> None:
        assert take_snapshot(JOB, self._world, self._store, at(minute))

    def _die(self) -> None:
        """A backfill loses ClickHouse before or after one of its inserts, and does not go on."""
        minutes = self._some()
        self._left += minutes
        table = self._draw.choice(["position_change", "position_summary", "snapshot_staging", "rewrite"])

        def die(statement: Statement) -> None:
            if statement.kind == "insert" and statement.name.startswith(table):
                raise StoreUnavailable("ClickHouse is gone.")

        hooks = {self._draw.choice(["before", "after"] if table != "rewrite" else ["before"]): die}
        with suppress(StoreUnavailable):
            self._take(WatchedStore(self._settings, **hooks), minutes)

    def _beside(self) -> None:
        """While a backfill compares, another one takes snapshots, and while it writes, the live job."""
        minutes, others = self._some(), self._some()
        acts = {
            Statement("query", "list_item_changes"): lambda: self._take(self._store, others),
            Statement("insert", "position_change"): self._tick,
        }

        def meanwhile(statement: Statement) -> None:
            if act := acts.pop(statement, None):
                act()

        self._take(WatchedStore(self._settings, after=meanwhile), minutes)


@pytest.mark.parametrize(("past", "live"), [(4, 2), pytest.param(10, 3, marks=pytest.mark.slow)])
def test_every_address_is_at_every_instant_as_the_source_says(
    past: int, live: int, store: Store, settings: Settings, draw: random.Random
) -> None:
    """In any order, interrupted, beside a live job and other backfills."""
    world = random_world(draw, past, live)
    Scrambled(store, settings, world, draw).fill()
    for minute, positions in world.states.items():
        second = unix_second(at(minute))
        stated, stored = item_frame(positions), read_items(store, ADDRESSES, second)
        assert sorted(stored.rows(), key=str) == sorted(stated.rows(), key=str), minute
        borrowing = borrowing_of(item_frame(positions)).select("address", "kind", "account_index", "asset_id", "amount")
        assert sorted(pl.concat(read_borrowing(store, second)).select(borrowing.columns).rows()) == sorted(
            borrowing.rows()
        )
    assert read_heads(store)["positions"].instant == at(max(world.states))


def test_what_comes_after_a_removal_is_compared_with_what_is_left(store: Store, tmp_path: Path) -> None:
    """One wallet has 1, then 2 in a snapshot that was added later; another one was there in that snapshot only."""

    def wallet(number: int, amount: int) -> Position:
        return Position(ADDRESSES[number], wallet=(Balance(USDC, amount),))

    world = replace(World(), states={0: [wallet(0, 1)], 1: [wallet(0, 2), wallet(1, 5)], 2: [wallet(0, 1)]})
    for minute in (0, 2, 1):
        assert take_snapshot(JOB, world, store, at(minute))
    remove(store, Removal("positions", None, unix_second(at(2)), FOREVER), tmp_path, Silent())
    assert [read_position(store, address, unix_second(at(2))) for address in ADDRESSES[:2]] == world.states[1]
    take_snapshot(JOB, world, store, at(2))
    assert [read_position(store, address, unix_second(at(2))) for address in ADDRESSES[:2]] == [
        wallet(0, 1),
        Position(ADDRESSES[1]),
    ]


def test_the_past_of_an_empty_store_is_filled_in_by_two_runs(store: Store, run: Run) -> None:
    states = {minute: [Position(ADDRESSES[0], wallet=(Balance(USDC, minute),))] for minute in range(1, 5)}
    assert backfill(JOB, replace(World(), states=states), store, [at(minute) for minute in states]) == 4
    assert {minute: [read_position(store, ADDRESSES[0], unix_second(at(minute)))] for minute in states} == states
    runs = "SELECT groupArray(toUnixTimestamp(at)) FROM (SELECT * FROM snapshot FINAL ORDER BY at) GROUP BY version"
    assert sorted(row[0] for row in run(runs)) == [[unix_second(at(m)) for m in (1, 2, 3)], [unix_second(at(4))]]
