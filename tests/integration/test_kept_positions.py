"""Positions in memory equal those in the store, for the one snapshot that memory holds."""

import random
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from analytics_service.config import Settings
from analytics_service.errors import StoreUnavailable, Superseded
from analytics_service.market.positions import Position
from analytics_service.state.heads import Known
from analytics_service.state.view import View
from analytics_service.store.announcements import REWRITE, tell
from analytics_service.store.connection import Store
from analytics_service.store.interest import InterestPaid
from analytics_service.store.kept_positions import KeptPositions
from analytics_service.store.ledger import Head, past_head, read_heads
from tests.doubles import WatchedStore, dying
from tests.integration.test_positions import ALICE, BOB, POOR, RICH, random_position, run

ADDRESSES = [f"0x{n:040x}" for n in range(20)]
# That of a rewrite.
VERSION = 7
# What a restore exchanges, of positions.
TABLES = ("position", "position_digest", "snapshot", "snapshot_head")


@pytest.fixture
def watched(settings: Settings, store: Store) -> Iterator[WatchedStore]:
    """A second store on the same database."""
    watched = WatchedStore(settings)
    yield watched
    watched.close()


def at_once(work: Callable[[], None]) -> None:
    work()


def kept(
    store: Store, worth: int = 1, most_items: int = 10_000, later: Callable[[Callable[[], None]], None] = at_once
) -> KeptPositions:
    """Positions in parts of three addresses, loaded by the lookup that finds them missing."""
    return KeptPositions(store, worth, most_items, chunk=3, later=later)


def head(store: Store) -> Head:
    return read_heads(store)["positions"]


def test_memory_equals_the_store_after_any_sequence_of_states(
    store: Store, watched: WatchedStore, settings: Settings, draw: random.Random
) -> None:
    """Ten snapshots of twenty addresses, each of which is absent now and then; a run dies before every third one."""
    positions = kept(watched)
    state: dict[str, Position] = {}
    for minute in range(1, 11):
        before, state = state, {}
        for address in ADDRESSES:
            if draw.random() < 0.8:
                same = address in before and draw.random() < 0.5
                state[address] = before[address] if same else random_position(draw, address)
        if minute % 3 == 0:
            with pytest.raises(StoreUnavailable):
                run(dying(settings, "snapshot"), minute, *(random_position(draw, one) for one in ADDRESSES))
        run(store, minute, *state.values())
        now = head(store)
        positions.read(ALICE, now)
        queries = watched.queries.total()
        for address in [*ADDRESSES, "0x", "zz"]:
            assert positions.read(address, now) == state.get(address, Position(address)), (minute, address)
        assert watched.queries.total() == queries


def test_every_kind_of_item_comes_back_from_memory(store: Store, watched: WatchedStore) -> None:
    run(store, 0, RICH, POOR)
    positions = kept(watched)
    assert [positions.read(ALICE, head(store)) for _ in range(2)] == [RICH, RICH]
    assert positions.read(BOB, head(store)) == POOR


def test_what_is_in_memory_needs_no_query_and_is_shown_while_positions_are_rewritten(
    store: Store, watched: WatchedStore
) -> None:
    run(store, 0, RICH, POOR)
    positions, now = kept(watched), head(store)
    positions.read(ALICE, now)
    tell(store, REWRITE, ["positions"], VERSION, finished=0)
    queries = watched.queries.total()
    view = View(watched, Known({"positions": now}), positions, InterestPaid(watched))
    assert [view.position(ALICE), view.position(BOB)] == [RICH, POOR]
    assert watched.queries.total() == queries


def test_nothing_that_was_read_beside_a_rewrite_is_shown_or_kept(store: Store, watched: WatchedStore) -> None:
    run(store, 0, RICH, POOR)
    positions, before = kept(watched), head(store)
    tell(store, REWRITE, ["positions"], VERSION, finished=0)
    for _ in range(2):
        with pytest.raises(Superseded):
            positions.read(ALICE, before)
    tell(store, REWRITE, ["positions"], VERSION, finished=1)
    with pytest.raises(Superseded):
        positions.read(ALICE, before)
    assert [positions.read(ALICE, head(store)) for _ in range(2)] == [RICH, RICH]


def test_positions_of_the_past_come_from_the_store_and_leave_memory_as_it_is(
    store: Store, watched: WatchedStore
) -> None:
    """The address's items change from one snapshot to the next, and are gone in the last."""
    for minute, rich in enumerate([RICH, replace(RICH, unclaimed=7)]):
        run(store, minute, rich, POOR)
    run(store, 2, POOR)
    positions, newest = kept(watched), head(store)
    before = watched.queries.copy()
    for minute, expected in ((0, RICH), (1, replace(RICH, unclaimed=7)), (0, RICH)):
        past = past_head(store, newest, newest.at - 60 * (2 - minute), late=False, imported=False, described=False)
        assert positions.read(ALICE, past) == expected
    assert {*(watched.queries - before)} == {"position_items", "rewrites"}
    assert [positions.read(ALICE, newest) for _ in range(2)] == [Position(ALICE)] * 2


def test_the_first_lookups_go_to_the_store(store: Store, watched: WatchedStore) -> None:
    run(store, 0, RICH)
    positions = kept(watched, worth=3)
    spent = []
    for _ in range(5):
        before = watched.queries.total()
        assert positions.read(ALICE, head(store)) == RICH
        spent.append(watched.queries.total() - before)
    # The items, and whether they were rewritten meanwhile.
    assert spent[:2] == [2, 2]
    assert spent[3:] == [0, 0]


def test_more_positions_than_fit_stay_in_the_store(store: Store, watched: WatchedStore) -> None:
    run(store, 0, RICH, POOR)
    positions = kept(watched, most_items=5)
    positions.read(ALICE, head(store))
    before = watched.queries["position_items"]
    assert positions.read(ALICE, head(store)) == RICH
    assert watched.queries["position_items"] == before + 1


def test_another_snapshot_than_the_one_in_memory_is_read_from_the_store(store: Store, watched: WatchedStore) -> None:
    """One of two concurrent requests may still have the previous head."""
    run(store, 0, RICH)
    before = head(store)
    run(store, 1, replace(RICH, unclaimed=100))
    positions = kept(watched)
    for _ in range(2):
        assert positions.read(ALICE, head(store)) == replace(RICH, unclaimed=100)
    for _ in range(2):
        assert positions.read(ALICE, before) == RICH


def test_a_request_with_an_older_head_leaves_memory_as_it_is(store: Store, watched: WatchedStore) -> None:
    """Memory is not loaded for it, nor again for the newest head."""
    run(store, 0, RICH)
    before = head(store)
    run(store, 1, POOR)
    positions, newest = kept(watched), head(store)
    positions.read(ALICE, newest)
    queries = watched.queries.copy()
    assert positions.read(ALICE, before) == RICH
    assert [positions.read(one, newest) for one in (ALICE, BOB)] == [Position(ALICE), POOR]
    # The one read of the older head, and whether positions were rewritten meanwhile.
    assert watched.queries - queries == Counter(position_items=1, rewrites=1)


def test_positions_that_could_not_be_loaded_come_from_the_store(store: Store, watched: WatchedStore) -> None:
    """ClickHouse is away while memory is renewed, and comes back."""
    run(store, 0, RICH)
    positions = kept(watched)
    positions.read(ALICE, head(store))
    run(store, 1, POOR)
    watched.away = True
    with pytest.raises(StoreUnavailable):
        positions.read(ALICE, head(store))
    watched.away = False
    assert positions.read(ALICE, head(store)) == Position(ALICE)
    assert positions.read(BOB, head(store)) == POOR


def test_positions_are_loaded_once_there_is_a_thread_for_it(store: Store, watched: WatchedStore) -> None:
    run(store, 0, RICH)
    starts: list[Callable[[], None]] = []

    def later(work: Callable[[], None]) -> None:
        starts.append(work)
        if len(starts) == 1:
            raise RuntimeError("can't start new thread")
        work()

    positions, now = kept(watched, later=later), head(store)
    assert [positions.read(ALICE, now) for _ in range(2)] == [RICH, RICH]
    queries = watched.queries.total()
    assert positions.read(ALICE, now) == RICH
    assert watched.queries.total() == queries


def save(store: Store) -> None:
    """Keep what the store has beside it."""
    for table in TABLES:
        store.execute(f"CREATE TABLE saved_{table} AS {table}")
        store.execute(f"INSERT INTO saved_{table} SELECT * FROM {table}")


def exchange(store: Store) -> None:
    """Let the store have what was kept, as a restore does."""
    for table in TABLES:
        store.execute(f"EXCHANGE TABLES {table} AND saved_{table}")


def test_memory_is_reloaded_after_a_backup_was_restored(store: Store, watched: WatchedStore) -> None:
    """The newest snapshot of the backup is older than the one in memory, and the next snapshot finds no change."""
    run(store, 0, RICH)
    save(store)
    run(store, 1, POOR)
    positions = kept(watched)
    positions.read(ALICE, head(store))
    exchange(store)
    run(store, 2, RICH)
    for _ in range(2):
        assert positions.read(ALICE, head(store)) == RICH
        assert positions.read(BOB, head(store)) == Position(BOB)


def test_memory_is_reloaded_after_another_store_was_restored_that_has_the_same_snapshots(
    store: Store, watched: WatchedStore
) -> None:
    """Its positions do not change after that, so no row tells of them."""
    run(store, 1, POOR)
    save(store)
    for table in TABLES:
        store.execute(f"TRUNCATE TABLE {table}")
    run(store, 1, RICH)
    positions = kept(watched)
    positions.read(ALICE, head(store))
    exchange(store)
    # A restore counts as a rewrite.
    tell(store, REWRITE, ["positions"], VERSION, finished=1)
    run(store, 2, POOR)
    for _ in range(2):
        assert positions.read(ALICE, head(store)) == Position(ALICE)
        assert positions.read(BOB, head(store)) == POOR
