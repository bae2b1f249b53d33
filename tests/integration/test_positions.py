"""Positions: changed items are written, closed ones are marked, and a lookup reads one address."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from decimal import Decimal

import pytest
from clickhouse_connect.driver.client import Client

from analytics_service.clickhouse.connection import Store
from analytics_service.config.settings import Settings
from analytics_service.errors import StoreUnavailable
from analytics_service.market.positions import (
    Account,
    Activity,
    Balance,
    Holding,
    LendPosition,
    Position,
    Stake,
    Unbonding,
)
from analytics_service.store import batches as pieces
from analytics_service.store.datasets import positions
from analytics_service.store.datasets.positions import read_activity, read_position
from jobs.registry import JOBS
from jobs.runner import take_snapshot
from tests import clickhouse
from tests.doubles import dying
from tests.integration.handmade import HUGE, LARGEST, NOON, HandMade

JOB = JOBS["positions"]
MINUTE = timedelta(minutes=1)
SECOND = int(NOON.timestamp())
ALICE, BOB = "0x" + "a" * 40, "cosmos1" + "b" * 38
RICH = Position(
    ALICE,
    accounts=(
        Account(0, (Holding("native;x", HUGE), Holding("token;y", 0)), (Holding("token;z", LARGEST),)),
        Account(1),
        Account(7, (), (Holding("token;z", 1), Holding("token;zz", 2))),
    ),
    lends=(LendPosition("native;x", 10**36, 0), LendPosition("token;y", 0, 3)),
    wallet=(Balance("native;x", 5), Balance("token;what;ever", HUGE)),
    stakes=(
        Stake(0, 0, 10, False, None, Decimal("0.000000000000000001")),
        Stake(0, 0, 20, True, NOON, Decimal(0)),
        Stake(2, 0, 30, True, NOON + MINUTE, Decimal("12345678901234567890.5")),
        Stake(0, 7, 40, False, None, Decimal(1)),
    ),
    unbondings=(Unbonding(9, NOON + MINUTE), Unbonding(8, NOON), Unbonding(8, NOON)),
    unclaimed=1,
    claimable_rewards=2,
    claimable_unbonding=HUGE,
)
POOR = Position(BOB, lends=(LendPosition("native;x", 1, 1),))


def run(store: Store, minute: int, *positions: Position) -> None:
    """Take the snapshot of a minute after noon, with these positions."""
    take_snapshot(JOB, HandMade(positions_=positions), store, NOON + minute * MINUTE)


def read(store: Store, minute: int, address: str = ALICE) -> Position:
    return read_position(store, address, SECOND + 60 * minute)


class Written:
    """Counts the rows of items that the snapshot of a minute after noon wrote."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def __call__(self, minute: int, *, closed: bool = False) -> int:
        which = "AND closed" if closed else ""
        query = f"SELECT count() FROM position_change FINAL WHERE observed_at = {SECOND + 60 * minute} {which}"
        return int(self._client.query(query).result_rows[0][0])


@pytest.fixture
def written(settings: Settings) -> Iterator[Written]:
    """Counts with a client that is independent of the service's own code."""
    with clickhouse.client(settings) as client:
        yield Written(client)


def test_only_what_changed_is_written_and_a_position_comes_back_exactly(store: Store, written: Written) -> None:
    """Addresses are stored in lower case."""
    run(store, 0, replace(RICH, address=ALICE.upper().replace("X", "x")), POOR)
    assert written(0) > 0
    assert [read(store, 0), read(store, 0, BOB)] == [RICH, POOR]
    run(store, 1, POOR, RICH)
    assert written(1) == 0
    # One amount of one item; then one of several equal items is gone.
    changed = replace(RICH, unclaimed=100)
    fewer = replace(changed, unbondings=RICH.unbondings[1:])
    run(store, 2, changed, POOR)
    assert written(2) == 1
    run(store, 3, fewer, POOR)
    assert [read(store, minute) for minute in (1, 2, 3)] == [RICH, changed, fewer]


def test_closed_items_are_marked_and_gone(store: Store, written: Written) -> None:
    """An account is closed with its two debts, then everything of the address."""
    run(store, 0, RICH, POOR)
    fewer = replace(RICH, accounts=RICH.accounts[:2])
    run(store, 1, fewer, POOR)
    assert written(1, closed=True) == written(1) == 2
    assert read(store, 1) == fewer
    run(store, 2, POOR)
    assert read(store, 2) == Position(ALICE)
    assert read(store, 2, BOB) == POOR
    assert written(2) == written(2, closed=True)
    assert read(store, 0) == RICH


@pytest.mark.parametrize(("table", "after"), [("position_change", 1), ("snapshot", 2)])
def test_the_next_run_repairs_what_a_dead_run_left(table: str, after: int, store: Store, settings: Settings) -> None:
    """The dead run saw a state that the next run, for the same instant or a later one, does not see."""
    run(store, 0, RICH)
    with pytest.raises(StoreUnavailable):
        run(dying(settings, table), 1, replace(RICH, unclaimed=55, wallet=(), stakes=()), POOR)
    run(store, after, RICH)
    assert read(store, after) == RICH
    assert read(store, after, BOB) == Position(BOB)


def test_a_snapshot_of_many_addresses_is_as_one_of_few(
    store: Store, written: Written, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are compared and written in parts. First all is new. Then one address has changed, one is gone, one has an
    item that cannot be stored, and one, of the first position, comes again at the end, in other case."""
    for module, name in ((pieces, "_MANY"), (positions, "_BATCH")):
        monkeypatch.setattr(module, name, getattr(module, name) // 100)
    addresses = 260
    crowd = [
        Position(f"0x{n:040x}", wallet=tuple(Balance(f"token;{each:x}", n + 1) for each in range(16)))
        for n in range(addresses)
    ]
    run(store, 0, RICH, *crowd)
    assert read(store, 0) == RICH
    assert read(store, 0, crowd[-1].address) == crowd[-1]
    # 6 in accounts, 3 lent, 2 in the wallet, 4 staked, 3 unbonding, and 3 sums.
    assert written(0) == 16 * addresses + 21
    changed = replace(crowd[7], unclaimed=5)
    unfit = replace(crowd[8], unclaimed=-1)
    again = Position(ALICE.upper().replace("X", "x"), wallet=(Balance("native;y", 6),))
    run(store, 1, replace(RICH, unclaimed=9), *crowd[10:], changed, unfit, *crowd[:7], again)
    assert written(1) == 1 + 16
    assert written(1, closed=True) == 16
    assert read(store, 1) == RICH
    assert read(store, 1, changed.address) == changed
    assert read(store, 1, unfit.address) == crowd[8]
    assert read(store, 1, crowd[9].address) == Position(crowd[9].address)
    assert read_activity(store, SECOND + 60) == Activity(1, 2, 1)
    assert caplog.messages[-1] == (
        f"positions: address of {ALICE} comes more than once. Put all items of an address into one Position. It is "
        "rejected; the stored value is kept."
    )


@dataclass
class Slow(HandMade):
    """While it is asked for positions for the first time, something else happens."""

    meanwhile: list[Callable[[], object]] = field(default_factory=list)

    def positions(self, at: datetime) -> Iterable[Position]:
        while self.meanwhile:
            self.meanwhile.pop()()
        return super().positions(at)


@pytest.mark.parametrize("seconds", [30, 90])
def test_changes_are_from_the_state_that_another_scheduler_has_written_meanwhile(store: Store, seconds: int) -> None:
    """Of two balances each scheduler sees another one change; the other one takes its snapshot a minute after noon."""

    def wallet(one: int, two: int) -> Position:
        return Position(ALICE, wallet=(Balance("native;x", one), Balance("token;y", two)))

    run(store, 0, wallet(1, 1))
    slow = Slow(positions_=[wallet(1, 2)], meanwhile=[lambda: run(store, 1, wallet(2, 1))])
    assert take_snapshot(JOB, slow, store, NOON + timedelta(seconds=seconds))
    assert read(store, 1) == wallet(2, 1)
    assert read(store, 2) == (wallet(1, 2) if seconds == 90 else wallet(2, 1))
    assert read_position(store, ALICE, SECOND + 30) == (wallet(1, 2) if seconds == 30 else wallet(1, 1))


def test_activity_counts_debts_accounts_and_lenders(store: Store) -> None:
    """Alice owes in accounts 0 and 7 and lends; Bob lends; debts and receipts of 0 do not count."""
    nothing = Position(
        "0xc", accounts=(Account(0, debts=(Holding("token;z", 0),)),), lends=(LendPosition("token;z", 0, 0),)
    )
    run(store, 0, RICH, POOR, nothing)
    assert read_activity(store, SECOND) == Activity(1, 2, 2)
